"""From a RegistrationRedrive to a request, and to what is read of it."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from baton.operator.conditions import Failure
from baton.operator.courses import FIRMS, Course
from baton.operator.crews import Crew
from baton.operator.redrives import Place, expired, is_dry, phase_of, request_of, unfinished
from baton.operator.roster import Change, Roster
from baton.operator.specs import Key, SpecInvalid, Wanted
from baton.operator.vocabulary import Phase, Reason
from baton.reconcilers.choosing import Choice
from baton.reconcilers.results import Guard
from baton.reconcilers.tallies import ABSENT, OTHERS, Counts
from baton.reconcilers.windows import Held

UID = "0198c0de-0000-7000-8000-000000000009"
FIRM = "0198c0de-0000-7000-8000-000000000001"
NOW = datetime(2030, 1, 31, 12, tzinfo=UTC)
SPEC: dict[str, Any] = {
    "reconcilerRef": {"name": "main"},
    "selector": {"firm": FIRM, "errors": ["run_expired"], "olderThan": "1h30m", "underWay": False},
    "reason": "The agent is back.",
    "requestedBy": "night shift",
    "ttlAfterFinished": "168h",
}


def wanted(*, uid: str = UID, status: dict[str, Any] | None = None, version: int = 1, **spec: Any) -> Wanted:
    """A redrive."""
    metadata = {"namespace": "legal", "name": uid[-4:], "uid": uid, "generation": 1, "resourceVersion": str(version)}
    return Wanted.of({"metadata": metadata, "spec": {**SPEC, **spec}, "status": status})


def said(course: Course, *, before: dict[str, Any] | None = None) -> dict[str, tuple[str, str]]:
    """Its conditions."""
    conditions = course.status(before=before, now=NOW)["conditions"]
    return {each["type"]: (each["status"], each["reason"]) for each in conditions}


def test_a_request_is_known_by_the_uid_of_its_resource() -> None:
    """So a resource is one request, whoever carries it out."""
    request = request_of(wanted())
    assert request.id == UUID(UID)
    assert request.selector.firm == UUID(FIRM)
    assert request.selector.older_than == timedelta(minutes=90)
    assert (request.reason, request.requested_by) == ("The agent is back.", "night shift")


@pytest.mark.parametrize(
    "spec",
    [
        {"selector": {}},
        {"selector": None},
        {"selector": {"firm": "nonsense"}},
        {"selector": {"firm": FIRM, "olderThan": "soon"}},
        {"selector": {"discrepancies": ["nonsense"]}},
        {"selector": {"errors": ["nonsense"]}},
        {"selector": {"aspects": ["card"]}},
        {"selector": "everything"},
    ],
    ids=str,
)
def test_a_selector_without_sense_is_the_resource_s_fault(spec: dict[str, Any]) -> None:
    """Even if the schema let it through."""
    with pytest.raises(SpecInvalid):
        request_of(wanted(**spec))


def test_only_a_plain_no_makes_more_than_a_plan() -> None:
    """Whatever cannot be read redrives nothing."""
    assert not is_dry(wanted())
    assert not is_dry(wanted(dryRun=False))
    assert is_dry(wanted(dryRun=True))
    assert is_dry(wanted(dryRun="no"))


def test_a_record_is_kept_for_as_long_as_it_asks() -> None:
    """Unfinished ones and those whose time cannot be read for good."""
    ended = {"state": "Finished", "finishedAt": "2030-01-24T12:00:00Z"}
    assert expired(wanted(status=ended), now=NOW)
    assert not expired(wanted(status=ended), now=NOW - timedelta(seconds=1))
    assert expired(wanted(status={**ended, "state": "Refused"}), now=NOW)
    for status in (None, {"state": "Running", "finishedAt": ended["finishedAt"]}, {**ended, "finishedAt": "soon"}):
        assert not expired(wanted(status=status), now=NOW + timedelta(days=9999))
    assert not expired(wanted(status=ended, ttlAfterFinished="soon"), now=NOW + timedelta(days=9999))


def test_what_is_read_of_each_phase() -> None:
    """By kstatus: under way is Reconciling, the end is Ready, what needs somebody is Stalled."""
    going = Course(generation=1, request_id=UID)
    assert said(going)["Reconciling"] == ("True", "Queued")
    held = Course(generation=1, request_id=UID, held=Held(Guard.SUSPENDED, "moving house", "ada", None))
    assert said(held)["Reconciling"] == ("True", "Suspended")
    assert said(held)["Suspended"] == ("True", "Suspended")
    away = Course(generation=1, request_id=UID, failure=Failure(Reason.DATABASE_UNREACHABLE, "Away."))
    assert said(away)["Reconciling"] == ("True", "DatabaseUnreachable")
    assert said(away)["Stalled"][0] == "False"
    missing = Course(generation=1, request_id=UID, failure=Failure(Reason.RECONCILER_MISSING, "None."))
    assert said(missing)["Stalled"] == ("True", "ReconcilerMissing")
    refused = Course(
        generation=1, request_id=UID, phase=Phase.REFUSED, failure=Failure(Reason.DATABASE_UNREACHABLE, "No.")
    )
    assert (said(refused)["Ready"][0], said(refused)["Stalled"][0]) == ("False", "True")
    assert refused.status(before=None, now=NOW)["finishedAt"] == "2030-01-31T12:00:00Z"
    for dry, failed, reason in ((True, 0, "Rehearsed"), (False, 0, "Finished"), (False, 2, "PartlyFailed")):
        done = Counts()
        done.note(FIRM, "busy", failed)
        ended = Course(generation=1, request_id=UID, phase=Phase.FINISHED, dry=dry, plan=Counts(), done=done)
        assert said(ended)["Ready"] == ("True", reason)
        assert said(ended)["Reconciling"] == ("False", "Settled")


def test_the_end_is_told_once() -> None:
    """However often it is told, it was when it was."""
    ended = Course(generation=1, request_id=UID, phase=Phase.FINISHED, dry=True, plan=Counts())
    before = ended.status(before=None, now=NOW)
    assert ended.status(before=before, now=NOW + timedelta(hours=1)) == before


def test_a_status_stays_small_whatever_was_chosen() -> None:
    """Firms beyond those that stand by themselves are counted together, and nothing gets lost on the way."""
    plan = Counts()
    for number in range(300):
        plan.note(f"firm {number:03d}", Choice.RETRY, number + 1)
    plan.note(OTHERS, ABSENT, 7)
    plan.note("firm 000", Choice.LEFT_UNDER_WAY, 3)
    status = Course(generation=1, request_id=UID, plan=plan).status(before=None, now=NOW)
    assert len(status["firms"]) == FIRMS + 1
    assert sum(each["planned"] for each in status["firms"]) == status["planned"] == 300 * 301 // 2
    assert status["plan"] == [{"action": "retry", "count": 300 * 301 // 2}]
    assert status["refused"] == [{"reason": "left: under way", "count": 3}, {"reason": ABSENT, "count": 7}]


def test_another_operator_s_plan_stays_beside_what_was_done() -> None:
    """The plan is not kept in the database: whoever goes on finds it in the status."""
    plan, done = Counts(), Counts()
    plan.note(FIRM, Choice.RETRY, 5)
    done.note(FIRM, Choice.RETRY, 2)
    before = Course(generation=1, request_id=UID, phase=Phase.PLANNED, plan=plan).status(before=None, now=NOW)
    after = Course(generation=1, request_id=UID, phase=Phase.RUNNING, done=done).status(before=before, now=NOW)
    assert after["firms"] == [{"firm": FIRM, "planned": 5, "redriven": 2}]
    assert "planned" not in after


class Hand:
    """A loop that only counts."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.did: list[str] = []

    def start(self) -> None:
        """Begin."""
        self.did.append("start")

    def wake(self) -> None:
        """Look."""
        self.did.append("wake")

    def stop(self) -> None:
        """End."""
        self.did.append("stop")

    def join(self, timeout: float) -> bool:
        """It has ended."""
        return True


