"""The page about discrepancies is generated."""

from pathlib import Path

from baton.reconcilers.reference import page


def test_the_page_says_what_the_rows_say() -> None:
    """``docs/discrepancies.md`` is what the rows render to now."""
    written = Path(__file__).parents[3] / "docs" / "discrepancies.md"
    assert written.read_text(encoding="utf-8") == "\n".join(page()).rstrip() + "\n"
