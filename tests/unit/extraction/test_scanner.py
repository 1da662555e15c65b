"""The scanner is asked over its socket, and no trouble of its own lets a file through."""

import io
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from baton.extraction.scanner import ClamdScanner, NoScanner, ScanFault, ScanVerdict
from support.waiting import wait_until

PATTERN = b"BATON-TEST-PATTERN-OF-AN-INFECTED-FILE"
LIMIT = 1024 * 1024


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.fixture(scope="module")
def clamd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """A real daemon that knows one pattern, ours; its two addresses."""
    folder = tmp_path_factory.mktemp("clamd")
    (folder / "db").mkdir()
    (folder / "db" / "own.ndb").write_text(f"Baton.Test.Pattern:0:*:{PATTERN.hex()}\n")
    port = _free_port()
    (folder / "clamd.conf").write_text(
        f"Foreground yes\nDatabaseDirectory {folder / 'db'}\nLocalSocket {folder / 'socket'}\n"
        f"TCPSocket {port}\nTCPAddr 127.0.0.1\nStreamMaxLength {LIMIT}\nTemporaryDirectory {folder}\n"
        f"LogFile {folder / 'log'}\n"
    )
    with (folder / "out").open("wb") as out:
        daemon = subprocess.Popen(
            ["/usr/sbin/clamd", "--config-file", str(folder / "clamd.conf")], stdout=out, stderr=out
        )
    try:
        addresses = (f"unix:{folder / 'socket'}", f"tcp:127.0.0.1:{port}")
        wait_until(lambda: all(ClamdScanner(one).is_alive() for one in addresses), 60, what="clamd")
        yield addresses
    finally:
        daemon.terminate()
        daemon.wait(20)


@pytest.mark.needs("clamd")
@pytest.mark.parametrize("which", [0, 1])
def test_a_real_daemon_tells_clean_from_infected(clamd: tuple[str, str], which: int, tmp_path: Path) -> None:
    """By file and by stream, over a Unix socket and over TCP."""
    scanner = ClamdScanner(clamd[which])
    path = tmp_path / "file"
    path.write_bytes(b"harmless" * 1000)
    assert scanner.scan(path).verdict is ScanVerdict.CLEAN
    path.write_bytes(b"x" * 300_000 + PATTERN + b"x" * 300_000)
    found = scanner.scan(path)
    assert found.verdict is ScanVerdict.INFECTED
    assert found.signature is not None
    assert found.signature.startswith("Baton.Test.Pattern")
    assert scanner.scan(io.BytesIO(b"")).verdict is ScanVerdict.CLEAN


@pytest.mark.needs("clamd")
@pytest.mark.parametrize("which", [0, 1])
def test_a_file_larger_than_the_daemon_takes_is_not_called_clean(clamd: tuple[str, str], which: int) -> None:
    """It says why, and the caller decides; clean it is not."""
    result = ClamdScanner(clamd[which]).scan(io.BytesIO(b"y" * (LIMIT * 8)))
    assert result.verdict is ScanVerdict.UNAVAILABLE
    assert result.fault in {ScanFault.SIZE_LIMIT, ScanFault.PROTOCOL}


def test_a_daemon_that_is_not_there_is_unavailable(tmp_path: Path) -> None:
    """A file is not let through because nobody looked."""
    for address in (f"unix:{tmp_path / 'none'}", f"tcp:127.0.0.1:{_free_port()}"):
        scanner = ClamdScanner(address)
        result = scanner.scan(io.BytesIO(b"x"))
        assert (result.verdict, result.fault) == (ScanVerdict.UNAVAILABLE, ScanFault.ABSENT)
        assert not scanner.is_alive()


@contextmanager
def _impostor(behave: Callable[[socket.socket], None]) -> Iterator[str]:
    """Something that listens and is no scanner."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        try:
            connection, _ = server.accept()
        except OSError:
            return
        with connection:
            behave(connection)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"tcp:127.0.0.1:{server.getsockname()[1]}"
    finally:
        server.close()
        thread.join(10)


def _silent(connection: socket.socket) -> None:
    while connection.recv(65536):
        pass


def _trickling(connection: socket.socket) -> None:
    stop = threading.Event()
    try:
        while not stop.wait(0.05):
            connection.sendall(b"s")
    except OSError:
        return


def test_a_daemon_that_hangs_is_given_up_in_time() -> None:
    """Silence and endless trickles end at the bound, whichever side is slow."""
    for behave in (_silent, _trickling):
        with _impostor(behave) as address:
            result = ClamdScanner(address, timeout=0.5).scan(io.BytesIO(b"x" * 1000))
        assert (result.verdict, result.fault) == (ScanVerdict.UNAVAILABLE, ScanFault.TIMED_OUT)


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        (b"INSTREAM size limit exceeded. ERROR\0", ScanFault.SIZE_LIMIT),
        (b"stream: Can't allocate memory ERROR\0", ScanFault.REFUSED),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n\0", ScanFault.PROTOCOL),
        (b"stream: OK, but\0", ScanFault.PROTOCOL),
        (b"stream: OK", ScanFault.PROTOCOL),
        (b"", ScanFault.PROTOCOL),
        (b"z" * 100_000, ScanFault.PROTOCOL),
    ],
)
def test_only_a_whole_ok_is_clean(answer: bytes, fault: ScanFault) -> None:
    """Every other answer leaves the file unscanned."""

    def behave(connection: socket.socket) -> None:
        connection.recv(65536)
        with suppress(OSError):
            connection.sendall(answer)
            connection.shutdown(socket.SHUT_WR)
        _drained(connection)

    with _impostor(behave) as address:
        result = ClamdScanner(address, timeout=5).scan(io.BytesIO(b"abc"))
    assert (result.verdict, result.fault) == (ScanVerdict.UNAVAILABLE, fault)


def _drained(connection: socket.socket) -> None:
    connection.settimeout(2)
    try:
        _silent(connection)
    except OSError:
        return


class _Failing(io.BytesIO):
    def read(self, size: int | None = -1) -> bytes:
        raise OSError(5, "the disk is gone")


def test_a_file_that_cannot_be_read_is_the_callers_error(tmp_path: Path) -> None:
    """It is no answer of the scanner's."""
    with _impostor(_drained) as address, pytest.raises(OSError, match="disk"):
        ClamdScanner(address).scan(_Failing())
    with pytest.raises(FileNotFoundError):
        ClamdScanner("tcp:127.0.0.1:1").scan(tmp_path / "none")


@pytest.mark.parametrize(
    "address", ["", "unix:", "tcp:host", "tcp:host:", "tcp::1", "tcp:h:70000", "http://x", "/run/x"]
)
def test_an_address_of_neither_kind_is_refused(address: str) -> None:
    """At start, not at the first file."""
    with pytest.raises(ValueError, match="unix:"):
        ClamdScanner(address)


def test_no_scanner_says_clean() -> None:
    """Where files are scanned elsewhere."""
    assert NoScanner().scan(io.BytesIO(PATTERN)).verdict is ScanVerdict.CLEAN
