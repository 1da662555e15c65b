"""The parent's hold on the zygote: starting it, telling it of files, ending it."""

import os
import socket
import subprocess
import sys
import threading
from typing import Final

from baton.extraction import wire

_START_SECONDS: Final = 60.0
_END_SECONDS: Final = 2.0


class ReaderUnavailable(Exception):
    """No process could be started to read files in; nothing is known about any file."""


class Nursery:
    """Has one zygote running whenever a file is to be read; safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._zygote: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None

    @property
    def pid(self) -> int | None:
        """The zygote's, or None when there is none."""
        zygote = self._zygote
        return None if zygote is None else zygote.pid

    def start(self) -> None:
        """Start the zygote if it is not running.

        Raises:
            ReaderUnavailable: It did not start.
        """
        with self._lock:
            self._running()

    def close(self) -> None:
        """End the zygote, and with it every child."""
        with self._lock:
            self._drop()

    def send(self, request: bytes, descriptors: list[int]) -> None:
        """Have a child forked for a request; it inherits copies of the descriptors.

        Raises:
            ReaderUnavailable: There is no zygote and none can be started.
            ValueError: The request is too long.
        """
        if len(request) > wire.REQUEST_BYTES:
            raise ValueError("the request is too long")
        with self._lock:
            for last in (False, True):
                control = self._running()
                try:
                    socket.send_fds(control, [request], descriptors)
                except OSError as error:
                    # It died since the last file, which nobody would know before now.
                    self._drop()
                    if last:
                        raise ReaderUnavailable("the reading process ended") from error
                else:
                    return

    def _running(self) -> socket.socket:
        if self._control is not None and self._zygote is not None and self._zygote.poll() is None:
            return self._control
        self._drop()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = [sys.executable, "-m", "baton.extraction.zygote"]
        command += [str(theirs.fileno()), str(os.getpid())]
        with theirs:
            self._zygote = subprocess.Popen(
                command,
                # No secret of this process is handed down, only where modules are found.
                env={"PATH": os.defpath, "LC_ALL": "C.UTF-8", "OMP_THREAD_LIMIT": "1"}
                | {"PYTHONPATH": os.pathsep.join(map(os.path.abspath, filter(None, sys.path)))},
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        self._control = ours
        ours.settimeout(_START_SECONDS)
        try:
            if ours.recv(len(wire.READY)) == wire.READY:
                return ours
        except OSError:
            pass
        self._drop()
        raise ReaderUnavailable("the reading process did not start")

    def _drop(self) -> None:
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._zygote is not None:
            try:
                self._zygote.wait(timeout=_END_SECONDS)
            except subprocess.TimeoutExpired:
                self._zygote.kill()
                self._zygote.wait()
            self._zygote = None
