"""Cleaning and cutting of text."""

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from baton.extraction.text import clean, is_storable, paginate, split

any_text = st.text(st.characters(exclude_categories=()), max_size=400)


@given(any_text)
def test_clean_text_can_be_stored_and_is_normal(text: str) -> None:
    """Whatever comes in, what comes out is NFC, encodes as UTF-8 and holds no NUL or control."""
    cleaned = clean(text)
    assert is_storable(cleaned)
    assert "\x00" not in cleaned.encode("utf-8").decode("utf-8")
    assert unicodedata.is_normalized("NFC", cleaned)
    assert not any(unicodedata.category(c) == "Cc" and c not in "\n\t\f" for c in cleaned)


@given(any_text)
def test_cleaning_twice_changes_nothing_more(text: str) -> None:
    """Cleaning is idempotent."""
    assert clean(clean(text)) == clean(text)


@given(st.text(st.sampled_from("ab \n\f"), max_size=300), st.integers(5, 50))
def test_pages_keep_every_word_and_stay_small(text: str, size: int) -> None:
    """Cutting loses no letter and no page is longer than allowed or blank."""
    pages = paginate(text, page_chars=size)
    assert "".join("".join(pages).split()) == "".join(text.split())
    assert all(0 < len(page) <= size and page.strip() for page in pages)


def test_a_word_broken_at_a_line_end_is_one_word_again() -> None:
    """The hyphen that pdfium marks disappears within a word and stays within a reference."""
    assert clean("inter\ufffe\r\nnational") == "international"
    assert clean("Suit CS\ufffe\r\n2041") == "Suit CS-\n2041"
    assert clean("Anglo\ufffeSaxon") == "Anglo-Saxon"


def test_line_ends_ligatures_and_soft_hyphens_are_normalised() -> None:
    """A search for plain words finds them however they were set."""
    assert clean("of\ufb01ce\r\nde\xadposit\rend\xa0\n") == "office\ndeposit\nend"


def test_text_is_cut_at_paragraphs_when_one_is_near() -> None:
    """A page ends where a paragraph does."""
    text = "\n\n".join(["word " * 120] * 12)
    assert all(page.rstrip().endswith("word") for page in split(text, size=3000))
    assert all(page.count("word") % 120 == 0 for page in split(text, size=3000))


def test_page_breaks_of_the_format_are_kept() -> None:
    """Pages of the original stay pages, even short ones."""
    assert paginate("one\ftwo\f\f\nthree", page_chars=100) == ("one", "two", "three")
