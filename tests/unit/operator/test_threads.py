"""The operator's threads: none dies unseen, and one that hangs takes no time from the others."""

import logging
import threading

import pytest

from baton.operator import threads
from baton.operator.threads import Group
from baton.telemetry.progress import Progress


@pytest.fixture(autouse=True)
def _no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_BACKOFF_MAX", 0.01)


def test_work_that_fails_is_begun_again(caplog: pytest.LogCaptureFixture) -> None:
    """And so is work that merely ends; each time it is said."""
    turns: list[int] = []
    third = threading.Event()

    def work(stop: threading.Event) -> None:
        turns.append(1)
        if len(turns) == 1:
            raise KeyError("items")
        if len(turns) == 3:
            third.set()
            stop.wait()

    with caplog.at_level(logging.ERROR), Group(Progress(), within=30) as group:
        group.begin("roll-call", work)
        assert third.wait(30)
    assert [record.getMessage() for record in caplog.records] == ["a thread ended by itself, and is begun again"] * 2


def test_all_are_told_before_any_is_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    """So one that hangs costs the group its time once, and the others none."""
    told, release = threading.Event(), threading.Event()

    def hangs(_stop: threading.Event) -> None:
        assert release.wait(30)

    def ends(stop: threading.Event) -> None:
        stop.wait()
        told.set()
        release.set()

    with caplog.at_level(logging.WARNING), Group(Progress(), within=30) as group:
        group.begin("hangs", hangs)
        group.begin("ends", ends)
    assert told.is_set()
    assert caplog.records == []


def test_what_does_not_end_is_left_behind(caplog: pytest.LogCaptureFixture) -> None:
    """It is missed by the probe all the same."""
    release, progress = threading.Event(), Progress()

    def hangs(_stop: threading.Event) -> None:
        release.wait(30)

    with caplog.at_level(logging.WARNING), Group(progress, within=0.0) as group:
        group.begin("hangs", hangs)
        group.add("others", lambda *, within: True)
    assert [record.getMessage() for record in caplog.records] == ["did not end in time; the process goes without it"]
    assert list(progress.liveness().details) == ["hangs"]
    release.set()


def test_what_ended_is_not_missed() -> None:
    """Neither by the liveness probe nor by the readiness probe."""
    progress = Progress()

    def ends(stop: threading.Event) -> None:
        stop.wait()

    with Group(progress, within=30) as group:
        group.begin("ends", ends)
        assert list(progress.liveness().details) == ["ends"]
    assert progress.liveness().details == {}
