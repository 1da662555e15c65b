"""Events: on transitions, once within a while, no more than a few a second, and never what they may not be."""

import threading
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from baton.operator.api import Api, ApiAway
from baton.operator.conditions import Failure, Seen
from baton.operator.events import BURST, QUIET, Herald, notes
from baton.operator.specs import Wanted
from baton.operator.statuses import Report
from baton.operator.vocabulary import Plural, Reason
from baton.reconcilers.results import Guard
from baton.reconcilers.windows import Held
from baton.runs.breaker import State

NOW = datetime(2030, 1, 31, 12, tzinfo=UTC)
UNREACHABLE = Failure(Reason.DATABASE_UNREACHABLE, "The database does not answer.")
SUSPENSION = Held(Guard.SUSPENDED, "moving house", "ada", None)


def status(**seen: Any) -> dict[str, Any]:
    """A status of what was seen."""
    return Report(seen=Seen(generation=1, **seen)).status(before=None, now=NOW)


def healthy(*, found: int = 0, **seen: Any) -> dict[str, Any]:
    """A status after a pass."""
    return status(passed=True, found={"run_missing": found}, breaker=seen.pop("breaker", State.CLOSED), **seen)


def said(before: dict[str, Any] | None, after: dict[str, Any]) -> list[tuple[str, str]]:
    """Kinds and reasons of the events between two statuses."""
    return [(note.kind.value, note.reason) for note in notes(before, after)]


def test_what_changes_is_said_and_what_stays_is_not() -> None:
    """With the condition's own words; a loop that only begins says nothing."""
    assert said(None, status()) == []
    assert said(status(), healthy()) == [("Normal", "InOrder")]
    assert said(healthy(), healthy()) == []
    assert said(healthy(), healthy(found=3)) == [("Warning", "DiscrepanciesFound")]
    assert said(healthy(found=3), healthy(found=7)) == []
    assert said(healthy(), healthy(failure=UNREACHABLE)) == [("Warning", "DatabaseUnreachable")]
    assert [note.message for note in notes(healthy(), status(failure=UNREACHABLE))] == ["The database does not answer."]
    assert said(healthy(), healthy(held=SUSPENSION)) == [("Normal", "Suspended")]
    assert said(healthy(held=SUSPENSION), healthy()) == [("Normal", "NotSuspended")]
    assert said(healthy(), healthy(breaker=State.OPEN)) == [("Warning", "BreakerOpen")]
    assert said(healthy(breaker=State.OPEN), healthy()) == [("Normal", "BreakerClosed")]


def test_a_suspension_does_not_end_where_nobody_knows() -> None:
    """While the database is away, what it holds is unknown."""
    away = status(failure=UNREACHABLE)
    assert said(healthy(held=SUSPENSION), away) == [("Warning", "DatabaseUnreachable")]


class Posts:
    """An API server that takes events."""

    def __init__(self) -> None:
        self.taken: list[dict[str, Any]] = []
        self.error: Exception | None = None
        self.enough = threading.Event()

    def create_event(self, namespace: str, body: dict[str, Any]) -> None:
        """Take one."""
        if self.error is not None:
            raise self.error
        self.taken.append(body)
        if body["reason"] == "BreakerOpen":
            self.enough.set()


class Clock:
    """Seconds, as they are set."""

    now = 0.0

    def __call__(self) -> float:
        """Now."""
        return self.now


@pytest.fixture
def posts() -> Posts:
    """Nothing was said."""
    return Posts()


def wanted(uid: str, standing: dict[str, Any] | None) -> Wanted:
    """A resource with a status."""
    metadata = {"namespace": "n", "name": "r", "uid": uid, "generation": 1, "resourceVersion": "7"}
    return Wanted.of({"metadata": metadata, "spec": {}, "status": standing})


def speak(herald: Herald, posts: Posts) -> list[dict[str, Any]]:
    """Have it say all that waits, up to an event that a breaker opened."""
    stop = threading.Event()
    herald.tell(Plural.RECONCILERS, wanted("last", healthy()), healthy(breaker=State.OPEN))
    thread = threading.Thread(target=herald.run, args=(stop,))
    thread.start()
    assert posts.enough.wait(30)
    stop.set()
    herald.end()
    thread.join(30)
    return posts.taken[:-1]


def test_a_resource_that_flaps_is_told_of_once_in_a_while(posts: Posts) -> None:
    """However often it comes and goes; after that again."""
    clock = Clock()
    herald = Herald(cast("Api", posts), identity="one", beat=lambda: None, clock=clock)
    for _ in range(20):
        herald.tell(Plural.RECONCILERS, wanted("u", healthy()), status(failure=UNREACHABLE))
        herald.tell(Plural.RECONCILERS, wanted("u", status(failure=UNREACHABLE)), healthy())
    clock.now = QUIET
    herald.tell(Plural.RECONCILERS, wanted("u", healthy()), status(failure=UNREACHABLE))
    assert [each["reason"] for each in speak(herald, posts)] == [
        "DatabaseUnreachable",
        "InOrder",
        "DatabaseUnreachable",
    ]
    first = posts.taken[0]
    assert (first["type"], first["regarding"]["uid"], first["regarding"]["kind"]) == (
        "Warning",
        "u",
        "RegistrationReconciler",
    )
    assert len({each["metadata"]["name"] for each in posts.taken}) == 4


def test_many_at_once_are_spread() -> None:
    """The first few at once, the others a few a second; a wait is computed, not slept here."""
    clock = Clock()
    herald = Herald(cast("Api", Posts()), identity="one", beat=lambda: None, clock=clock)
    waits = [herald._pace() for _ in range(BURST + 4)]
    assert waits == [0.0] * BURST + [0.5, 1.0, 1.5, 2.0]
    clock.now = 3600.0
    assert [herald._pace() for _ in range(BURST)] == [0.0] * BURST


def test_an_api_server_that_takes_no_event_holds_up_nothing(posts: Posts) -> None:
    """It is dropped."""
    posts.error = ApiAway("away")
    herald = Herald(cast("Api", posts), identity="one", beat=lambda: None)
    herald.tell(Plural.RECONCILERS, wanted("u", healthy()), status(failure=UNREACHABLE))
    taken = herald._take()
    assert taken is not None
    herald._post(*taken)
    assert herald._take() is None
