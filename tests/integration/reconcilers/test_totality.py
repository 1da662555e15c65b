"""Totality: every combination of what the conditions read has one answer, and it is the table's."""

from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from sqlalchemy import select

from baton.db import clock
from baton.db.access import Role
from baton.reconcilers.aspects import Owner
from baton.reconcilers.classification import DISCREPANCIES, HEALTHY, ORDER, Verdict, classify, parameters, verdict_of
from baton.reconcilers.graces import graces
from baton.reconcilers.situation import situation
from support.databases import Database
from support.situations import KINDS, Combination, Table, Writer, Written, combinations, lanes, write

#: More than the table needs, fewer than anybody would wait for.
MOST = 200_000
MIXED = 2_000
SEED = 20_261_130
#: Owners whose move has no time of its own: nobody's, a person's, and another aspect's, which has one.
TIMELESS = (Owner.NOBODY, Owner.PERSON, Owner.INGEST, Owner.REGISTRATION)

pytestmark = pytest.mark.timeout(600)


def named(verdict: Verdict) -> str:
    """The verdict as the CASE says it."""
    if verdict.settling is not None:
        return f"healthy:settling:{verdict.settling.name}"
    return f"healthy:{verdict.name}" if verdict.healthy else verdict.name


def test_every_combination_has_one_answer_and_it_is_the_tables(database: Database, tell: Callable[[str], None]) -> None:
    """All combinations of one aspect's columns, with the others drawn at random, under every state of the lanes: each is
    healthy with one owner and a due time, or one discrepancy, or refused by a constraint. None is impossible.
    """
    given = list(combinations(SEED, mixed=MIXED))
    assert len(given) <= MOST
    refused = [each for each in given if each.refused()]
    made = [each for each in given if not each.refused()]
    with database.preparer.begin() as connection:
        now = clock.now(connection)
        writer = Writer(now, history=True)
        written = write(connection, writer, made)
        connection.exec_driver_sql("ANALYZE")
    _refuses(database, writer, refused)
    counts: Counter[tuple[str, str]] = Counter()
    wrong: list[str] = []
    for kind in KINDS:
        # the two watermarks are compared alike, and where nobody consumes nothing is lost: half of them will do
        for part in _batches(written[:: 2 if kind in ("overtaken", "stalled") else 1]):
            with database.engine(Role.OBSERVER).connect() as connection:
                found = classify(
                    connection, [each.id for each in part], lanes=lanes(now, kind), graces=graces(), now=now
                )
            for each in part:
                expected = Table(each, kind, now).expected()
                for aspect, verdict in found[each.id].items():
                    name = named(verdict)
                    counts[aspect, name] += 1
                    if name != expected[aspect]:
                        wrong.append(f"{aspect} {kind}: {name}, not {expected[aspect]}: {each.combination}")
                    assert verdict.due is not None or verdict.impossible or verdict.owner in TIMELESS
    tell(_table(counts, made=len(made), refused=len(refused)))
    assert not wrong, f"{len(wrong)} differ, for instance:\n" + "\n".join(wrong[:8])
    seen = {name for _, name in counts}
    assert seen >= DISCREPANCIES.keys(), f"never made: {DISCREPANCIES.keys() - seen}"
    assert seen >= {f"healthy:{name}" for name in HEALTHY}, "a healthy row was never made"
    for aspect, rows in ORDER.items():
        for row in rows:
            name = row.name if row.name in DISCREPANCIES else f"healthy:{row.name}"
            assert counts[aspect, name], f"{aspect}: {name} was never made"


def _refuses(database: Database, writer: Writer, refused: list[Combination]) -> None:
    """A combination that is said to be refused is refused, by that constraint; one of each kind is tried."""
    kinds: dict[tuple[object, ...], Combination] = {}
    for each in refused:
        parts = tuple((of.state, of.axis.next_attempt) for of in each.parts.values())
        kinds.setdefault((each.refused(), each.processing, each.status, each.status_pass, parts), each)
    for (constraint, *_), each in list(kinds.items())[:300]:
        with database.preparer.connect() as connection:
            with pytest.raises(Exception) as caught:  # noqa: PT011 - which one is asked below
                write(connection, writer, [each])
            assert str(constraint) in str(caught.value)
            connection.rollback()


def _batches(written: list[Written], size: int = 2000) -> Iterator[list[Written]]:
    for start in range(0, len(written), size):
        yield written[start : start + size]


def _table(counts: Counter[tuple[str, str]], *, made: int, refused: int) -> str:
    impossible = sum(count for (_, name), count in counts.items() if name == "state_impossible")
    lines = [
        f"{made} combinations made, {refused} refused by constraints; verdicts under {len(KINDS)} states of lanes:",
        *(f"  {aspect:<13}{name:<42}{count:>8}" for (aspect, name), count in sorted(counts.items())),
        f"  state_impossible: {impossible}",
    ]
    return "\n".join(lines)


def test_no_discrepancy_can_be_left_out(database: Database) -> None:
    """Without any one row, what it should have found is called something else, in every aspect that has it."""
    with database.preparer.begin() as connection:
        now = clock.now(connection)
        made = [each for each in combinations(SEED + 1, mixed=0) if not each.refused()]
        written = write(connection, Writer(now), made)
    values = parameters(lanes=lanes(now, "emptied"), graces=graces(), now=now)
    told = {each.id: Table(each, "emptied", now).expected() for each in written}
    for name, row in DISCREPANCIES.items():
        for aspect in row.aspects:
            given = [document for document, expected in told.items() if expected[aspect] == name][:5]
            assert given, f"{aspect}: no such document was made"
            s = situation(aspect)
            rest = verdict_of([each for each in ORDER[aspect] if each is not row], s)
            statement = select(rest).select_from(s.source).where(s.document.c.id.in_(given))
            with database.engine(Role.OBSERVER).connect() as connection:
                answers = connection.execute(statement, values).scalars().all()
            assert len(answers) == len(given)
            assert name not in answers
