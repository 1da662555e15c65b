"""One document for each disagreement on each aspect, with as little else wrong as there can be."""

from datetime import UTC, datetime
from functools import cache

from sqlalchemy import Connection

from baton.contract.purposes import SCHEMA_OF
from baton.reconcilers.aspects import Aspect
from baton.reconcilers.classification import DISCREPANCIES
from support.matters import Matter
from support.situations import Combination, Table, Writer, Written, combinations, write

SEED = 11


@cache
def troubles() -> dict[tuple[str, Aspect], Combination]:
    """By discrepancy and aspect, where somebody consumes and no queue was seen empty."""
    now = datetime(2026, 1, 1, tzinfo=UTC)
    writer = Writer(now)
    found: dict[tuple[str, Aspect], tuple[int, Combination]] = {}
    for each in combinations(SEED, mixed=3000):
        if each.young or each.refused():
            continue
        written, *_ = writer.rows(each)
        verdicts = Table(written, "polled", now).expected()
        wrong = {aspect: name for aspect, name in verdicts.items() if name in DISCREPANCIES}
        for aspect, name in wrong.items():
            key = (name, Aspect(aspect))
            if key not in found or len(wrong) < found[key][0]:
                found[key] = len(wrong), each
    return {key: each for key, (_, each) in found.items()}


def write_one(connection: Connection, matter: Matter, given: Combination, *, after: int = 0) -> Written:
    """Write a document whose runs have everything that settling and applying them needs."""
    now = connection.exec_driver_sql("SELECT app.clock()").scalar_one()
    writer = Writer(now)
    writer.firm = matter.firm
    writer.begin_after(after)
    (written,) = write(connection, writer, [given])
    for purpose, schema in SCHEMA_OF.items():
        connection.exec_driver_sql(
            "UPDATE agents.agent_run SET result_schema = %s, result_key = 'agent-runs/' || run_id WHERE purpose = %s",
            (schema.value, purpose.value),
        )
    return written
