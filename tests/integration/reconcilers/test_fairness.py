"""A flood of one discrepancy, or of one firm, leaves the others their part of a minute's repairs."""

from dataclasses import replace
from uuid import UUID

import pytest

from baton.db.states import Part
from baton.reconcilers.classification import DISCREPANCIES
from baton.reconcilers.results import Guard
from baton.settings.agents import Breaker
from support.matters import Matter
from support.reconciling import Loop
from support.situations import Axis, Combination, Writer, write

#: Queued, with neither ticket nor mark.
ERASED = Combination(status="queued", axis=Axis(ticket="missing", ticket_mark=False))


@pytest.fixture
def loop(loop: Loop) -> Loop:
    """On lanes that are consumed, at the beginning of a minute."""
    _minute(loop, 0)
    return loop


def _minute(loop: Loop, number: int) -> None:
    """Move to the first second of a minute, counted from the next one."""
    to_next = float(loop.matter.rows("SELECT 60.1 - extract(second FROM clock_timestamp())")[0][0])
    loop.database.move_clock(to_next + 60 * number)
    loop.consumers()


def _flood(loop: Loop, count: int, *, of: Matter | None = None) -> None:
    """Documents of one firm whose request was never written."""
    with loop.database.preparer.begin() as connection:
        writer = Writer(connection.exec_driver_sql("SELECT app.clock()").scalar_one())
        writer.firm = (of or loop.matter).firm
        last = connection.exec_driver_sql("SELECT coalesce(max(id), 0) FROM ops.document_ingest_outbox")
        writer.begin_after(int(last.scalar_one()))
        write(connection, writer, [ERASED] * count)


def _lapsed_part(loop: Loop) -> UUID:
    """A registered document whose card waits for a ticket that is gone."""
    document = loop.matter.registered()
    loop.matter.prepare(
        "DELETE FROM ops.document_ingest_outbox o USING record.understanding_part p"
        " WHERE p.ticket_id = o.id AND p.document_id = :id AND p.part = :part",
        id=document,
        part=Part.CARD.value,
    )
    loop.matter.prepare(
        "UPDATE record.understanding_part SET ticket_id = NULL, state_since = app.clock() - interval '1 day'"
        " WHERE document_id = :id AND part = :part",
        id=document,
        part=Part.CARD.value,
    )
    return document


def test_a_flood_of_one_discrepancy_leaves_the_others_their_part_of_the_same_minute(loop: Loop) -> None:
    """Each that is alone of its kind is repaired in the first pass, wherever it stands in the order, and the flood has the
    rest: nothing of the minute is wasted, and nothing goes beyond it.
    """
    _flood(loop, 60)
    alone = [*loop.lost(), _lapsed_part(loop)]
    limited = loop.limited(repairs_per_minute=12, page_size=10, backstop_rows=0)
    planned = limited.observe()
    ready = {each.finding.document_id for each in planned.plans if each.ready}
    result = limited.repair()
    assert [len(loop.ledger(document)) for document in alone] == [1, 1]
    assert (result.repaired, result.refused[Guard.RATE]) == (12, 50)
    assert {entry.document_id for entry in loop.ledger()} == ready


def test_what_no_index_shows_has_its_part_too(loop: Loop) -> None:
    """A ticket that was handled without its effect, which the backstop alone finds, behind a flood that every pass sees."""
    _flood(loop, 60)
    document, ticket = loop.queued()
    loop.matter.prepare(
        "UPDATE ops.document_ingest_outbox SET dispatched_at = app.clock() - interval '2 hours', handled_at ="
        " app.clock() - interval '1 hour', outcome = 'done' WHERE id = :id",
        id=ticket.id,
    )
    assert loop.limited(repairs_per_minute=12).repair().repaired == 12
    assert len(loop.ledger(document)) == 1


def test_fewer_repairs_than_discrepancies_go_round_by_minutes(loop: Loop) -> None:
    """With one repair a minute the flood has most minutes, and what is alone of its kind one of the first few."""
    _flood(loop, 2 * len(DISCREPANCIES))
    (alone,) = loop.lost()
    limited = loop.limited(repairs_per_minute=1, backstop_rows=0)
    for minute in range(len(DISCREPANCIES)):
        _minute(loop, minute)
        limited.repair()
        if loop.ledger(alone):
            return
    pytest.fail("the one document waits behind the flood")


@pytest.mark.parametrize(
    "flood",
    [
        300,
        pytest.param(20_000, marks=[pytest.mark.chaos, pytest.mark.timeout(300)]),
    ],
)
def test_a_firm_with_one_document_does_not_wait_behind_a_firm_with_thousands(loop: Loop, flood: int) -> None:
    """Of the same discrepancy, and younger than all of them: repaired by the first pass. So many at once would open the
    breaker, which is not what is asked about here.
    """
    loop = replace(loop, settings=replace(loop.settings, breaker=Breaker(discrepancy_cap=10 * flood)), _kept={})
    _flood(loop, flood)
    small = loop.matter.sibling(firm=UUID(int=7))
    other = replace(loop, matter=small, _kept={})
    document, _ = other.queued()
    other.erase_request(document)
    small.prepare(
        "UPDATE documents SET registration_status_since = app.clock() - interval '1 hour' WHERE id = :id", id=document
    )
    result = loop.limited(repairs_per_minute=20, backstop_rows=0).repair()
    assert result.repaired == 20
    assert len(loop.ledger(document)) == 1
