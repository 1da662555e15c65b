"""What the rows of the table say that they read is what they read."""

import pytest
from sqlalchemy import Column
from sqlalchemy.sql import visitors
from sqlalchemy.sql.elements import ColumnElement, NamedColumn

from baton.reconcilers.aspects import Aspect, Owner
from baton.reconcilers.classification import DISCREPANCIES, HEALTHY, ORDER, Row
from baton.reconcilers.rows import Discrepancy, Healthy
from baton.reconcilers.situation import Situation, situation

ROWS: dict[str, Row] = {**DISCREPANCIES, **HEALTHY}


def read(expression: ColumnElement[bool], s: Situation) -> set[str]:
    """The columns that an expression reads, as ``member.column``; a member of its own by its name alone."""
    names = {member: name for name, member in s.members().items()}
    found = set()
    for element in visitors.iterate(expression):
        table = getattr(element, "table", None)
        if not isinstance(element, Column | NamedColumn) or table is None:
            continue
        found.add(f"{names[table]}.{element.name}" if table in names else table.name)
    return found


@pytest.mark.parametrize("name", sorted(ROWS))
def test_a_row_reads_exactly_the_columns_that_it_declares(name: str) -> None:
    """Over all its aspects a row's condition reads what it declares: nothing that is not declared, and all that is."""
    row = ROWS[name]
    over_all: set[str] = set()
    for aspect in row.aspects:
        s = situation(aspect)
        found = read(row.condition(s), s)
        assert found <= row.reads, f"{aspect}: reads {sorted(found - row.reads)} without declaring it"
        over_all |= found
    assert over_all == row.reads, f"declares {sorted(row.reads - over_all)} and never reads it"


def test_an_undeclared_column_is_noticed() -> None:
    """The look above sees through functions, CASEs and EXISTS."""
    s = situation(Aspect.REGISTRATION)
    assert read(DISCREPANCIES["deleted_in_flight"].condition(s), s) == {"document.id", "document.deleted_at", "stray"}


@pytest.mark.parametrize("aspect", Aspect)
def test_a_row_stands_where_it_says(aspect: Aspect) -> None:
    """The order of an aspect holds the rows that name the aspect, each once."""
    rows = ORDER[aspect]
    assert len(set(map(id, rows))) == len(rows)
    assert {row.name for row in rows} == {name for name, row in ROWS.items() if aspect in row.aspects}


@pytest.mark.parametrize("name", sorted(ROWS))
def test_whoever_has_a_move_has_a_time_for_it(name: str) -> None:
    """A healthy row without a due time is terminal, a person's, or another aspect's; no discrepancy is without one."""
    row = ROWS[name]
    if isinstance(row, Healthy):
        timeless = row.owner in (Owner.NOBODY, Owner.PERSON, Owner.INGEST, Owner.REGISTRATION)
        assert (row.due is None) == timeless
    else:
        assert isinstance(row, Discrepancy)
        assert (row.repair is None) == (row.owner is Owner.PERSON)
