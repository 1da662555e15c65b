"""Recognising scanned pages with tesseract, one page at a time, and judging the whole."""

import subprocess
import time
from collections.abc import Callable
from typing import Final

from PIL import Image

from baton.extraction.confinement import die_with_parent
from baton.extraction.jobs import Draft, Job
from baton.extraction.outcomes import ReasonCode, Source
from baton.extraction.text import clean

_WORD_LEVEL: Final = "5"
_COLUMNS: Final = 12
_OUTPUT_LIMIT: Final = 16 * 1024 * 1024


class Recognition:
    """Recognises pages of one document and keeps account of how well it went."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._unavailable = False
        self._incomplete = False
        self._weight = 0
        self._weighted = 0.0

    @property
    def available(self) -> bool:
        """Whether there is a recogniser and time left; rendering is wasted without."""
        if self._job.tesseract is None:
            self._unavailable = True
            return False
        if time.monotonic() >= self._job.ocr_ends:
            self._incomplete = True
            return False
        return True

    @property
    def reason(self) -> ReasonCode | None:
        """Why a person must look at the recognised pages, or None."""
        if self._unavailable:
            return ReasonCode.OCR_UNAVAILABLE
        if self._incomplete:
            return ReasonCode.OCR_INCOMPLETE
        if self._weight and self._weighted / self._weight < self._job.limits.min_confidence:
            return ReasonCode.LOW_CONFIDENCE
        return None

    def page(self, image: Callable[[], Image.Image], *, dpi: int) -> Draft:
        """Recognise one page; `image` is called only when it will be looked at."""
        nothing = Draft("", Source.OCR, None)
        if not self.available:
            return nothing
        table = self._run(image(), dpi=dpi)
        if table is None:
            self._incomplete = True
            return nothing
        text, confidence, weight = _words(table)
        if confidence is None:
            return nothing
        self._weight += weight
        self._weighted += confidence * weight
        return Draft(clean(text), Source.OCR, round(confidence, 1))

    def _run(self, image: Image.Image, *, dpi: int) -> str | None:
        tesseract = self._job.tesseract
        if tesseract is None:
            return None
        grey = image if image.mode == "L" else image.convert("L")
        # A portable grey map costs no compression on either side, and stdin no file.
        portable = b"P5\n%d %d\n255\n" % grey.size + grey.tobytes()
        left = self._job.ocr_ends - time.monotonic()
        command = [tesseract.program, "stdin", "stdout", "-l", "+".join(tesseract.languages)]
        command += ["--dpi", str(dpi), "--psm", "4", "-c", "tessedit_create_tsv=1"]
        try:
            done = subprocess.run(
                command,
                input=portable,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=max(1.0, min(self._job.limits.ocr_page_seconds, left)),
                check=False,
                preexec_fn=die_with_parent,
            )
        except (subprocess.TimeoutExpired, OSError):
            return None
        if done.returncode != 0 or len(done.stdout) > _OUTPUT_LIMIT:
            return None
        return done.stdout.decode("utf-8", "replace")


def _words(table: str) -> tuple[str, float | None, int]:
    """Text, mean confidence weighted by length, and that length, from tesseract's table."""
    lines: list[str] = []
    words: list[str] = []
    line_key: tuple[str, ...] = ()
    weight, weighted = 0, 0.0
    for row in table.splitlines():
        cells = row.split("\t", _COLUMNS - 1)
        if len(cells) != _COLUMNS or cells[0] != _WORD_LEVEL or not cells[11].strip():
            continue
        try:
            confidence = float(cells[10])
        except ValueError:
            continue
        key = tuple(cells[1:5])
        if key != line_key:
            lines.append(" ".join(words))
            if line_key and key[:3] != line_key[:3]:
                lines.append("")
            words, line_key = [], key
        words.append(cells[11])
        weight += len(cells[11])
        weighted += max(confidence, 0.0) * len(cells[11])
    lines.append(" ".join(words))
    return "\n".join(lines), (weighted / weight if weight else None), weight
