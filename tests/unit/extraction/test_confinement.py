"""A bad file harms nobody: not the process that asked, not its neighbours, not the machine."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
from PIL import Image

from baton.casefile.bombs import pdf_bomb
from baton.casefile.pdfs import make_pdf
from baton.extraction.limits import Limits
from baton.extraction.outcomes import Reading, ReasonCode, Verdict
from baton.extraction.reading import FileReader
from support.waiting import wait_until

Read = Callable[..., Reading]
MIB = 1024 * 1024
SLOW = pdf_bomb(unpacked=1_000 * MIB)
ROOMY = Limits(memory_bytes=8 * 1024 * MIB)


@pytest.fixture
def own_reader() -> Iterator[FileReader]:
    """A reader whose processes are this test's alone."""
    with FileReader() as one:
        one.start()
        yield one


def zygote_of(reader: FileReader) -> psutil.Process:
    """The process that forks the children."""
    pid = reader._nursery.pid
    assert pid is not None
    return psutil.Process(pid)


def family(process: psutil.Process) -> list[psutil.Process]:
    """Everything below a process."""
    try:
        return [one for one in process.children(recursive=True) if one.status() != psutil.STATUS_ZOMBIE]
    except psutil.NoSuchProcess:
        return []


def in_background(read: Callable[[], Reading]) -> tuple[threading.Thread, list[Reading]]:
    """Read while the test looks on."""
    results: list[Reading] = []
    thread = threading.Thread(target=lambda: results.append(read()))
    thread.start()
    return thread, results


def test_memory_stays_under_the_limit_and_the_outcome_is_final(own_reader: FileReader, tmp_path: Path) -> None:
    """A bomb ends at its limit, is not to be tried again, and leaves nothing behind."""
    path = tmp_path / "bomb.pdf"
    path.write_bytes(pdf_bomb())
    limits = Limits(memory_bytes=512 * MIB)
    zygote = zygote_of(own_reader)
    thread, results = in_background(lambda: own_reader.read(path, content_type="", name="b.pdf", limits=limits))
    peak = 0
    while thread.is_alive():
        for one in family(zygote):
            try:
                peak = max(peak, one.memory_info().rss)
            except psutil.NoSuchProcess:
                continue
        thread.join(0.005)
    assert results[0].reason_code is ReasonCode.TOO_MUCH_MEMORY
    assert results[0].verdict is Verdict.FAILED
    assert not results[0].retryable
    assert 0 < peak < limits.memory_bytes
    assert not family(zygote)


def test_memory_that_python_asks_for_is_bounded_too(read: Read) -> None:
    """The same outcome where no library ends the process."""
    # Four bytes a character once decoded, and cleaning makes copies.
    data = ("\U0001d552 " * 9_000_000).encode()
    reading = read(data, "a.txt", limits=Limits(memory_bytes=320 * MIB))
    assert reading.reason_code is ReasonCode.TOO_MUCH_MEMORY


def test_time_on_the_wall_is_bounded(own_reader: FileReader, tmp_path: Path) -> None:
    """A file that takes too long is given up for good, by the zygote, which goes on."""
    path = tmp_path / "a.pdf"
    path.write_bytes(SLOW)
    zygote = zygote_of(own_reader)
    limits = Limits(wall_seconds=0.5, memory_bytes=ROOMY.memory_bytes)
    reading = own_reader.read(path, content_type="", name="a.pdf", limits=limits)
    assert (reading.verdict, reading.reason_code) == (Verdict.FAILED, ReasonCode.TOO_SLOW)
    assert not reading.retryable
    assert zygote_of(own_reader) == zygote
    assert not family(zygote)


def test_processor_time_is_bounded(read: Read) -> None:
    """The kernel ends it even if nobody waits."""
    reading = read(SLOW, "a.pdf", limits=Limits(cpu_seconds=1, memory_bytes=ROOMY.memory_bytes))
    assert (reading.verdict, reading.reason_code) == (Verdict.FAILED, ReasonCode.TOO_SLOW)


def test_an_answer_above_its_bound_is_refused(read: Read) -> None:
    """The parent never holds more than it agreed to."""
    reading = read(b"many words " * 10_000, "a.txt", limits=Limits(result_bytes=50_000))
    assert reading.reason_code is ReasonCode.TOO_MUCH_TEXT
    assert read(b"few words", "a.txt").verdict is Verdict.INDEXED


