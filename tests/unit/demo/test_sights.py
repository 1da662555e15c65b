"""When a document is at rest, and when it is where it must be."""

from pathlib import Path

import pytest

from baton.casefile.exhibits import Exhibit
from baton.db.states import ProcessingStatus as P
from baton.db.states import RegistrationStatus as R
from baton.demo.sights import Sight


def exhibit(*, processing: P = P.INDEXED, registration: R = R.REGISTERED) -> Exhibit:
    """Something that was written down beforehand."""
    return Exhibit(
        name="letter.pdf",
        path=Path("letter.pdf"),
        kind="PDF",
        content_type="application/pdf",
        expected_processing=processing.value,
        expected_registration=registration.value,
        why="an example",
    )


RESTING = (
    Sight(processing=P.FAILED),
    Sight(processing=P.NEEDS_REVIEW),
    Sight(processing=P.INDEXED, registration=R.REGISTERED, parts_ready=3),
    Sight(processing=P.INDEXED, registration=R.REGISTERED, parts_ready=2, parts_failed=1),
    Sight(processing=P.INDEXED, registration=R.REGISTRATION_NEEDS_REVIEW),
    Sight(processing=P.INDEXED, registration=R.REGISTRATION_FAILED),
)
MOVING = (
    Sight(),
    Sight(processing=P.EXTRACTING),
    Sight(processing=P.INDEXED),
    Sight(processing=P.INDEXED, registration=R.REGISTERING),
    Sight(processing=P.INDEXED, registration=R.REGISTERED, parts_ready=2),
    Sight(processing=P.FAILED, open_tickets=1),
)


@pytest.mark.parametrize("sight", RESTING, ids=str)
def test_a_document_that_waits_for_nobody_rests(sight: Sight) -> None:
    """Ends, and whatever a person must decide."""
    assert sight.at_rest


@pytest.mark.parametrize("sight", MOVING, ids=str)
def test_a_document_with_work_left_does_not_rest(sight: Sight) -> None:
    """An open ticket, a status in between, a part that is not made."""
    assert not sight.at_rest


def test_another_status_than_expected_is_elsewhere() -> None:
    """Both axes must agree with what was written down, and no part may have failed."""
    there = Sight(processing=P.INDEXED, registration=R.REGISTERED, parts_ready=3)
    assert there.as_expected(exhibit())
    assert not there.as_expected(exhibit(registration=R.REGISTRATION_NEEDS_REVIEW))
    assert not there.as_expected(exhibit(processing=P.FAILED))
    assert not Sight(processing=P.INDEXED, registration=R.REGISTERED, parts_failed=1).as_expected(exhibit())
