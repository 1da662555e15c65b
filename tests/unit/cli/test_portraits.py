"""A document's dossier as people see it."""

from io import StringIO
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rich.console import Console

from baton.cli import portraits
from baton.cli.dossiers import Dossier


def drawn(record: list[dict[str, Any]], *, everything: bool) -> list[str]:
    """The lines of the Record's section."""
    out = Console(file=StringIO(), width=100)
    out.print(portraits._record(cast("Dossier", SimpleNamespace(record=record)), everything=everything))
    return cast("StringIO", out.file).getvalue().splitlines()


@pytest.mark.parametrize(("everything", "dates"), [(False, 12), (True, 300)])
def test_a_document_full_of_dates_does_not_bury_the_rest(everything: bool, dates: int) -> None:
    """Some of each kind are shown and the rest is counted; all of them on demand."""
    entry = {"confidence": 0.95, "state": "applied", "target": None}
    record = [{**entry, "kind": "date", "value": f"day {number}"} for number in range(300)]
    lines = drawn([*record, {**entry, "kind": "tag", "value": "claim"}], everything=everything)
    assert sum("day " in line for line in lines) == dates
    assert any("claim" in line for line in lines)
    assert any("and 288 more: --all" in line for line in lines) is not everything