@pytest.mark.parametrize("fatal", [signal.SIGSEGV, signal.SIGKILL, signal.SIGTERM])
def test_a_crash_is_told_from_a_bad_file(own_reader: FileReader, tmp_path: Path, fatal: signal.Signals) -> None:
    """A child that dies of a signal may be tried again; the caller counts how often."""
    path = tmp_path / "a.pdf"
    path.write_bytes(SLOW)
    zygote = zygote_of(own_reader)
    # With room to spare no death is taken for one of memory.
    limits = Limits(memory_bytes=64 * 1024 * MIB)
    thread, results = in_background(lambda: own_reader.read(path, content_type="", name="a.pdf", limits=limits))
    child = wait_until(lambda: family(zygote), what="a child at work")[0]
    child.send_signal(fatal)
    thread.join(20)
    assert (results[0].verdict, results[0].reason_code) == (Verdict.FAILED, ReasonCode.READER_CRASHED)
    assert results[0].retryable


def test_neighbours_are_unharmed(own_reader: FileReader, tmp_path: Path) -> None:
    """Good files read beside bombs come out right, each its own."""
    bomb = tmp_path / "bomb.pdf"
    bomb.write_bytes(pdf_bomb())
    for number in range(24):
        (tmp_path / f"{number}.txt").write_text(f"words of number {number}")

    def good(number: int) -> str:
        reading = own_reader.read(tmp_path / f"{number}.txt", content_type="text/plain", name="a.txt")
        return reading.pages[0].text

    limits = Limits(memory_bytes=400 * MIB)
    with ThreadPoolExecutor(6) as pool:
        bombs = [pool.submit(own_reader.read, bomb, content_type="", name="b.pdf", limits=limits) for _ in range(2)]
        texts = list(pool.map(good, range(24)))
    assert texts == [f"words of number {number}" for number in range(24)]
    assert {one.result().reason_code for one in bombs} == {ReasonCode.TOO_MUCH_MEMORY}


def hanging_tesseract(folder: Path, *, then: str) -> str:
    """A recogniser that never comes back."""
    program = folder / "tesseract"
    program.write_text(f'#!/bin/sh\nif [ "$1" = --list-langs ]; then echo eng; exit; fi\n{then}\n')
    program.chmod(0o755)
    return str(program)


ALONE = "exec sleep 600"
WITH_A_CHILD = "sleep 600 & wait"


def a_scan(folder: Path) -> Path:
    """A PDF whose second page must be recognised."""
    path = folder / "scan.pdf"
    path.write_bytes(make_pdf([["native"], Image.new("L", (60, 90), 99)], title="T"))
    return path


def sleepers(below: psutil.Process) -> list[psutil.Process]:
    """The child and its recogniser, once that sleeps."""
    found = family(below)
    return found if any(_name(one) == "sleep" for one in found) else []


def _name(process: psutil.Process) -> str:
    try:
        return process.name()
    except psutil.NoSuchProcess:
        return ""


