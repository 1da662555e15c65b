"""From every unhealthy state all ends well, once, and then nothing is found."""

import random
from collections import Counter
from collections.abc import Iterator

import pytest
from uuid_utils.compat import uuid7

from baton.contract.purposes import SCHEMA_OF
from baton.db.access import Role
from baton.reconcilers import deadletters
from baton.reconcilers.classification import DISCREPANCIES
from baton.reconcilers.deadletters import Postmaster
from baton.reconcilers.explain import ground_of
from baton.reconcilers.judging import judge
from baton.reconcilers.results import Mode
from support.aws_accounts import AwsAccount
from support.databases import Database
from support.dispatching import Desk
from support.fuses import Crash, Fuse
from support.matters import Matter
from support.reconciling import Loop
from support.scripted_agent import ScriptedAgent, accept
from support.situations import Writer, Written, combinations, write
from support.worlds import World, registered_once

#: What only a person ends.
LEFT_ALONE = {"upload_abandoned"}
#: Turns of a quarter of an hour: the longest grace, three parts one after the other and their waits are inside.
QUARTERS = 40
#: Repairs a minute of a loop that may make few.
FEW = 7

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture
def world(database: Database, aws: AwsAccount) -> Iterator[World]:
    """A world with an agent that takes everything."""
    matter = Matter(database, uuid7(), uuid7())
    with ScriptedAgent([accept]) as agent:
        yield World.around(Desk(matter, aws), Loop(matter), agent_url=agent.url)


def unhealthy(world: World) -> set[str]:
    """Write documents of which each discrepancy is the verdict on one aspect or another, and others on which its grace
    still runs; returns which.
    """
    drawn = [one for one in combinations(7, mixed=500) if not one.refused()]
    random.Random(7).shuffle(drawn)
    matter = world.desk.matter
    world.poll()
    with world.desk.database.preparer.begin() as connection:
        now = connection.exec_driver_sql("SELECT app.clock()").scalar_one()
        written = write(connection, Writer(now), drawn[:1500])
    for purpose, schema in SCHEMA_OF.items():
        matter.prepare(
            "UPDATE agents.agent_run SET result_schema = :schema, result_key = 'agent-runs/' || run_id"
            " WHERE purpose = :purpose",
            schema=schema.value,
            purpose=purpose.value,
        )
    reconciler = world.loop.reconciler(Mode.OBSERVE)
    seen: set[tuple[str, object]] = set()
    kept = set()
    with world.desk.database.engine(Role.OBSERVER).connect() as connection:
        ground = reconciler.ground(connection)
        judged = judge(connection, [document.id for document in written], ground=ground)
    for document, verdicts in judged.items():
        for aspect, verdict in verdicts.items():
            young = verdict.settling is not None
            name = verdict.settling.name if verdict.settling else verdict.name
            key = (name, "young" if young else aspect)
            if name in DISCREPANCIES and key not in seen:
                seen.add(key)
                kept.add(document)
    _forget(world, [document for document in written if document.id not in kept])
    _send(world, [document for document in written if document.id in kept])
    return {name for name, aspect in seen if aspect != "young"}


def _forget(world: World, written: list[Written]) -> None:
    with world.desk.database.preparer.begin() as connection:
        connection.exec_driver_sql("SET LOCAL session_replication_role = 'replica'")
        for table, column in (
            ("ops.document_ingest_outbox", "document_id"),
            ("agents.agent_run", "document_id"),
            ("record.understanding_part", "document_id"),
            ("documents", "id"),
        ):
            connection.exec_driver_sql(
                f"DELETE FROM {table} WHERE {column} = ANY(%s)", ([each.id for each in written],)
            )


def _send(world: World, written: list[Written]) -> None:
    """What holds a message up is on the queue before it; everything else that was sent is truly lost."""
    for document in written:
        for before, ticket in zip(document.tickets, document.tickets[1:], strict=False):
            if ticket["life"] == "blocked":
                world.queue.update({before["id"]: None, ticket["id"]: None})


