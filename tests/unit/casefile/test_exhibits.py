"""The case file is the same for the same seed and becomes what it says it does."""

import shutil
from pathlib import Path
from time import monotonic

import pytest

from baton.casefile.exhibits import Exhibit, make_case_file
from baton.casefile.hostile import mutations
from baton.extraction.outcomes import Kind
from baton.extraction.reading import FileReader


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    """And another seed gives others."""
    one, two, other = (make_case_file(tmp_path / str(n), seed=seed) for n, seed in enumerate((1, 1, 2)))
    assert [e.name for e in one] == [e.name for e in two]
    assert all(a.path.read_bytes() == b.path.read_bytes() for a, b in zip(one, two, strict=True))
    assert sum(a.path.read_bytes() != b.path.read_bytes() for a, b in zip(one, other, strict=True)) > len(one) // 2


def test_mutations_are_the_same_for_the_same_seed() -> None:
    """A failure can be made again."""
    assert list(mutations(5, 40)) == list(mutations(5, 40))
    assert list(mutations(5, 40)) != list(mutations(6, 40))


def test_a_case_file_is_made_quickly_and_has_every_kind(tmp_path: Path) -> None:
    """In seconds, of at least fifteen documents with names of their own."""
    started = monotonic()
    exhibits = make_case_file(tmp_path, seed=3)
    assert monotonic() - started < 30
    assert len(exhibits) >= 15
    assert len({e.name for e in exhibits}) == len(exhibits)
    assert {e.expected_registration for e in exhibits} == {"registered", "registration_needs_review", "not_requested"}
    contents = [e.path.read_bytes() for e in exhibits]
    assert len(set(contents)) == len(contents) - 1


def _read(reader: FileReader, exhibit: Exhibit) -> str:
    reading = reader.read(exhibit.path, content_type=exhibit.content_type, name=exhibit.name)
    if exhibit.kind.startswith("PDF, 300"):
        assert len(reading.pages) == 300
    if "named .pdf" in exhibit.kind:
        assert reading.kind is Kind.DOCX
    return reading.verdict.value


@pytest.mark.parametrize("with_ocr", [True, False])
def test_every_exhibit_is_read_as_expected(tmp_path: Path, with_ocr: bool) -> None:
    """With a text recogniser and without one."""
    if with_ocr and shutil.which("tesseract") is None:
        pytest.skip("needs tesseract")
    exhibits = make_case_file(tmp_path, seed=4, ocr=with_ocr)
    with FileReader(tesseract="tesseract" if with_ocr else None) as reader:
        verdicts = {e.name: _read(reader, e) for e in exhibits}
    assert verdicts == {e.name: e.expected_processing for e in exhibits}
