"""Thousands of broken files: none hangs the reader, kills it, or takes more memory than it was given."""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from baton.casefile.hostile import good_files, mutations
from baton.extraction.limits import Limits
from baton.extraction.outcomes import Reading, ReasonCode, Verdict
from baton.extraction.reading import FileReader

pytestmark = pytest.mark.chaos

MIB = 1024 * 1024
LIMITS = Limits(memory_bytes=600 * MIB, wall_seconds=20, cpu_seconds=15, pages=200)
SEED, MOST, SECONDS = 20_241_130, 1_800, 60.0
KINDS = len(good_files())
OWN_GROWTH = 100 * MIB


class Watch:
    """The most memory that any reading process was seen with, in bytes of address space."""

    def __init__(self) -> None:
        self.peak = 0
        self.seen = 0

    def look(self) -> None:
        """At every process below this one that reads a file: the zygote's children and theirs."""
        for process in psutil.Process().children(recursive=True):
            try:
                if process.rlimit(psutil.RLIMIT_AS)[0] != LIMITS.memory_bytes:
                    continue  # the zygote, or a child that is not confined yet
                self.peak = max(self.peak, process.memory_info().vms)
                self.seen += 1
            except psutil.Error:
                continue


@contextmanager
def watched() -> Iterator[Watch]:
    """Look again and again for the length of a block."""
    watch, stop = Watch(), threading.Event()

    def run() -> None:
        while not stop.wait(0.02):
            watch.look()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield watch
    finally:
        stop.set()
        thread.join()


def judged(reading: Reading, what: str) -> None:
    """One of the three verdicts, and words for whatever is not simply read."""
    assert reading.verdict in set(Verdict), what
    assert (reading.reason is None) == (reading.verdict is Verdict.INDEXED), what


def test_mutated_files_of_every_kind_come_to_a_verdict_within_their_limits(
    tmp_path: Path, request: pytest.FixtureRequest, tell: Callable[[str], None]
) -> None:
    """Each file ends within its time, with a verdict, and the same reader then reads a good one."""
    seed = request.config.getoption("--seed")
    seed = SEED if seed is None else seed
    verdicts: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    path = tmp_path / "upload"
    longest = 0.0
    own = psutil.Process()
    with FileReader() as reader, watched() as watch:
        reader.start()
        before, began = own.memory_info().rss, time.monotonic()
        for number, file in enumerate(mutations(seed, MOST)):
            # A whole round of kinds is read on the slowest machine.
            if number >= KINDS and time.monotonic() - began > SECONDS:
                break
            path.write_bytes(file.data)
            at = time.monotonic()
            what = f"--seed {seed}, file {file.name}: {file.what}"
            judged(reading := reader.read(path, content_type="", name=file.name, limits=LIMITS), what)
            longest = max(longest, time.monotonic() - at)
            verdicts[reading.verdict.value] += 1
            if reading.reason_code is not None:
                reasons[reading.reason_code.value] += 1
            assert reading.reason_code is not ReasonCode.READER_CRASHED, what
        path.write_bytes(b"still reading")
        assert reader.read(path, content_type="text/plain", name="a.txt").pages[0].text == "still reading"
        grown = own.memory_info().rss - before
    tell(
        f"{verdicts.total()} files, --seed {seed}: {dict(verdicts)}; {dict(reasons)}; longest {longest:.1f} s;"
        f" a reading process had at most {watch.peak // MIB} of {LIMITS.memory_bytes // MIB} MiB;"
        f" this one grew by {grown // MIB} MiB"
    )
    assert watch.seen, "no reading process was seen with its limit"
    assert watch.peak <= LIMITS.memory_bytes
    assert grown < OWN_GROWTH


def test_any_seed_makes_files_of_every_kind() -> None:
    """One round holds each once, whatever the seed."""
    seed = random.randrange(2**32)
    kinds = {file.name.partition("-")[2] for file in mutations(seed, KINDS)}
    assert len(kinds) == KINDS, f"--seed {seed}"
