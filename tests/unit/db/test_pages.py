"""The pages about the schema say what the schema is made from."""

from pathlib import Path

import pytest

from baton.db import pages
from baton.db.edges import EDGES

DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.check
def test_the_pages_are_what_the_module_writes() -> None:
    """Every edge, policy and trigger, and none that is gone."""
    assert (DOCS / "states.md").read_text(encoding="utf-8") == pages.states()
    text = (DOCS / "database.md").read_text(encoding="utf-8")
    assert pages.database(text) == text


def test_every_edge_has_its_line() -> None:
    """Once."""
    lines = [line for line in pages.states().splitlines() if line.startswith("| `")]
    assert len(lines) == len(set(lines)) == sum(len(edges) for edges in EDGES.values())


def test_every_ledger_has_both_guards() -> None:
    """Against changes, and against being emptied."""
    assert pages.guards().count("`app.refuse_rewrite()`") == 6
