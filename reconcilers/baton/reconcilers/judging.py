"""Judging documents: every aspect of each by the one classification, and what of it is a finding."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TypeAlias
from uuid import UUID

from sqlalchemy import Connection

from baton.db.connect import prepared
from baton.reconcilers.aspects import Aspect, Severity
from baton.reconcilers.classification import Verdict, classify
from baton.reconcilers.planning import Ground
from baton.reconcilers.results import Finding

Judged: TypeAlias = Mapping[UUID, Mapping[Aspect, Verdict]]


def judge(
    connection: Connection,
    document_ids: Sequence[UUID],
    *,
    ground: Ground,
    aspects: Collection[Aspect] = tuple(Aspect),
) -> Judged:
    """The verdict on the aspects of these documents; those that are not there are left out.

    The questions are prepared: planning them takes longer than to answer them about a few documents.
    """
    with prepared(connection):
        return classify(
            connection, document_ids, lanes=ground.lanes, graces=ground.graces, now=ground.now, aspects=aspects
        )


def findings(judged: Judged, *, ground: Ground) -> Iterator[Finding]:
    """What disagrees, and what is impossible."""
    for document_id, verdicts in judged.items():
        for aspect, verdict in verdicts.items():
            if verdict.healthy:
                continue
            since = None if verdict.due is None else verdict.due - ground.graces[verdict.name]
            severity = verdict.severity or Severity.CRITICAL
            yield Finding(document_id=document_id, aspect=aspect, name=verdict.name, severity=severity, since=since)


def stands(judged: Judged, finding: Finding) -> bool:
    """Whether a finding is still the verdict."""
    verdict = judged.get(finding.document_id, {}).get(finding.aspect)
    return verdict is not None and verdict.name == finding.name
