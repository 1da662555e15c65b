"""The W3C ``traceparent``: reading and writing it.

One is stored with every ticket and travels as a message attribute; what comes back from a queue
or the database may be anything.
"""

from __future__ import annotations

import re
from typing import Final

from opentelemetry.trace import SpanContext, TraceFlags

# Later versions may append fields, which a reader of version 00 passes over (W3C Trace Context).
_SHAPE: Final = re.compile(
    r"(?P<version>[0-9a-f]{2})-(?P<trace>[0-9a-f]{32})-(?P<span>[0-9a-f]{16})"
    r"-(?P<flags>[0-9a-f]{2})(?P<more>-.*)?",
    re.ASCII,
)


def written(context: SpanContext) -> str | None:
    """The header's text for a span's context; ``None`` for one that names no trace."""
    if not context.is_valid:
        return None
    # Version 00 knows one flag; the SDK's own further ones are left to later versions.
    flags = context.trace_flags & TraceFlags.SAMPLED
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{flags:02x}"


def read(traceparent: object) -> SpanContext | None:
    """The context that a header's text names; ``None`` for anything that is no such text."""
    if not isinstance(traceparent, str) or len(traceparent) > 512:
        return None
    match = _SHAPE.fullmatch(traceparent)
    if match is None or match["version"] == "ff":
        return None
    if match["version"] == "00" and match["more"]:
        return None
    context = SpanContext(
        trace_id=int(match["trace"], 16),
        span_id=int(match["span"], 16),
        is_remote=True,
        trace_flags=TraceFlags(int(match["flags"], 16) & TraceFlags.SAMPLED),
    )
    return context if context.is_valid else None
