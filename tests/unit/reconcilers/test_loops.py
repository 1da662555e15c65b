"""The loop around the passes: nothing that a pass meets ends it, and it can be woken, watched and stopped."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from baton.reconcilers import loops
from baton.reconcilers.loops import LOOP, Loop
from baton.reconcilers.results import Mode, PassResult
from baton.telemetry.progress import Progress
from support.waiting import wait_until

pytestmark = pytest.mark.timeout(60)


class Passes:
    """In place of a reconciler: counts passes, and lets each do as it is told."""

    def __init__(self, act: Callable[[int], None] = lambda _number: None) -> None:
        self.made = 0
        self._act = act

    def run_once(self, stop: threading.Event | None = None) -> PassResult:
        """One pass."""
        del stop
        self.made += 1
        self._act(self.made)
        return PassResult(mode=Mode.OBSERVE)


def started(loop: Loop) -> tuple[threading.Thread, threading.Event]:
    """The loop in a thread of its own."""
    stop = threading.Event()
    thread = threading.Thread(target=loop.run, args=(stop,), daemon=True)
    thread.start()
    return thread, stop


def ended(thread: threading.Thread, stop: threading.Event) -> None:
    """Stop it, and see that it ends."""
    stop.set()
    thread.join(30)
    assert not thread.is_alive()


def looped(passes: Passes, **options: Any) -> Loop:
    """A loop over these passes."""
    return Loop(passes, **{"interval": 3600.0, **options})  # type: ignore[arg-type]


def test_it_makes_a_pass_at_once_and_another_when_it_is_woken() -> None:
    """Its interval is an hour; a change of what is wanted need not wait for it."""
    passes = Passes()
    loop = looped(passes)
    thread, stop = started(loop)
    wait_until(lambda: passes.made == 1, 20, what="the first pass")
    loop.wake()
    wait_until(lambda: passes.made == 2, 20, what="the pass that was asked for")
    ended(thread, stop)
    assert passes.made == 2


def test_a_wake_during_a_pass_is_another_pass_right_after_it() -> None:
    """What changed while it was under way may not have been seen by it."""
    loop: Loop
    passes = Passes(lambda number: loop.wake() if number == 1 else None)
    loop = looped(passes)
    thread, stop = started(loop)
    wait_until(lambda: passes.made == 2, 20, what="the second pass")
    ended(thread, stop)


def test_a_pass_that_fails_is_made_again_and_the_process_says_so_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    """Alive all the while, not ready until a pass succeeds, and never asleep for its interval."""
    monkeypatch.setattr(loops, "_BACKOFF_MAX", 0.05)
    unready: list[bool] = []
    progress = Progress()
    progress.started()

    def act(number: int) -> None:
        unready.append(not progress.readiness().healthy)
        if number < 4:
            raise RuntimeError("planted")

    passes = Passes(act)
    thread, stop = started(looped(passes, progress=progress))
    wait_until(lambda: progress.readiness().healthy, 20, what="it is ready")
    assert (passes.made, unready) == (4, [True] * 4)
    assert progress.liveness().healthy
    ended(thread, stop)


def test_what_comes_before_a_pass_fails_it_and_what_comes_after_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Queues that cannot be made again keep a pass from being made; a metric that cannot be shown undoes none."""
    monkeypatch.setattr(loops, "_BACKOFF_MAX", 0.05)
    tries: list[str] = []

    def before() -> None:
        tries.append("before")
        if len(tries) < 3:
            raise RuntimeError("planted")

    def after(_result: PassResult) -> None:
        tries.append("after")
        raise RuntimeError("planted")

    passes = Passes()
    progress = Progress()
    progress.started()
    thread, stop = started(looped(passes, progress=progress, before=before, after=after))
    wait_until(lambda: "after" in tries, 20, what="a pass was shown")
    wait_until(lambda: progress.readiness().healthy, 20, what="it is ready")
    ended(thread, stop)
    assert (tries, passes.made) == (["before"] * 3 + ["after"], 1)


def test_a_loop_that_ended_is_no_loop_that_hangs() -> None:
    """Its sign of life is taken back, so that a process that shuts down is not killed for it."""
    now = [0.0]
    progress = Progress(clock=lambda: now[0])
    passes = Passes()
    thread, stop = started(looped(passes, progress=progress))
    wait_until(lambda: passes.made == 1, 20, what="the first pass")
    ended(thread, stop)
    now[0] = 1e6
    assert progress.liveness().healthy
    assert LOOP not in progress.liveness().details