def converge(world: World, fuse: Fuse | None = None) -> None:
    """Turn after turn until nothing is under way but what waits for a person."""
    draw = random.Random(3)
    for _ in range(QUARTERS):
        if fuse is not None:
            fuse.light(draw.randrange(60, 600))
        try:
            world.loop.repair()
        except Crash:
            world.loop._kept.clear()  # another process takes its place
        if fuse is not None:
            fuse.light(0)
        world.turn()
        if not [row for row in world.under_way() if row[0] not in _of_a_person(world)]:
            return
    raise AssertionError(f"not at rest: {world.under_way()}")


def _of_a_person(world: World) -> set[object]:
    """Documents with a letter on a dead-letter queue."""
    rows = world.desk.matter.rows(
        "SELECT t.document_id FROM ops.dead_letter l JOIN ops.document_ingest_outbox t ON t.id = l.ticket_id"
        " WHERE l.outcome IS NULL"
    )
    return {row[0] for row in rows}


def redrive_dead_letters(world: World) -> int:
    """A person brings every dead letter back, or learns that nobody needs it; returns how many were there."""
    engine = world.desk.database.engine(Role.RECONCILER)
    with engine.connect() as connection:
        ground = ground_of(connection, settings=world.loop.settings)
        letters = deadletters.opened(connection, limit=10_000)
    master = Postmaster(
        engine=engine, settings=world.loop.settings, store=world.desk.store, reason="mended", requested_by="ada"
    )
    for letter in letters:
        assert master.redrive(letter, ground=ground) is not None
    return len(letters)


def assert_fixed_point(world: World) -> None:
    """Two more passes, the scrub's among them, find nothing but what is a person's, and change nothing."""
    for _ in range(2):
        world.turn(seconds=1800)
        result = world.loop.repair()
        assert set(result.found) <= LEFT_ALONE
        assert (result.repaired, result.errors, result.failures) == (0, 0, [])


@pytest.mark.parametrize(
    "hindered",
    [
        None,
        pytest.param("few repairs a minute", marks=pytest.mark.chaos),
        pytest.param("crashes", marks=pytest.mark.chaos),
    ],
)
def test_every_unhealthy_state_comes_to_rest(world: World, hindered: str | None) -> None:
    """Each discrepancy on each aspect, within its grace or long after it, whatever else is wrong with the document: loops
    and pipeline end all of it, and once a person has redriven the dead letters, those too. No repair fails or is made
    twice, so none undoes another; each effect is there once, and no ticket is left that nobody will handle. So too where
    a minute allows but a few repairs, and where the loop dies at any step of every pass.
    """
    # parts that nobody asked for are in no index: the scrub finds them
    world.loop = world.loop.limited(
        scrub_rate=1e6, **({"repairs_per_minute": FEW} if hindered == "few repairs a minute" else {})
    )
    made = unhealthy(world)
    assert not DISCREPANCIES.keys() - made, "not made"
    fuse = Fuse(world.desk.database.engine(Role.RECONCILER)) if hindered == "crashes" else None
    converge(world, fuse)
    assert redrive_dead_letters(world) >= len(DISCREPANCIES["ticket_dead_lettered"].aspects)
    converge(world, fuse)
    assert_fixed_point(world)
    ledger = world.loop.ledger()
    assert [entry for entry in ledger if entry.result == "error"] == []
    made_of = Counter(
        (entry.document_id, entry.aspect, entry.discrepancy, entry.detail["round"], entry.action)
        for entry in ledger
        if entry.requested_by != "ada"
    )
    assert [each for each, count in made_of.items() if count > 1] == []
    matter = world.desk.matter
    assert set(registered_once(world).values()) <= {1}
    assert (
        matter.rows(
            "SELECT run_id FROM ops.document_ingest_outbox WHERE event_type = 'document.artifact.delivered'"
            " AND outcome = 'done' GROUP BY run_id HAVING count(*) > 1"
        )
        == []
    )
    assert matter.rows("SELECT id, event_type, part FROM ops.document_ingest_outbox WHERE handled_at IS NULL") == []
