"""What a lawyer reads when a result did not reach the Record: one sentence each, no ids, and what to do.

A settled run brings its settler's own sentence; these stand in where it has none, and for what only an apply can meet.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from baton.db.states import FailureKind, RunState

REJECTED: Final = (
    "The registration agent returned a result that could not be accepted; it is asked again while attempts are left."
)
EXPIRED: Final = "The registration agent did not return a result in time; it is asked again while attempts are left."
UNAPPLIABLE: Final = (
    "The registration agent's result could not be entered in the Record; please ask for it again, "
    "and tell support if it happens twice."
)
OUTRUN: Final = "A newer result had been entered in the Record already; please ask for it again."
GIVEN_UP: Final = (
    "The registration agent's result could not be entered in the Record after several attempts; "
    "please ask for it again."
)

KIND_OF: Final[Mapping[RunState, FailureKind]] = MappingProxyType(
    {RunState.REJECTED: FailureKind.RESULT_REJECTED, RunState.EXPIRED: FailureKind.RUN_EXPIRED}
)
"""The settled states that end in a failure. Both may go better another time, so both are retryable."""

FALLBACK: Final[Mapping[RunState, str]] = MappingProxyType({RunState.REJECTED: REJECTED, RunState.EXPIRED: EXPIRED})
"""For a settled run that has no sentence of its own."""

DUPLICATE_IN_MATTER: Final = "The same file was uploaded to this matter before; please check which of the two to keep."
DUPLICATE_IN_FIRM: Final = (
    "The same file was uploaded to another matter of the firm before; please check that it belongs here."
)
REVIEW: Final = "The registration of this document needs a person's decision."
