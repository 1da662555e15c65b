"""`kill -9` of any of Baton's own processes at any time during the demo does not change its end."""

import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.demos import running_demo
from support.waiting import wait_until

pytestmark = pytest.mark.chaos

#: An agent that dies forgets what it had accepted; that is healed by who repairs, not by who is killed here.
_SPARED = frozenset({"agent"})


@pytest.mark.timeout(580)
@pytest.mark.parametrize("seed", [1, 2])
def test_whoever_is_killed_whenever_the_end_is_the_same(state_folder: Path, seed: int) -> None:
    """A dozen blows at random moments on random processes: every document at its verdict, each effect once."""
    rng = random.Random(seed)
    struck: list[str] = []
    with running_demo(state_folder, "--json", "--patience", "500") as demo:
        demo.wait_for("batch 1: uploading", timeout=200)
        pause = _pauses(rng)
        while len(struck) < 12 and demo.process.poll() is None:
            wait_until(lambda: next(pause) or demo.process.poll() is not None, 60, interval=0.1, what="the next blow")
            victims = {name: pid for name, pid in demo.members().items() if name not in _SPARED}
            if victims:
                name = rng.choice(sorted(victims))
                os.kill(victims[name], signal.SIGKILL)
                struck.append(name)
        assert demo.end(timeout=540) == 0, demo.lines
    summary = demo.summary()
    assert summary["ok"] is True, struck
    assert len(struck) >= 6
    assert demo.left() == []


def _pauses(rng: random.Random) -> Iterator[bool]:
    """False for one to four seconds of asking ten times a second, then True, over and over."""
    while True:
        for _ in range(rng.randrange(10, 40)):
            yield False
        yield True
