"""Files that were made to break readers each come to an end, and a sensible one."""

from collections.abc import Callable

import pytest

from baton.casefile.hostile import HostileFile, hostile_files, mutations
from baton.extraction.limits import Limits
from baton.extraction.outcomes import Reading, ReasonCode, Verdict

Read = Callable[..., Reading]
MIB = 1024 * 1024
LIMITS = Limits(memory_bytes=600 * MIB, wall_seconds=20, cpu_seconds=15, pages=2_000)
R = ReasonCode
EXPECTED: dict[str, set[ReasonCode | None]] = {
    "empty.pdf": {R.EMPTY},
    "blank.txt": {R.EMPTY},
    "locked.pdf": {R.ENCRYPTED},
    "locked.docx": {R.ENCRYPTED},
    "old.doc": {R.UNSUPPORTED},
    "cut.pdf": {R.TRUNCATED},
    "cut.docx": {R.TRUNCATED},
    "cut.msg": {R.CORRUPT},
    "cut.png": {R.TRUNCATED},
    "bomb.pdf": {R.TOO_MUCH_MEMORY},
    "bomb.docx": {R.EXPANDS_TOO_FAR},
    "liar.docx": {R.CORRUPT, R.EXPANDS_TOO_FAR},
    "bomb.png": {R.IMAGE_TOO_LARGE},
    "noise.pdf": {R.TRUNCATED},
    "noise.bin": {R.UNSUPPORTED},
    "loop.pdf": {R.CORRUPT, R.TOO_MANY_PAGES},
    "deep.pdf": {R.CORRUPT},
    "endless.pdf": {R.TOO_MUCH_MEMORY, R.TOO_SLOW, R.NO_TEXT, R.READER_CRASHED},
    "giant.pdf": {R.NO_TEXT, R.OCR_UNAVAILABLE},
    "laughs.docx": {R.CORRUPT},
    "deep.docx": {R.CORRUPT},
    "hollow.docx": {R.CORRUPT},
    "nested.eml": {R.CORRUPT},
    "parts.eml": {R.CORRUPT},
    "broken.eml": {None},
    "loop.tiff": {R.NO_TEXT, R.OCR_UNAVAILABLE, R.TOO_MANY_PAGES, R.LOW_CONFIDENCE},
    "nul.txt": {None},
    "line.txt": {None},
    "marks.txt": {None},
    "deep.html": {None},
    "names.pdf": {None},
}
FILES = list(hostile_files())


@pytest.mark.parametrize("file", FILES, ids=[file.name for file in FILES])
def test_a_hostile_file_ends_with_its_reason(read: Read, file: HostileFile) -> None:
    """Within its limits, with words for a lawyer, and without a retry for what cannot change."""
    reading = read(file.data, file.name, limits=LIMITS)
    assert reading.reason_code in EXPECTED[file.name]
    assert (reading.reason is None) == (reading.verdict is Verdict.INDEXED)


def test_every_hostile_kind_has_an_expectation() -> None:
    """None is made that no test knows."""
    assert {file.name for file in FILES} == set(EXPECTED)


@pytest.mark.parametrize("seed", [11, 12])
def test_mutated_files_never_break_the_reader(read: Read, seed: int) -> None:
    """A few bytes changed: read, reviewed or failed, never a crash, and the next file is read."""
    for file in mutations(seed, 63):
        reading = read(file.data, file.name, limits=LIMITS)
        assert reading.reason_code is not ReasonCode.READER_CRASHED, f"{file.name} of seed {seed}: {file.what}"
    assert read(b"still reading", "a.txt").pages[0].text == "still reading"