def crew_of_hands() -> tuple[list[Hand], Crew, Roster]:
    """A crew, what it has made so far, and the roster that it follows."""
    made: list[Hand] = []

    def make(place: Place) -> Hand:
        made.append(Hand(place))
        return made[-1]

    crew = Crew(make)
    redrives = Roster(lambda *_: crew.changed(redrives))
    return made, crew, redrives


def test_a_reconciler_has_a_thread_while_it_has_something_unfinished() -> None:
    """Only on the replica that leads; one that finds nothing left ends, unless something came."""
    made, crew, redrives = crew_of_hands()
    place = Place("legal", "main")
    redrives.put(wanted())
    assert made == []
    crew.turned(redrives, leads=True)
    assert [(each.place, each.did[0]) for each in made] == [(place, "start")]
    assert not crew.may_end(redrives, made[0])
    crew.reconciler_changed(Change.SPEC, Key("legal", "main", "r"))
    crew.reconciler_changed(Change.STATUS, Key("legal", "main", "r"))
    assert made[0].did == ["start", "wake", "wake"]
    redrives.put(wanted(status={"state": "Finished"}, version=2))
    assert phase_of(redrives.all()[0]).final
    assert crew.may_end(redrives, made[0])
    redrives.put(wanted(uid=UID.replace("9", "8")))
    assert len(made) == 2
    crew.turned(redrives, leads=False)
    assert made[1].did[-1] == "stop"
    assert crew.end(within=0)


def test_a_thread_that_was_stopped_takes_no_later_one_with_it() -> None:
    """A replica that leads again has begun another for the same reconciler, while the first comes to its end."""
    made, crew, redrives = crew_of_hands()
    redrives.put(wanted())
    for leads in (True, False, True):
        crew.turned(redrives, leads=leads)
    redrives.put(wanted(status={"state": "Finished"}, version=2))
    assert crew.may_end(redrives, made[0])
    crew.turned(redrives, leads=False)
    assert made[1].did[-1] == "stop"


def test_redrives_of_one_reconciler_are_taken_in_the_order_of_their_creation() -> None:
    """And another namespace's are another's."""
    redrives = Roster(lambda *_: None)
    for number, (namespace, when) in enumerate((("legal", "2030"), ("legal", "2029"), ("other", "2028"))):
        metadata = {"namespace": namespace, "name": f"r{number}", "uid": f"u{number}", "resourceVersion": "1"}
        redrives.put(Wanted.of({"metadata": {**metadata, "creationTimestamp": when}, "spec": SPEC}))
    assert [each.key.name for each in unfinished(redrives, Place("legal", "main"))] == ["r1", "r0"]
