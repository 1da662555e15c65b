"""What one file may cost before reading it is given up."""

from dataclasses import dataclass, field

_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on reading one file. They hold for the child process and all it starts.

    The same file under the same limits meets the same end, so a limit that is hit is an
    outcome and never a reason to try again.
    """

    wall_seconds: float = 900.0
    """From the start of the child to its end; then its whole process group is killed."""
    cpu_seconds: int = 600
    """Processor time of each process of the group."""
    memory_bytes: int = 1024 * _MIB
    """Address space of each process of the group."""
    written_bytes: int = 64 * _MIB
    """Largest file that any process of the group may write."""
    file_bytes: int = 512 * _MIB
    """Larger files are not opened at all."""
    result_bytes: int = 128 * _MIB
    """Largest answer that the child may give."""
    expanded_bytes: int = 256 * _MIB
    """What the compressed parts of one file may unpack to, all together."""
    pages: int = 5_000
    """Pages of a document, or frames of an image."""
    text_chars: int = 20_000_000
    """Characters of all pages together."""
    page_chars: int = 200_000
    """Characters of one page; a longer one is split, so that a search vector holds it."""
    pixels: int = 120_000_000
    """Pixels of one image."""
    ocr_page_seconds: float = 60.0
    """What recognising one page may take; then the page counts as unreadable."""
    ocr_share: float = 0.8
    """Share of `wall_seconds` after which no further page is recognised; what was read stays."""
    min_confidence: float = 60.0
    """Mean confidence (0 to 100) of recognised text below which a person must look."""
    languages: tuple[str, ...] = field(default=("eng",))
    """Tesseract's names of the languages to recognise; those not installed are left out."""
