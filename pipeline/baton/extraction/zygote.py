"""A small process with everything loaded, which forks a fresh child for each file.

Starting Python and its libraries anew for every file would cost a third of a second each; a
fork costs a few milliseconds. The parent cannot fork such children itself: it has threads. The
zygote has one thread, reads no file, and holds no secret: its environment is emptied.

It is told of files over a socket, one datagram each, with three descriptors: the file, where
the child writes its answer, and where the zygote writes how the child ended. It ends, and
takes all children with it, when that socket closes or the parent dies.
"""

import contextlib
import gc
import json
import os
import select
import signal
import socket
import sys
import time
from dataclasses import dataclass, fields
from typing import Any, Final

from baton.extraction import child, wire
from baton.extraction.confinement import confine
from baton.extraction.jobs import Job, Tesseract
from baton.extraction.limits import Limits

_DESCRIPTORS: Final = 3


@dataclass(frozen=True, slots=True)
class _Child:
    pid: int
    watch: int
    """A descriptor that becomes readable when the child has ended."""
    status: int
    ends: float


class _Zygote:
    def __init__(self, control: socket.socket, parent: int) -> None:
        self._control = control
        self._parent = parent
        self._children: dict[int, _Child] = {}
        self._poll = select.poll()
        self._poll.register(control, select.POLLIN)
        self._poll.register(parent, select.POLLIN)

    def run(self) -> None:
        """Serve until the parent is gone."""
        self._control.send(wire.READY)
        while True:
            events = dict(self._poll.poll(self._patience()))
            if self._parent in events:
                break
            if self._control.fileno() in events and not self._take():
                break
            for one in list(self._children.values()):
                if one.watch in events:
                    self._ended(one, killed=None)
                elif one.status in events:
                    self._ended(one, killed="unwanted")
                elif time.monotonic() >= one.ends:
                    self._ended(one, killed="time")
        for one in list(self._children.values()):
            self._ended(one, killed="unwanted")

    def _patience(self) -> float | None:
        if not self._children:
            return None
        ends = min(one.ends for one in self._children.values())
        return max(0.0, (ends - time.monotonic()) * 1000 + 1)

    def _take(self) -> bool:
        try:
            data, descriptors, _, _ = socket.recv_fds(self._control, wire.REQUEST_BYTES, _DESCRIPTORS)
        except OSError:
            return False
        if not data:
            return False
        file, answer, status = descriptors
        request = json.loads(data)
        limits = limits_of(request["limits"])
        try:
            pid = os.fork()
        except OSError:
            # No process to be had: the caller sees a status pipe that says nothing.
            for descriptor in descriptors:
                os.close(descriptor)
            return True
        if pid == 0:
            _be_child(request, limits, file=file, answer=answer)
        with contextlib.suppress(OSError):
            # Both sides do it, so that neither has to wait for the other.
            os.setpgid(pid, pid)
        os.close(file)
        os.close(answer)
        watch = os.pidfd_open(pid)
        self._children[pid] = _Child(pid, watch, status, time.monotonic() + limits.wall_seconds)
        self._poll.register(watch, select.POLLIN)
        self._poll.register(status, 0)  # an empty mask still tells of the other end closing
        return True

    def _ended(self, one: _Child, *, killed: str | None) -> None:
        # The group is killed before the leader is reaped: until then its number is not reused.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(one.pid, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError):
            os.kill(one.pid, signal.SIGKILL)
        _, status, usage = os.wait4(one.pid, 0)
        self._poll.unregister(one.watch)
        self._poll.unregister(one.status)
        os.close(one.watch)
        report = {
            "code": os.waitstatus_to_exitcode(status),
            "killed": killed,
            "peak_bytes": usage.ru_maxrss * 1024,
            "cpu_seconds": usage.ru_utime + usage.ru_stime,
        }
        with contextlib.suppress(OSError):
            os.write(one.status, json.dumps(report).encode())
        os.close(one.status)
        del self._children[one.pid]


def limits_of(said: dict[str, Any]) -> Limits:
    """Limits as they were written into a request."""
    values = {item.name: said[item.name] for item in fields(Limits)}
    values["languages"] = tuple(values["languages"])
    return Limits(**values)


def _be_child(request: dict[str, Any], limits: Limits, *, file: int, answer: int) -> None:
    code = os.EX_SOFTWARE
    try:
        zygote = os.getppid()
        kept = {0, 1, 2, file, answer}
        for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 - no objects before the limits
            if int(name) not in kept:
                with contextlib.suppress(OSError):
                    os.close(int(name))
        confine(limits, parent=zygote)
        tesseract = request["tesseract"]
        with os.fdopen(file, "rb") as opened:
            job = Job(
                file=opened,
                path=f"/proc/self/fd/{file}",
                name=request["name"],
                content_type=request["content_type"],
                limits=limits,
                tesseract=Tesseract(tesseract[0], tuple(tesseract[1])) if tesseract else None,
            )
            frame = wire.encode(child.read(job))
        with os.fdopen(answer, "wb") as out:
            out.write(frame)
        code = os.EX_OK
    except MemoryError:
        code = wire.EXIT_MEMORY
    except BaseException:  # noqa: BLE001 - the exit code is all that may leave a child
        code = os.EX_SOFTWARE
    finally:
        os._exit(code)


def main() -> None:
    """Serve the parent whose socket is the descriptor named by the first argument."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    control = socket.socket(fileno=int(sys.argv[1]))
    parent = os.pidfd_open(int(sys.argv[2]))
    # What is alive now stays shared between all children, untouched by their collectors.
    gc.collect()
    gc.freeze()
    _Zygote(control, parent).run()


if __name__ == "__main__":
    main()
