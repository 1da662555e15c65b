"""Liveness is the loops' heartbeat; readiness is what the parts say of themselves."""

from baton.telemetry.progress import Progress


class Clock:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        """The time."""
        return self.now


def test_a_silent_loop_is_not_alive_and_a_beat_revives_it() -> None:
    """Each loop is held to its own bound, and named when it is past it."""
    clock = Clock()
    progress = Progress(clock)
    progress.declare("relay", silent_after=5)
    progress.declare("sweeper", silent_after=60)
    clock.now += 5
    assert progress.liveness().healthy
    clock.now += 0.1
    finding = progress.liveness()
    assert not finding.healthy
    assert finding.details["relay"].startswith("silent for 5.1")
    assert finding.details["sweeper"].startswith("beat")
    progress.beat("relay")
    assert progress.liveness().healthy


def test_a_loop_that_never_beats_is_missed_from_its_declaration_on() -> None:
    """A thread that died before its first round is found."""
    clock = Clock()
    progress = Progress(clock)
    progress.declare("relay", silent_after=5)
    clock.now += 6
    assert not progress.liveness().healthy


def test_an_ended_loop_is_not_missed() -> None:
    """A loop that ends as it should neither fails liveness nor readiness."""
    clock = Clock()
    progress = Progress(clock)
    progress.declare("relay", silent_after=5)
    progress.started()
    progress.retire("relay")
    clock.now += 100
    assert progress.liveness().healthy
    assert progress.readiness().healthy


def test_ready_after_the_first_success_and_not_while_a_part_says_no() -> None:
    """Readiness begins with the first success, and gives the part's own reason when it ends."""
    progress = Progress(Clock())
    progress.started()
    progress.declare("relay", silent_after=5)
    assert progress.readiness().details == {"relay": "has not succeeded yet"}
    progress.ready("relay")
    assert progress.readiness().healthy
    progress.not_ready("database", "no connection")
    assert not progress.readiness().healthy
    assert progress.readiness().details["database"] == "no connection"
    progress.ready("database")
    assert progress.readiness().healthy


def test_nothing_is_ready_before_the_start_has_finished() -> None:
    """A process that runs nothing yet is not ready, though nothing complains."""
    progress = Progress(Clock())
    assert not progress.readiness().healthy
    progress.started()
    assert progress.readiness().healthy


def test_started_up_when_every_loop_has_gone_round_once() -> None:
    """Start-up ends with the first beat of the last loop."""
    progress = Progress(Clock())
    progress.declare("relay", silent_after=5)
    progress.started()
    assert progress.startup().details == {"relay": "has not gone round yet"}
    progress.beat("relay")
    assert progress.startup().healthy


def test_a_beat_of_an_undeclared_loop_is_harmless() -> None:
    """A loop that runs unwatched, as in a test, may beat."""
    progress = Progress(Clock())
    progress.beat("nobody")
    assert progress.liveness().details == {}


def test_a_process_that_was_ready_once_says_so() -> None:
    """Whatever became of it since; and a part may say in its own words that it works."""
    progress = Progress()
    progress.declare("loop", silent_after=10)
    progress.started()
    assert not progress.settled()
    progress.ready("loop", "does not pass: Conflict")
    assert progress.settled()
    assert progress.readiness().details == {"loop": "does not pass: Conflict"}
    progress.not_ready("loop", "away")
    assert progress.settled()
    assert not progress.readiness().healthy


def test_one_that_ends_takes_no_later_one_of_its_name_with_it() -> None:
    """Each of two is missed by itself, as long as it has not ended."""
    now = [0.0]
    progress = Progress(lambda: now[0])
    first = progress.declare_another("loop", silent_after=5)
    second = progress.declare_another("loop", silent_after=5)
    assert (first, second) == ("loop", "loop (2)")
    now[0] = 6.0
    progress.beat(first)
    assert progress.liveness().details["loop (2)"].startswith("silent")
    progress.retire(first)
    assert not progress.liveness().healthy
    progress.beat(second)
    assert progress.liveness().healthy
    assert progress.declare_another("loop", silent_after=5) == "loop"
