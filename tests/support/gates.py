"""A gate before Postgres, or before queues: what goes through it can be stopped without stopping what is behind it, or
lost without a word.
"""

import contextlib
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.engine import make_url

from baton.embedded.ports import LOOPBACK

_PIECE = 65536
#: Closes with a reset in the place of an end.
_RESET = struct.pack("ii", 1, 0)


class Gate:
    """Hands bytes on between whoever comes and one port of this machine, while it is open."""

    def __init__(self, port: int, *, open_: bool = True) -> None:
        self._port = port
        self._open = open_
        self._lock = threading.Lock()
        self._pairs: set[tuple[socket.socket, socket.socket]] = set()
        self._lost: set[tuple[socket.socket, socket.socket]] = set()
        self._listening = socket.create_server((LOOPBACK, 0), backlog=128)
        self.turned_away = 0
        """Who came while it was shut."""
        self.port: int = self._listening.getsockname()[1]
        self._thread = threading.Thread(target=self._accept, name="gate", daemon=True)
        self._thread.start()

    def shut(self) -> None:
        """Cut whoever goes through, and turn away whoever comes."""
        with self._lock:
            self._open = False
            pairs = list(self._pairs)
        for pair in pairs:
            _hang_up(pair)

    def lose(self) -> None:
        """Lose whoever goes through: what is behind learns of their end, and they of it once they say something."""
        with self._lock:
            lost = set(self._pairs)
            self._pairs.clear()
            self._lost |= lost
        for _, theirs in lost:
            with contextlib.suppress(OSError):
                theirs.shutdown(socket.SHUT_RDWR)

    def open(self) -> None:
        """Let everybody through."""
        with self._lock:
            self._open = True

    def stop(self) -> None:
        """End."""
        self.shut()
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join(10)

    def url(self, url: str) -> str:
        """The same URL by way of the gate."""
        return make_url(url).set(host=LOOPBACK, port=self.port).render_as_string(hide_password=False)

    def _accept(self) -> None:
        while True:
            try:
                mine, _ = self._listening.accept()
            except OSError:
                return
            with self._lock:
                theirs = self._reached() if self._open else None
                if theirs is None:
                    self.turned_away += 1
                    mine.close()
                    continue
                pair = (mine, theirs)
                self._pairs.add(pair)
            for source, target in (pair, pair[::-1]):
                threading.Thread(target=self._hand_on, args=(pair, source, target), daemon=True).start()

    def _reached(self) -> socket.socket | None:
        with contextlib.suppress(OSError):
            return socket.create_connection((LOOPBACK, self._port))
        return None

    def _hand_on(self, pair: tuple[socket.socket, socket.socket], source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while piece := source.recv(_PIECE):
                target.sendall(piece)
        with self._lock:
            lost = pair in self._lost
        if lost:
            source.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            source.close()
            return
        _hang_up(pair)
        with self._lock:
            if pair in self._pairs:
                self._pairs.discard(pair)
                return
        for each in pair:  # the other way has ended, too
            each.close()


@contextmanager
def gate(port: int, *, open_: bool = True) -> Iterator[Gate]:
    """One for the length of a block."""
    made = Gate(port, open_=open_)
    try:
        yield made
    finally:
        made.stop()


def _hang_up(pair: tuple[socket.socket, socket.socket]) -> None:
    for each in pair:
        with contextlib.suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
