"""Opening spans, the only way in Baton: ``with spans.span(SpanName.…):``.

What happens inside the block is the caller's and passes through untouched, its exceptions
included; what happens in telemetry stays here. Of an exception a span keeps the type, never the
text, which may hold content.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from enum import Enum
from typing import Any, Final
from uuid import UUID

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.trace import Link, Status, StatusCode

from baton.telemetry import traceparents, tracing
from baton.telemetry.names import KINDS, Attribute, SpanKind, SpanName

_logger = logging.getLogger("baton.telemetry")

_ALLOWED: Final = frozenset(Attribute)
_WORD: Final = re.compile(r"[A-Za-z0-9_.:/+-]{1,128}", re.ASCII)
_KINDS: Final = {kind: trace.SpanKind[kind.name] for kind in SpanKind}


class Span:
    """An open span. Every method is safe to call at any time and never raises."""

    __slots__ = ("_context_token", "_otel")

    def __init__(self, otel: trace.Span | None, context_token: Any = None) -> None:
        self._otel = otel
        self._context_token = context_token

    @property
    def traceparent(self) -> str | None:
        """Its ``traceparent``; ``None`` when it could not be opened."""
        if self._otel is None:
            return None
        return traceparents.written(self._otel.get_span_context())

    def set(self, attribute: Attribute, value: object) -> None:
        """Note an id, closed word or count; anything else is dropped."""
        try:
            carried = _carried(attribute, value)
            if self._otel is not None and carried is not None:
                self._otel.set_attribute(str(attribute), carried)
        except Exception as error:  # noqa: BLE001 - nothing of telemetry reaches the work
            _quiet(error)

    def fail(self, reason: type[BaseException] | str) -> None:
        """Mark it failed, by the type of an exception or a closed word."""
        try:
            if self._otel is not None:
                word = reason if isinstance(reason, str) else reason.__name__
                self.set(Attribute.ERROR, word)
                self._otel.set_status(Status(StatusCode.ERROR))
        except Exception as error:  # noqa: BLE001 - as above
            _quiet(error)

    def _close(self) -> None:
        try:
            if self._context_token is not None:
                otel_context.detach(self._context_token)
            if self._otel is not None:
                self._otel.end()
        except Exception as error:  # noqa: BLE001 - as above
            _quiet(error)


@contextmanager
def span(
    name: SpanName,
    *,
    kind: SpanKind | None = None,
    attributes: Mapping[Attribute, object] | None = None,
    links: Iterable[str | None] = (),
    parent_traceparent: str | None = None,
) -> Iterator[Span]:
    """Open a span for the length of a block.

    Args:
        name: which one.
        kind: ``None`` takes the kind registered for the name.
        attributes: ids, closed words and counts; anything else is dropped.
        links: ``traceparent`` texts of other traces that this work belongs to, such as those of
            a batch's tickets. The first hundred different ones are kept; the number of the
            others is noted.
        parent_traceparent: the trace that this work continues, as it came with a ticket or
            message; ``None`` or nonsense continues the span that is open here, if any.
    """
    opened = _opened(name, kind, attributes or {}, links, parent_traceparent)
    try:
        yield opened
    except BaseException as error:
        opened.fail(type(error))
        raise
    finally:
        opened._close()  # noqa: SLF001 - the block's end, not the caller's business


def current_traceparent() -> str | None:
    """The ``traceparent`` of the span that is open here; ``None`` outside of any."""
    try:
        return traceparents.written(trace.get_current_span().get_span_context())
    except Exception as error:  # noqa: BLE001 - nothing of telemetry reaches the work
        _quiet(error)
        return None


def _opened(
    name: SpanName,
    kind: SpanKind | None,
    attributes: Mapping[Attribute, object],
    links: Iterable[str | None],
    parent_traceparent: str | None,
) -> Span:
    otel: trace.Span | None = None
    try:
        known = SpanName(name)
        parent = traceparents.read(parent_traceparent)
        base = None
        if parent is not None:
            base = trace.set_span_in_context(trace.NonRecordingSpan(parent))
        kept, dropped = _links(links)
        carried = {
            str(attribute): value
            for attribute, raw in attributes.items()
            if (value := _carried(attribute, raw)) is not None
        }
        if dropped:
            carried[Attribute.LINKS_DROPPED.value] = dropped
        otel = tracing.tracer().start_span(
            known.value,
            context=base,
            kind=_KINDS[kind or KINDS[known]],
            attributes=carried,
            links=kept,
            record_exception=False,
            set_status_on_exception=False,
        )
        token = otel_context.attach(trace.set_span_in_context(otel))
    except Exception as error:  # noqa: BLE001 - nothing of telemetry reaches the work
        _quiet(error)
        return Span(otel)
    return Span(otel, token)


def _links(traceparents_: Iterable[str | None]) -> tuple[list[Link], int]:
    """The links to keep, and how many were one too many."""
    kept: dict[tuple[int, int], Link] = {}
    dropped = 0
    for text in traceparents_:
        context = traceparents.read(text)
        if context is None or (context.trace_id, context.span_id) in kept:
            continue
        if len(kept) < tracing.MOST_LINKS:
            kept[context.trace_id, context.span_id] = Link(context)
        else:
            dropped += 1
    return list(kept.values()), dropped


def _carried(attribute: Attribute, value: object) -> str | int | float | bool | None:
    """The value as it may go out; ``None``: it may not."""
    if attribute not in _ALLOWED:
        return None
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, str) and _WORD.fullmatch(value):
        return value
    return None


def _quiet(error: Exception) -> None:
    """Leave a trace of telemetry's own trouble, where that is still possible."""
    with suppress(Exception):  # there is nowhere left to tell it
        _logger.debug("a span was lost: %s", type(error).__name__)