def alive(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Those that still run."""
    return [one for one in processes if one.is_running() and one.status() != psutil.STATUS_ZOMBIE]


def test_the_zygotes_death_costs_only_what_was_being_read(tmp_path: Path) -> None:
    """The file in hand may be tried again, its processes are gone too, and the next file is read."""
    path = a_scan(tmp_path)
    with FileReader(tesseract=hanging_tesseract(tmp_path, then=ALONE)) as reader:
        reader.start()
        zygote = zygote_of(reader)
        thread, results = in_background(lambda: reader.read(path, content_type="", name="a.pdf"))
        below = wait_until(lambda: sleepers(zygote), what="the recogniser")
        zygote.kill()
        thread.join(20)
        assert results[0].retryable
        wait_until(lambda: not alive(below), what="the end of all below")
        path.write_bytes(make_pdf([["still here"]], title="T"))
        assert reader.read(path, content_type="", name="a.pdf").pages[0].text == "still here"


def test_a_recogniser_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    """The whole process group goes at the deadline: no orphan is left to burn the machine."""
    scan = a_scan(tmp_path)
    with FileReader(tesseract=hanging_tesseract(tmp_path, then=WITH_A_CHILD)) as reader:
        reader.start()
        zygote = zygote_of(reader)
        limits = Limits(wall_seconds=3.0, ocr_share=1.0)
        thread, results = in_background(lambda: reader.read(scan, content_type="", name="a.pdf", limits=limits))
        below = wait_until(lambda: sleepers(zygote), what="the recogniser")
        thread.join(20)
        assert results[0].reason_code in {ReasonCode.TOO_SLOW, ReasonCode.OCR_INCOMPLETE}
        wait_until(lambda: not alive(below), what="the end of all below")


def test_a_page_that_takes_too_long_leaves_the_others(tmp_path: Path) -> None:
    """One unreadable page sends the document to a person; the text of the rest is kept."""
    scan = a_scan(tmp_path)
    with FileReader(tesseract=hanging_tesseract(tmp_path, then=WITH_A_CHILD)) as reader:
        reading = reader.read(scan, content_type="", name="a.pdf", limits=Limits(ocr_page_seconds=0.5))
    assert (reading.verdict, reading.reason_code) == (Verdict.NEEDS_REVIEW, ReasonCode.OCR_INCOMPLETE)
    assert reading.pages[0].text == "native"


def test_nothing_outlives_the_process_that_asked(tmp_path: Path) -> None:
    """Killed without a chance to clean up, it takes zygote and children with it."""
    path = a_scan(tmp_path)
    code = (
        "import sys\nfrom baton.extraction.reading import FileReader\n"
        "FileReader(tesseract=sys.argv[2]).read(sys.argv[1], content_type='', name='a.pdf')\n"
    )
    command = [sys.executable, "-c", code, str(path), hanging_tesseract(tmp_path, then=ALONE)]
    env = {"PATH": os.defpath, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(command, env=env) as asking:
        below = wait_until(lambda: sleepers(psutil.Process(asking.pid)), 30, what="the recogniser")
        asking.kill()
    assert len(below) >= 3
    wait_until(lambda: not alive(below), what="the end of all below")


def test_secrets_of_the_asking_process_are_not_handed_down(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whoever takes a child over finds no password in it, and no descriptor but its own."""
    monkeypatch.setenv("BATON_AGENT_TOKEN", "very-secret")
    path = tmp_path / "a.pdf"
    path.write_bytes(SLOW)
    with FileReader() as reader, (tmp_path / "secret").open("w") as secret:
        os.set_inheritable(secret.fileno(), True)
        reader.start()
        zygote = zygote_of(reader)
        assert "very-secret" not in str(zygote.environ())
        thread, _ = in_background(lambda: reader.read(path, content_type="", name="a.pdf", limits=ROOMY))
        child = wait_until(lambda: family(zygote), what="a child at work")[0]
        opened = {one.path for one in wait_until(child.open_files, what="the open file")}
        assert opened == {str(path)}
        assert not child.net_connections(kind="all")
        reader.close()
        thread.join(20)


def test_no_core_is_dumped_and_limits_hold_for_the_child(own_reader: FileReader, tmp_path: Path) -> None:
    """The kernel knows the bounds before the file is touched."""
    path = tmp_path / "a.pdf"
    path.write_bytes(SLOW)
    zygote = zygote_of(own_reader)
    limits = Limits(memory_bytes=8 * 1024 * MIB, cpu_seconds=77, written_bytes=5 * MIB)
    thread, _ = in_background(lambda: own_reader.read(path, content_type="", name="a.pdf", limits=limits))
    child = wait_until(lambda: [c for c in family(zygote) if c.nice() > zygote.nice()], what="a child at work")[0]
    wait_until(lambda: child.rlimit(psutil.RLIMIT_NOFILE)[0] < 1000, what="the last limit")
    assert child.rlimit(psutil.RLIMIT_CORE) == (0, 0)
    assert child.rlimit(psutil.RLIMIT_AS)[1] == limits.memory_bytes
    assert child.rlimit(psutil.RLIMIT_CPU)[0] == 77
    assert child.rlimit(psutil.RLIMIT_FSIZE)[1] == limits.written_bytes
    assert os.getpgid(child.pid) == child.pid
    child.kill()
    thread.join(20)


def test_descriptors_are_given_back(own_reader: FileReader, tmp_path: Path) -> None:
    """A thousand files leave as many open as one."""
    path = tmp_path / "a.txt"
    path.write_text("words")
    bad = tmp_path / "bad.pdf"
    bad.write_bytes(b"%PDF-1.4 no")

    def both() -> None:
        own_reader.read(path, content_type="", name="a.txt")
        own_reader.read(bad, content_type="", name="a.pdf")
        own_reader.read(path, content_type="", name="a.txt", limits=Limits(result_bytes=3))

    both()
    zygote = zygote_of(own_reader)
    settled = wait_until(lambda: None if family(zygote) else (psutil.Process().num_fds(), zygote.num_fds()))
    for _ in range(30):
        both()
    wait_until(lambda: (psutil.Process().num_fds(), zygote.num_fds()) == settled, what="as few descriptors as before")
