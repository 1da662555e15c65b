"""When a document is at rest: nobody but a person will move it any more."""

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest

from baton.cli.sights import Sight
from baton.db.states import ProcessingStatus, RegistrationStatus

_P, _R = ProcessingStatus, RegistrationStatus
SOON = datetime(2030, 1, 1, tzinfo=UTC)


def sight(processing: ProcessingStatus, registration: RegistrationStatus, **more: Any) -> Sight:
    """A document at one moment."""
    values: dict[str, Any] = {
        "id": uuid4(),
        "matter_id": uuid4(),
        "name": "a.pdf",
        "message": None,
        "next_attempt_at": None,
        "created_at": SOON,
        "deleted": False,
        "parts_ready": 0,
        "parts_failed": 0,
    }
    return Sight(processing=processing, registration=registration, **values | more)


@pytest.mark.parametrize(
    ("seen", "rest"),
    [
        (sight(_P.UPLOADED, _R.NOT_REQUESTED), False),
        (sight(_P.FAILED, _R.NOT_REQUESTED), True),
        (sight(_P.NEEDS_REVIEW, _R.NOT_REQUESTED), True),
        (sight(_P.INDEXED, _R.NOT_REQUESTED), False),
        (sight(_P.INDEXED, _R.REGISTERING), False),
        (sight(_P.INDEXED, _R.REGISTRATION_NEEDS_REVIEW), True),
        (sight(_P.INDEXED, _R.REGISTRATION_FAILED), True),
        (sight(_P.INDEXED, _R.REGISTRATION_FAILED, next_attempt_at=SOON), False),
        (sight(_P.INDEXED, _R.REGISTERED), False),
        (sight(_P.INDEXED, _R.REGISTERED, parts_ready=2), False),
        (sight(_P.INDEXED, _R.REGISTERED, parts_ready=2, parts_failed=1), True),
        (sight(_P.UPLOADED, _R.NOT_REQUESTED, deleted=True), True),
    ],
)
def test_rest(seen: Sight, *, rest: bool) -> None:
    """Not while any ticket, run, part or retry is still to come."""
    assert seen.at_rest is rest


def test_waiting_for_a_person_is_no_failure() -> None:
    """The exit code of --wait tells failures only."""
    assert sight(_P.FAILED, _R.NOT_REQUESTED).failed
    assert sight(_P.INDEXED, _R.REGISTRATION_FAILED).failed
    assert not sight(_P.INDEXED, _R.REGISTRATION_NEEDS_REVIEW).failed
    assert not sight(_P.NEEDS_REVIEW, _R.NOT_REQUESTED).failed
