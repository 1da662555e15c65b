"""The end of the demo: where every document is, whether that was said beforehand, whether each effect happened once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from baton.demo.arrivals import Filed
from baton.demo.blows import Blow
from baton.demo.mishaps import Mishap
from baton.demo.once import Count
from baton.demo.sights import Sight


@dataclass(frozen=True, slots=True)
class Verdict:
    """One document at the end."""

    filed: Filed
    sight: Sight

    @property
    def right(self) -> bool:
        """Whether it is at the verdict written down for it, with nothing left to do."""
        return self.sight.at_rest and self.sight.as_expected(self.filed.exhibit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """All that the demo has to show."""

    verdicts: Sequence[Verdict]
    counts: Sequence[Count]
    blows: Sequence[Blow]
    mishaps: Sequence[Mishap]
    starts: Mapping[str, int]
    """How often each process was started."""
    seconds: float
    recogniser: bool
    """Whether scanned pages could be read on this machine."""
    finished: bool
    """Whether every batch came to rest, every blow fell and everything was healed, in time."""

    @property
    def elsewhere(self) -> tuple[Verdict, ...]:
        """Documents that are not where they must be."""
        return tuple(each for each in self.verdicts if not each.right)

    @property
    def right(self) -> bool:
        """Whether everything is as it must be."""
        healed = all(each.ok for each in self.mishaps)
        return self.finished and healed and not self.elsewhere and all(each.once for each in self.counts)


def summarise(
    filed: Sequence[Filed],
    seen: Mapping[UUID, Sight],
    *,
    counts: Sequence[Count],
    blows: Sequence[Blow],
    mishaps: Sequence[Mishap] = (),
    starts: Mapping[str, int],
    seconds: float,
    recogniser: bool,
    finished: bool,
) -> Summary:
    """Put the end together; a document that is not seen counts as never begun."""
    return Summary(
        verdicts=tuple(Verdict(each, seen.get(each.id, Sight())) for each in filed),
        counts=counts,
        blows=blows,
        mishaps=mishaps,
        starts=starts,
        seconds=seconds,
        recogniser=recogniser,
        finished=finished,
    )


def as_json(summary: Summary) -> dict[str, Any]:
    """The summary for machines."""
    sights = [each.sight for each in summary.verdicts]
    return {
        "ok": summary.right,
        "finished": summary.finished,
        "seconds": round(summary.seconds, 1),
        "scans_readable": summary.recogniser,
        "statuses": {
            "processing": dict(Counter(each.processing.value for each in sights)),
            "registration": dict(Counter(each.registration.value for each in sights)),
        },
        "documents": [_document(each) for each in summary.verdicts],
        "once": [
            {"what": each.what, "rows": each.rows, "too_many": each.too_many, "ok": each.once}
            for each in summary.counts
        ],
        "killed": [{"process": each.name, "while": each.doing, "seen_at_work": each.at_work} for each in summary.blows],
        "mishaps": [{"what": each.what, "found": each.found, "ok": each.ok} for each in summary.mishaps],
        "starts": dict(summary.starts),
    }


def _document(verdict: Verdict) -> dict[str, Any]:
    exhibit, sight = verdict.filed.exhibit, verdict.sight
    return {
        "id": str(verdict.filed.id),
        "name": exhibit.name,
        "kind": exhibit.kind,
        "batch": verdict.filed.batch,
        "processing_status": sight.processing.value,
        "registration_status": sight.registration.value,
        "expected": {
            "processing_status": exhibit.expected_processing,
            "registration_status": exhibit.expected_registration,
            "because": exhibit.why,
        },
        "ok": verdict.right,
        "message": sight.message or None,
        "runs": sight.runs,
        "applied_effects": sight.applied,
        "parts_ready": sight.parts_ready,
        "open_tickets": sight.open_tickets,
    }
