"""The reference page says what the dataclasses say."""

from pathlib import Path

import pytest

from baton.settings import reference
from baton.settings.loading import every_setting

PAGE = Path(__file__).parents[3] / "docs" / "settings.md"


@pytest.mark.check
def test_the_page_is_the_generated_one() -> None:
    """docs/settings.md is what `python -m baton.settings.reference` writes."""
    assert PAGE.read_text(encoding="utf-8") == reference.page()


def test_the_page_names_every_variable_once() -> None:
    """Each variable has exactly one row."""
    page = reference.page()
    for each in every_setting():
        assert page.count(f"| `{each.variable}` |") == 1


def test_the_page_is_written_where_it_is_told(tmp_path: Path) -> None:
    """The module's program writes the page to the file named."""
    target = tmp_path / "settings.md"
    assert reference.main([str(target)]) == 0
    assert target.read_text(encoding="utf-8") == reference.page()
