"""A network between a client and a server that forgets connections without telling anybody."""

import contextlib
import select
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from baton.embedded.ports import LOOPBACK

_AT_ONCE: Final = 65536
#: Closes with a reset in the place of an end.
_RESET: Final = struct.pack("ii", 1, 0)


class Network:
    """Hands on what either side says, until it forgets; whoever then says something is told that there is nobody."""

    def __init__(self, to: int) -> None:
        self._to = to
        self._listening = socket.create_server((LOOPBACK, 0))
        self.host, self.port = self._listening.getsockname()
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._forgotten: list[socket.socket] = []
        self._lock = threading.Lock()
        self._stopped = False
        threading.Thread(target=self._carry, name="network", daemon=True).start()

    def forget(self) -> None:
        """Forget every connection there is: the server learns of its end, the client of nothing."""
        with self._lock:
            for client, server in self._pairs:
                server.close()
                self._forgotten.append(client)
            self._pairs.clear()

    def close(self) -> None:
        """Close all of it."""
        with self._lock:
            self._stopped = True
            for each in (self._listening, *self._forgotten, *(side for pair in self._pairs for side in pair)):
                each.close()

    def _carry(self) -> None:
        while True:
            with self._lock:
                if self._stopped:
                    return
                ways = {side.fileno(): (side, other) for pair in self._pairs for side, other in (pair, pair[::-1])}
                gone = {client.fileno(): client for client in self._forgotten}
                listening = self._listening.fileno()
            readable, _, _ = select.select([listening, *ways, *gone], [], [], 0.02)
            with self._lock, contextlib.suppress(OSError):
                self._hand_on(set(readable), ways, gone, listening)

    def _hand_on(
        self,
        readable: set[int],
        ways: dict[int, tuple[socket.socket, socket.socket]],
        gone: dict[int, socket.socket],
        listening: int,
    ) -> None:
        if self._stopped:
            return
        if listening in readable:
            client, _ = self._listening.accept()
            self._pairs.append((client, socket.create_connection((LOOPBACK, self._to))))
        for number in readable & gone.keys():
            gone[number].setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            gone[number].close()
            self._forgotten.remove(gone[number])
        for number in readable & ways.keys():
            side, other = ways[number]
            if side.fileno() != number or other.fileno() < 0:
                continue  # forgotten meanwhile
            said = side.recv(_AT_ONCE)
            if said:
                other.sendall(said)
            else:
                self._pairs = [pair for pair in self._pairs if side not in pair]
                side.close()
                other.close()


@contextmanager
def forgetful_network(*, to: int) -> Iterator[Network]:
    """One that leads to a port of this machine."""
    network = Network(to)
    try:
        yield network
    finally:
        network.close()
