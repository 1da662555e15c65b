"""What lawyers read about runs: one sentence each, without ids, and with what to do where there is something to do."""

from __future__ import annotations

from typing import Final

REFUSED: Final = (
    "The registration agent declined to work on this document; please check the document and ask for it again, "
    "or register it by hand."
)
AWAY: Final = "The registration agent could not be reached and will be asked again."
EXHAUSTED: Final = (
    "The registration agent was asked several times and returned no result in time; please ask for it again later."
)
EXPIRED: Final = "The registration agent did not return a result in time."
UNREADABLE_STORE: Final = (
    "The result of the registration agent could not be fetched from storage; please ask for it again."
)
SUPERSEDED: Final = "A newer request to the registration agent took the place of this one."
ABANDONED: Final = (
    "The request to the registration agent could not be prepared because of a fault on our side; please ask for it "
    "again, and call support if it happens again."
)
