"""``python -m baton.reconcilers.reference``: prints ``docs/discrepancies.md`` from the rows themselves."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from datetime import timedelta

from baton.reconcilers.aspects import PARTS, Aspect
from baton.reconcilers.classification import DISCREPANCIES, HEALTHY, ORDER
from baton.reconcilers.rows import Discrepancy, Healthy
from baton.reconcilers.situation import situation

_BEGINNING = """\
# Discrepancies

A document has aspects: its ingest, its registration, and each part of its understanding (card, sections, brief). For
each aspect the rows below are asked in order, and **the first that holds is the answer**. It is healthy, with one owner
of the next move, or one discrepancy with a repair; where nothing holds the answer is `state_impossible`, which is
reported and left to a person. While the grace of a discrepancy runs, the aspect is `settling`.

This page is generated: `python -m baton.reconcilers.reference > docs/discrepancies.md`.
"""
_LIVES = """\
## Where a ticket is

A long queue is no loss. What a ticket knows of its own life decides, by the database's clock alone:

| state | holds when |
|---|---|
| handled | a consumer closed it |
| parked | the relay gave it up, by its own fault |
| undispatched | it was not sent yet |
| dead | its message was found on the dead-letter queue |
| lost | (a) it was received, its hold and one visibility time more have passed, and a consumer of the lane is alive; or (b) it was never received, no earlier open ticket of the document stands before it, and it was sent before the queue was seen empty in three readings over 5 minutes or two visibility times with a consumer polling, or before a window of 15 minutes or two visibility times in which everything received for the first time had been sent later; or (c) it is older than the queue's retention, and a consumer is alive |
| waiting | it was sent, and not received |
| held | it was received |

Where no consumer is alive nothing is lost: the lane is stalled, is reported, and nothing of it is repaired.
"""


def page() -> Iterator[str]:
    """The page's parts."""
    yield _BEGINNING
    yield "## Order"
    yield ""
    yield from _orders()
    yield _LIVES
    yield "## Each discrepancy"
    yield ""
    for row in sorted(DISCREPANCIES.values(), key=lambda each: each.name):
        yield from _discrepancy(row)
    yield "## Healthy states"
    yield ""
    yield from _table(
        ("name", "aspects", "means", "next move", "due"),
        ((f"`{each.name}`", _aspects(each.aspects), each.meaning, each.owner, _due(each)) for each in HEALTHY.values()),
    )


def _orders() -> Iterator[str]:
    for title, aspect in (("Ingest", Aspect.INGEST), ("Registration", Aspect.REGISTRATION), ("Each part", Aspect.CARD)):
        names = [f"**{row.name}**" if isinstance(row, Discrepancy) else row.name for row in ORDER[aspect]]
        yield f"{title}: {' → '.join(names)} → `state_impossible`"
        yield ""


def _discrepancy(row: Discrepancy) -> Iterator[str]:
    yield f"### `{row.name}`"
    yield ""
    yield f"{_sentence(row.meaning)} Aspects: {_aspects(row.aspects)}."
    yield ""
    seen: set[tuple[str, ...]] = set()
    for aspect in row.aspects:
        texts = tuple(clause.text for clause in row.clauses(situation(aspect)))
        if texts not in seen:
            seen.add(texts)
            yield f"- holds when: {', and '.join(texts)}"
    indexes = sorted({f"`{each.index}`" for each in row.candidates})
    yield f"- grace: {_span(row.grace)}; severity: {row.severity}; next move: {row.owner}"
    yield f"- repair: {row.action}{'; it may lead to a paid agent run' if row.spends_run else ''}"
    yield f"- found by: {', '.join(indexes) or 'the backstop and the scrub'}"
    yield f"- reads: {', '.join(f'`{each}`' for each in sorted(row.reads))}"
    yield ""


def _table(head: Sequence[str], rows: Iterator[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def _aspects(aspects: Sequence[Aspect]) -> str:
    if len(aspects) == len(Aspect):
        return "all"
    named = [each.value for each in aspects if each not in PARTS]
    return ", ".join([*named, "each part"] if set(PARTS) <= set(aspects) else map(str, aspects))


def _due(row: Healthy) -> str:
    return "has a time" if row.due is not None else "none"


def _sentence(meaning: str) -> str:
    return f"{meaning[0].upper()}{meaning[1:]}."


def _span(span: timedelta) -> str:
    seconds = int(span.total_seconds())
    for unit, size in (("day", 86_400), ("hour", 3600), ("minute", 60), ("second", 1)):
        if seconds >= size and seconds % size == 0:
            count = seconds // size
            return f"{count} {unit}{'' if count == 1 else 's'}"
    return "none"


if __name__ == "__main__":
    sys.stdout.write("\n".join(page()).rstrip() + "\n")
