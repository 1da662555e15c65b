"""Statuses are written once, onto what they were computed from, and wait for nobody."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from baton.operator.api import Api, ApiAway, ApiConflict, ApiMissing
from baton.operator.conditions import Failure, Seen
from baton.operator.roster import Roster
from baton.operator.scribe import Scribe
from baton.operator.specs import Key, Wanted
from baton.operator.statuses import Report
from baton.operator.vocabulary import Plural, Reason
from baton.reconcilers.results import Mode, PassResult

KEY = Key("n", "r", "u")
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Server:
    """One resource; a status onto an old version is refused."""

    def __init__(self) -> None:
        self.version = 1
        self.uid = "u"
        self.status: dict[str, Any] = {}
        self.writes = 0
        self.error: Exception | None = None
        self.during: Callable[[], object] | None = None
        """Done at each write, before its answer."""

    def resource(self, plural: Plural, namespace: str, name: str) -> dict[str, Any]:
        """Read it."""
        if self.error is not None:
            raise self.error
        metadata = {"namespace": namespace, "name": name, "uid": self.uid, "generation": 1}
        return {"metadata": {**metadata, "resourceVersion": str(self.version)}, "spec": {}, "status": dict(self.status)}

    def write_status(
        self, plural: Plural, namespace: str, name: str, *, status: dict[str, Any], version: str
    ) -> dict[str, Any]:
        """Write its status."""
        if self.during is not None:
            self.during()
        if self.error is not None:
            raise self.error
        if version != str(self.version):
            raise ApiConflict("changed")
        self.version += 1
        self.writes += 1
        self.status = {name: value for name, value in {**self.status, **status}.items() if value is not None}
        return self.resource(plural, namespace, name)


@pytest.fixture
def server() -> Server:
    """A resource without a status."""
    return Server()


@pytest.fixture
def roster(server: Server) -> Roster:
    """It is known."""
    made = Roster(lambda change, key: None)
    made.put(Wanted.of(server.resource(Plural.RECONCILERS, "n", "r")))
    return made


@pytest.fixture
def scribe(server: Server, roster: Roster) -> Scribe:
    """Nothing is on the desk."""
    return Scribe(cast("Api", server), roster, beat=lambda: None)


def report(*, passed: bool = True, failure: Failure | None = None) -> Report:
    """Something to say."""
    return Report(seen=Seen(generation=1, passed=passed, failure=failure))


def passed_at(ended: datetime) -> Report:
    """The same of a pass that ended then."""
    return Report(seen=Seen(generation=1, passed=True, found={}), result=PassResult(mode=Mode.OBSERVE), ended=ended)


def ready(server: Server) -> str:
    """The reason of its condition Ready."""
    return str(server.status["conditions"][0]["reason"])


def test_the_same_is_not_written_twice(server: Server, scribe: Scribe) -> None:
    """However often it is said."""
    for _ in range(3):
        scribe.leave(KEY, report())
        assert scribe.write_all()
    assert server.writes == 1


def test_of_two_reports_the_later_is_written(server: Server, scribe: Scribe) -> None:
    """And the one that was overtaken never."""
    scribe.leave(KEY, report(failure=Failure(Reason.DATABASE_UNREACHABLE, "So.")))
    scribe.leave(KEY, report(passed=False))
    scribe.write_all()
    assert (server.writes, ready(server)) == (1, "FirstPass")


def test_what_changed_meanwhile_is_read_again(server: Server, scribe: Scribe) -> None:
    """And nothing is written over it."""
    server.version = 7
    scribe.leave(KEY, report(passed=False))
    assert scribe.write_all()
    assert (server.writes, ready(server)) == (1, "FirstPass")


def test_a_status_waits_for_a_server_that_is_away(server: Server, scribe: Scribe) -> None:
    """Unless a later one took its place meanwhile."""
    server.error = ApiAway("away")
    server.during = lambda: scribe.leave(KEY, report(failure=Failure(Reason.CONFLICT, "So.")))
    scribe.leave(KEY, report(passed=False))
    assert not scribe.write_all()
    server.error = server.during = None
    assert scribe.write_all()
    assert (server.writes, ready(server)) == (1, "Conflict")


def test_a_resource_that_is_gone_is_forgotten(server: Server, scribe: Scribe, roster: Roster) -> None:
    """No event has to say so."""
    server.error = ApiMissing("gone")
    scribe.leave(KEY, report())
    assert scribe.write_all()
    assert roster.all() == []


def test_another_resource_of_the_same_name_gets_nothing(server: Server, scribe: Scribe, roster: Roster) -> None:
    """Its status is not that of the one before."""
    server.uid, server.version = "another", 9
    scribe.leave(KEY, report())
    assert scribe.write_all()
    assert server.writes == 0
    assert roster.latest("u") is None


@pytest.mark.parametrize(
    "moment",
    ["2001-01-31t12:00:00z", "2001-01-31T12:00:00x5Z", "2001-01-31T12:00:00+99:99", "0000-01-01T00:00:00Z", None, 7],
)
def test_a_status_with_a_moment_that_is_none_is_put_right(
    server: Server, scribe: Scribe, roster: Roster, moment: object
) -> None:
    """The API server takes most of these for a moment, Python takes none."""
    scribe.leave(KEY, passed_at(NOON))
    assert scribe.write_all()
    server.status["lastPass"] = {**server.status["lastPass"], "endedAt": moment}
    server.version += 1
    roster.put(Wanted.of(server.resource(Plural.RECONCILERS, "n", "r")))
    scribe.leave(KEY, passed_at(NOON + timedelta(seconds=1)))
    assert scribe.write_all()
    assert server.status["lastPass"]["endedAt"] == "2026-01-01T12:00:01Z"


@pytest.mark.parametrize("jump", [timedelta(days=400), -timedelta(days=400)], ids=["ahead", "back"])
def test_a_clock_that_jumps_is_followed(server: Server, scribe: Scribe, jump: timedelta) -> None:
    """In either direction: else the last pass would lie in the future until the clock is there again."""
    scribe.leave(KEY, passed_at(NOON))
    assert scribe.write_all()
    scribe.leave(KEY, passed_at(NOON + timedelta(seconds=30)))
    assert scribe.write_all()
    assert (server.writes, server.status["lastPass"]["endedAt"]) == (1, "2026-01-01T12:00:00Z")
    scribe.leave(KEY, passed_at(NOON + jump))
    assert scribe.write_all()
    assert server.writes == 2


class Hopeless(Report):
    """One that cannot be made into a status."""

    def status(self, *, before: Mapping[str, Any] | None, now: datetime) -> dict[str, Any]:
        """It fails."""
        raise ValueError("a fault of ours")


def test_a_status_that_cannot_be_made_leaves_no_other_lying(server: Server, scribe: Scribe, roster: Roster) -> None:
    """Of all that lie on the desk each is tried, whichever comes first."""
    scribe.leave(KEY, report())
    for number in range(5):
        key = Key("n", f"r{number}", f"u{number}")
        roster.put(Wanted(key=key, generation=1, version="1", spec={}))
        scribe.leave(key, Hopeless(seen=Seen(generation=1)))
    assert scribe.write_all()
    assert server.writes == 1
