"""Looking for a run's artifact in the store and verifying it; done before any lock is taken.

What is found is one of a closed set. A store that fails is none of them: it is an error, never taken for absence.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from baton.aws.errors import ObjectMissing, ObjectTooLarge
from baton.aws.objects import Store
from baton.contract.errors import ArtifactError, ArtifactTooLarge
from baton.db.states import RunState
from baton.runs import messages
from baton.runs.rows import Run

if TYPE_CHECKING:
    from baton.contract.artifacts import Artifact


@dataclass(frozen=True, slots=True)
class Delivered:
    """An artifact that was verified from its size to the last member of its effects."""

    artifact: Artifact = field(repr=False)


@dataclass(frozen=True, slots=True)
class Rejected:
    """An artifact that is none."""

    code: str
    message: str
    """Lawyer-safe."""


@dataclass(frozen=True, slots=True)
class Expired:
    """The time for an artifact is over."""

    message: str = messages.EXPIRED
    """Lawyer-safe."""


Finding: TypeAlias = Delivered | Rejected | Expired

STATE_OF: dict[type[Delivered | Rejected | Expired], RunState] = {
    Delivered: RunState.DELIVERED,
    Rejected: RunState.REJECTED,
    Expired: RunState.EXPIRED,
}


def look(store: Store, run: Run, *, max_bytes: int) -> Delivered | Rejected | None:
    """Fetch and verify the run's artifact; ``None`` where there is none.

    :raises AwsError: the store is away or refuses; nothing is known.
    """
    try:
        data = store.read(run.result_key, limit=max_bytes)
    except ObjectMissing:
        return None
    except ObjectTooLarge:
        return Rejected(ArtifactTooLarge.code, ArtifactTooLarge.message)
    # a tenth of what a process weighs, for those who meet no artifact
    from baton.contract.artifacts import parse_artifact  # noqa: PLC0415

    try:
        artifact = parse_artifact(data, expected_schema=run.result_schema, run_id=run.run_id, max_bytes=max_bytes)
    except ArtifactError as error:
        return Rejected(error.code, error.message)
    return Delivered(artifact)
