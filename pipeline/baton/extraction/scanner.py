"""Asking a virus scanner about a file before anything else looks at it.

`ClamdScanner` speaks the INSTREAM command of ClamAV's daemon: the file travels over the socket
in chunks, so daemon and worker share no folder. Whatever goes wrong is an answer too, and it is
never "clean": a file that could not be scanned is not let through.
"""

import contextlib
import socket
import struct
import time
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO, Final, Protocol

_CHUNK: Final = 256 * 1024
_LENGTH: Final = struct.Struct(">I")
_ANSWER_BYTES: Final = 8 * 1024
_SIGNATURE_CHARS: Final = 200


class ScanVerdict(StrEnum):
    """What the scanner says."""

    CLEAN = "clean"
    INFECTED = "infected"
    UNAVAILABLE = "unavailable"


class ScanFault(StrEnum):
    """Why there is no answer."""

    ABSENT = "absent"
    """Nothing listens at the address, or it refuses."""
    TIMED_OUT = "timed_out"
    """The daemon did not answer within the bound."""
    SIZE_LIMIT = "size_limit"
    """Larger than the daemon takes (its StreamMaxLength): only its settings can change that."""
    REFUSED = "refused"
    """The daemon answered that it could not scan."""
    PROTOCOL = "protocol"
    """What came back is no answer of a scanner."""


@dataclass(frozen=True, slots=True)
class ScanResult:
    """One answer; `signature` goes with infected and `fault` with unavailable."""

    verdict: ScanVerdict
    signature: str | None = None
    fault: ScanFault | None = None


CLEAN: Final = ScanResult(ScanVerdict.CLEAN)


class Scanner(Protocol):
    """Whoever can tell an infected file from a clean one."""

    def scan(self, source: Path | BinaryIO) -> ScanResult:
        """Scan a file or an open stream from where it stands; never raises for the scanner."""
        ...


class NoScanner:
    """For installations that scan elsewhere: everything is clean."""

    def scan(self, source: Path | BinaryIO) -> ScanResult:
        """Say clean."""
        del source
        return CLEAN


class ClamdScanner:
    """Asks clamd; one connection per file, so it may be shared between threads."""

    def __init__(self, address: str, *, timeout: float = 60.0) -> None:
        """Remember where the daemon listens.

        Args:
            address: `unix:/run/clamav/clamd.ctl` or `tcp:host:port`.
            timeout: Seconds that one file may take, from connecting to the answer.

        Raises:
            ValueError: The address is neither.
        """
        self._family, self._address = _parsed(address)
        self._timeout = timeout

    def scan(self, source: Path | BinaryIO) -> ScanResult:
        """Send the file and read the answer.

        Raises:
            OSError: The file itself cannot be read.
        """
        if isinstance(source, Path):
            with source.open("rb") as stream:
                return self._scan(stream)
        return self._scan(source)

    def is_alive(self) -> bool:
        """Whether the daemon answers a ping."""
        ends = time.monotonic() + min(self._timeout, 5.0)
        try:
            with self._connected(ends) as connection:
                connection.sendall(b"zPING\0")
                return _answer(connection, ends) == "PONG"
        except OSError:
            return False

    def _scan(self, stream: BinaryIO) -> ScanResult:
        ends = time.monotonic() + self._timeout
        try:
            connection = self._connected(ends)
        except TimeoutError:
            return _unavailable(ScanFault.TIMED_OUT)
        except OSError:
            return _unavailable(ScanFault.ABSENT)
        with connection:
            try:
                _send(connection, stream, ends)
                return _judged(_answer(connection, ends))
            except TimeoutError:
                return _unavailable(ScanFault.TIMED_OUT)
            except _Broken:
                return _unavailable(ScanFault.PROTOCOL)

    def _connected(self, ends: float) -> socket.socket:
        connection = socket.socket(self._family, socket.SOCK_STREAM)
        try:
            connection.settimeout(_left(ends))
            connection.connect(self._address)
        except BaseException:
            connection.close()
            raise
        return connection


class _Broken(Exception):
    """The connection ended before there was an answer."""


def _send(connection: socket.socket, stream: BinaryIO, ends: float) -> None:
    try:
        connection.sendall(b"zINSTREAM\0")
        while chunk := _read(stream):
            connection.settimeout(_left(ends))
            connection.sendall(_LENGTH.pack(len(chunk)) + chunk)
        connection.sendall(_LENGTH.pack(0))
    except TimeoutError:
        raise
    except _Unread as error:
        raise error.fault from None
    except OSError:
        # A daemon that has had enough says why and hangs up: the answer may be waiting.
        return


class _Unread(Exception):
    """Reading the file failed, which is no fault of the connection."""

    def __init__(self, fault: OSError) -> None:
        super().__init__(str(fault))
        self.fault = fault


def _read(stream: BinaryIO) -> bytes:
    try:
        return stream.read(_CHUNK)
    except OSError as error:
        raise _Unread(error) from error


def _answer(connection: socket.socket, ends: float) -> str:
    received = b""
    while b"\0" not in received:
        connection.settimeout(_left(ends))
        try:
            part = connection.recv(_ANSWER_BYTES)
        except ConnectionError:
            raise _Broken from None
        if not part or len(received) > _ANSWER_BYTES:
            raise _Broken
        received += part
    return received.partition(b"\0")[0].decode("utf-8", "replace").strip()


def _judged(answer: str) -> ScanResult:
    said = answer.removeprefix("stream: ")
    if said == "OK":
        return CLEAN
    if said.endswith(" FOUND"):
        name = said.removesuffix(" FOUND")[:_SIGNATURE_CHARS]
        return ScanResult(ScanVerdict.INFECTED, signature=name)
    if "size limit exceeded" in said:
        return _unavailable(ScanFault.SIZE_LIMIT)
    return _unavailable(ScanFault.REFUSED if said.endswith("ERROR") else ScanFault.PROTOCOL)


def _unavailable(fault: ScanFault) -> ScanResult:
    return ScanResult(ScanVerdict.UNAVAILABLE, fault=fault)


def _left(ends: float) -> float:
    left = ends - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _parsed(address: str) -> tuple[socket.AddressFamily, str | tuple[str, int]]:
    scheme, _, rest = address.partition(":")
    if scheme == "unix" and rest:
        return socket.AF_UNIX, rest
    host, _, port = rest.rpartition(":")
    if scheme == "tcp" and host and port.isdigit() and 0 < int(port) < 65536:
        bare = host.strip("[]")
        with contextlib.suppress(OSError):
            socket.inet_pton(socket.AF_INET6, bare)
            return socket.AF_INET6, (bare, int(port))
        return socket.AF_INET, (host, int(port))
    raise ValueError("a scanner's address is unix:/path or tcp:host:port")
