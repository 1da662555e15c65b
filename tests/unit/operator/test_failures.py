"""What is said of what kept a pass from being made."""

import pytest

from baton.db.errors import StartupRefusal
from baton.operator.failures import failure_of


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("trigger guard of documents is off", "Trigger guard of documents is off."),
        ("app.clock() was replaced", "app.clock() was replaced."),
    ],
)
def test_a_fault_is_told_as_a_sentence_and_a_name_as_it_is(fault: str, said: str) -> None:
    """Somebody copies the name into a terminal."""
    assert failure_of(StartupRefusal([fault])).message == said
