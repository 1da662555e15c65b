"""What it means how a child ended."""

import json
import os
import signal
from dataclasses import dataclass
from typing import Any, Final

from baton.extraction import wire
from baton.extraction.limits import Limits
from baton.extraction.outcomes import Kind, Reading, ReasonCode, verdict_of

# pdfium ends itself when an allocation is refused; a child that had filled a good part of what
# it may have and then died by one of these died of memory, and would again.
_MEMORY_SIGNALS: Final = frozenset({-signal.SIGABRT, -signal.SIGTRAP, -signal.SIGILL, -signal.SIGSEGV, -signal.SIGBUS})
_MEMORY_SHARE: Final = 0.25


@dataclass(frozen=True, slots=True)
class End:
    """How a child ended, by the word of the zygote; None for all when that died too."""

    code: int | None = None
    killed: str | None = None
    peak_bytes: int = 0
    cpu_seconds: float = 0.0


def outcome(data: bytes, end: End, limits: Limits) -> Reading:
    """The reading that follows from an answer and from how its child ended."""
    # After SIGXCPU, which a library may block, the kernel kills two seconds later.
    out_of_time = end.code == -signal.SIGXCPU or (end.code == -signal.SIGKILL and end.cpu_seconds >= limits.cpu_seconds)
    if end.killed == "time" or out_of_time:
        return given_up(ReasonCode.TOO_SLOW)
    if end.code == wire.EXIT_MEMORY:
        return given_up(ReasonCode.TOO_MUCH_MEMORY)
    if end.code in _MEMORY_SIGNALS and end.peak_bytes > limits.memory_bytes * _MEMORY_SHARE:
        return given_up(ReasonCode.TOO_MUCH_MEMORY)
    if end.code != os.EX_OK:
        return given_up(ReasonCode.READER_CRASHED)
    try:
        return wire.decode(data, limits=limits)
    except wire.WireError:
        return given_up(ReasonCode.READER_CRASHED)


def given_up(reason: ReasonCode) -> Reading:
    """A reading of nothing, for a reason that is not the reader's."""
    return Reading(verdict=verdict_of(reason), kind=Kind.UNKNOWN, reason_code=reason)


def end_of(status: bytes | None) -> End:
    """What the zygote reported; an end without a word when it died before it could."""
    try:
        said: dict[str, Any] = json.loads(status or b"{}")
    except ValueError:
        return End()
    return End(**said)
