"""How tickets are carried and files are read: relay, consumers, extraction.

Durations are seconds and sizes bytes unless a field says otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from baton.settings import parsers
from baton.settings.fields import setting


class ScannerKind(StrEnum):
    """Which malware scanner is asked."""

    NONE = "none"
    CLAMD = "clamd"


@dataclass(frozen=True, slots=True)
class Relay:
    """One relay: it drains one lane of the outbox to its queue."""

    batch_size: int = setting(
        "BATON_RELAY_BATCH_SIZE",
        parsers.integer(1, 1000),
        default=100,
        meaning="Tickets claimed and sent together.",
        unit="tickets",
    )
    in_flight: int = setting(
        "BATON_RELAY_IN_FLIGHT",
        parsers.integer(1, 16),
        default=4,
        meaning="Batches on their way at once while there is a backlog; each has a database session.",
        unit="batches",
    )
    send_timeout: float = setting(
        "BATON_RELAY_SEND_TIMEOUT",
        parsers.seconds(0.5, 30),
        default=5.0,
        meaning="Total bound of one batch's sending; its rows are locked that long at most.",
        unit="seconds",
    )
    parallel_sends: int = setting(
        "BATON_RELAY_PARALLEL_SENDS",
        parsers.integer(1, 32),
        default=4,
        meaning="Calls of ten messages in flight at once; one document's stay in order.",
        unit="calls",
    )
    idle_wait: float = setting(
        "BATON_RELAY_IDLE_WAIT",
        parsers.seconds(0.05, 60),
        default=1.0,
        meaning="Longest wait between looks at an idle lane; a commit wakes it sooner.",
        unit="seconds",
    )
    backoff_initial: float = setting(
        "BATON_RELAY_BACKOFF_INITIAL",
        parsers.seconds(0.01, 60),
        default=0.5,
        meaning="First wait when the queue service or the database fails; doubled each time.",
        unit="seconds",
    )
    backoff_max: float = setting(
        "BATON_RELAY_BACKOFF_MAX",
        parsers.seconds(0.1, 600),
        default=30.0,
        meaning="Longest of those waits.",
        unit="seconds",
    )
    stalled_after: float = setting(
        "BATON_RELAY_STALLED_AFTER",
        parsers.seconds(1, 3600),
        default=60.0,
        meaning="Failing for this long with tickets due is called a stall.",
        unit="seconds",
    )
    max_attempts: int = setting(
        "BATON_RELAY_MAX_ATTEMPTS",
        parsers.integer(1, 100),
        default=5,
        meaning="Refusals by a ticket's own fault before it is parked.",
        unit="attempts",
    )


@dataclass(frozen=True, slots=True)
class Consumer:
    """A consumer's loop, the same for every queue."""

    workers: int = setting(
        "BATON_CONSUMER_WORKERS",
        parsers.integer(1, 64),
        default=4,
        meaning="Messages handled at once, of different documents.",
        unit="threads",
    )
    batch_size: int = setting(
        "BATON_CONSUMER_BATCH_SIZE",
        parsers.integer(1, 10),
        default=10,
        meaning="Messages asked for in one receive.",
        unit="messages",
    )
    receive_wait: int = setting(
        "BATON_CONSUMER_RECEIVE_WAIT",
        parsers.whole_seconds(0, 20),
        default=5,
        meaning="Long poll; a stop waits for it to end.",
        unit="seconds",
    )
    heartbeat: float | None = setting(
        "BATON_CONSUMER_HEARTBEAT",
        parsers.seconds(0.2, 3600),
        default=None,
        unset="a third of the visibility",
        meaning="How often the visibility of messages in work is extended.",
        unit="seconds",
    )
    shutdown_grace: float = setting(
        "BATON_CONSUMER_SHUTDOWN_GRACE",
        parsers.seconds(0, 3600),
        default=25.0,
        meaning="How long work in flight may go on after a stop; what is left becomes visible.",
        unit="seconds",
    )
    max_attempts: int = setting(
        "BATON_CONSUMER_MAX_ATTEMPTS",
        parsers.integer(1, 100),
        default=5,
        meaning="Attempts at one ticket, counted before the work, before it is given up visibly.",
        unit="attempts",
    )


@dataclass(frozen=True, slots=True)
class Extraction:
    """Limits for reading one file, each in a child process of its own."""

    memory_bytes: int = setting(
        "BATON_EXTRACTION_MEMORY",
        parsers.size(128 * 2**20, 64 * 2**30),
        default=2**30,
        meaning="Address space of the reading child process.",
        unit="bytes",
    )
    wall_seconds: float = setting(
        "BATON_EXTRACTION_WALL_TIME",
        parsers.seconds(1, 7200),
        default=600.0,
        meaning="Longest reading of one file, OCR included.",
        unit="seconds",
    )
    cpu_seconds: int = setting(
        "BATON_EXTRACTION_CPU_TIME",
        parsers.whole_seconds(1, 7200),
        default=600,
        meaning="Processor time of the reading child process.",
        unit="seconds",
    )
    max_pages: int = setting(
        "BATON_EXTRACTION_MAX_PAGES",
        parsers.integer(1, 100_000),
        default=5000,
        meaning="Pages of one document.",
        unit="pages",
    )
    ocr_language: str = setting(
        "BATON_OCR_LANGUAGE",
        parsers.text,
        default="eng",
        meaning="Languages for tesseract, joined by +.",
    )
    ocr_min_confidence: int = setting(
        "BATON_OCR_MIN_CONFIDENCE",
        parsers.integer(0, 100),
        default=60,
        meaning="Mean confidence below which a person must look.",
        unit="percent",
    )
    scanner: ScannerKind = setting(
        "BATON_SCANNER",
        parsers.one_of(ScannerKind),
        default=ScannerKind.NONE,
        meaning="Malware scanner: none or clamd.",
    )
    clamd_address: str = setting(
        "BATON_CLAMD_ADDRESS",
        parsers.scanner_address,
        default="unix:/run/clamav/clamd.ctl",
        meaning="Where ClamAV's daemon listens: unix:/path or tcp:host:port.",
    )
    clamd_timeout: float = setting(
        "BATON_CLAMD_TIMEOUT",
        parsers.seconds(0.1, 600),
        default=60.0,
        meaning="Longest silence of the scanner.",
        unit="seconds",
    )
