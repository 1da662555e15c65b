"""A collector that is absent, refuses, hangs or cannot be reached disturbs nobody."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from baton.settings.watching import Telemetry
from baton.telemetry import spans, tracing
from baton.telemetry.names import SpanName
from support.collector import black_hole, closed_port, collecting
from support.waiting import wait_until

SPANS = 3000
PATIENCE = 2.0  # seconds at the end, as the settings have it

WORK = """
import sys
from baton.settings.watching import Telemetry
from baton.telemetry import spans, tracing
from baton.telemetry.names import SpanName
tracing.start(Telemetry(otlp_endpoint=sys.argv[1], export_timeout=20.0), component="tests")
for _ in range(600):
    with spans.span(SpanName.EXTRACT):
        pass
print("worked", flush=True)
if sys.argv[2] == "stop":
    tracing.stop(within=0.5)
"""


@contextmanager
def place(kind: str) -> Iterator[str | None]:
    """The base URL of a collector of one kind."""
    if kind == "none":
        yield None
    elif kind == "closed":
        yield closed_port()
    elif kind == "black hole":
        with black_hole() as url:
            yield url
    elif kind == "sleeps":
        with collecting(hold=threading.Event()) as collector:
            yield collector.endpoint
    else:
        with collecting(status=int(kind)) as collector:
            yield collector.endpoint


def seconds_of_work() -> float:
    """How long opening and closing many spans takes."""
    began = time.perf_counter()
    for _ in range(SPANS):
        with spans.span(SpanName.EXTRACT):
            pass
    return time.perf_counter() - began


@pytest.mark.parametrize("kind", ["closed", "black hole", "sleeps", "500", "404"])
def test_a_bad_collector_neither_slows_work_nor_the_end(kind: str) -> None:
    """3,000 spans cost about the same as without a collector, and stopping takes two seconds at most."""
    tracing.start(Telemetry(), component="tests")
    seconds_of_work()  # warm up
    alone = seconds_of_work()
    with place(kind) as endpoint:
        tracing.start(Telemetry(otlp_endpoint=endpoint, queue_size=512), component="tests")
        beside = seconds_of_work()
        began = time.perf_counter()
        tracing.stop(within=PATIENCE)
        ended = time.perf_counter() - began
    assert beside < alone * 5 + 1.0  # one exporting attempt would already cost more
    assert ended < PATIENCE + 0.5


def test_a_collector_that_answers_gets_everything() -> None:
    """With room in the queue, stopping sends every span that was made."""
    with collecting() as collector:
        tracing.start(Telemetry(otlp_endpoint=collector.endpoint, queue_size=8192), component="tests")
        for _ in range(700):
            with spans.span(SpanName.EXTRACT):
                pass
        assert tracing.stop(within=5)
        assert len(collector.wait_for(700)) == 700


@pytest.mark.parametrize("ending", ["stop", "just exit"])
@pytest.mark.parametrize("kind", ["closed", "black hole", "sleeps"])
def test_a_process_ends_promptly_beside_a_bad_collector(kind: str, ending: str) -> None:
    """Whether it stops tracing or just runs out, the process is gone within seconds of its work."""
    with place(kind) as endpoint:
        child = subprocess.Popen(
            [sys.executable, "-c", WORK, endpoint or "", ending], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert child.stdout is not None
        with child.stdout:
            assert child.stdout.readline() == b"worked\n"
            began = time.perf_counter()
            try:
                assert child.wait(10) == 0
            finally:
                if child.poll() is None:
                    os.kill(child.pid, signal.SIGKILL)
                    child.wait(5)
        assert time.perf_counter() - began < 2.5


def test_starting_again_ends_the_exporter_before() -> None:
    """A second start leaves no thread of the first behind."""
    with collecting() as collector:
        tracing.start(Telemetry(otlp_endpoint=collector.endpoint), component="tests")
        tracing.start(Telemetry(), component="tests")
        wait_until(
            lambda: not any(each.name == "OtelBatchSpanRecordProcessor" for each in threading.enumerate()),
            what="the first exporter's end",
        )
    assert tracing.stop()


def test_an_exporter_that_cannot_be_made_is_done_without(monkeypatch: pytest.MonkeyPatch) -> None:
    """When the SDK refuses to start, spans are still opened."""

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(tracing, "_exporter", broken)
    tracing.start(Telemetry(otlp_endpoint="http://127.0.0.1:9"), component="tests")
    with spans.span(SpanName.EXTRACT) as opened:
        assert opened.traceparent is not None
