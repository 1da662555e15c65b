"""The server: on the loopback address alone, in threads of its own, with bounds on everything that a client can send.

It is reached by port-forward, whose tunnel is encrypted up to the pod; see the decision page.
"""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable
from typing import Any, Final

from waitress import wasyncore
from waitress.server import create_server

from baton.operator.reading.answering import Application

_log = logging.getLogger(__name__)

HOST: Final = "127.0.0.1"
_THREADS: Final = 4
_CONNECTIONS: Final = 32
#: Seconds; a connection that says nothing for as long is closed.
_IDLE: Final = 30
#: Bytes of a request line with its headers; a token may be long.
_HEADERS: Final = 32_768


def serve(
    application: Application,
    stop: threading.Event,
    *,
    port: int,
    beat: Callable[[], None],
    listens: Callable[[int], None] = lambda _: None,
) -> None:
    """Answer until ``stop`` is set, which is seen within a second; it may be begun again.

    :param port: 0 finds a free one.
    :param listens: told which one it is.
    :raises OSError: the port is taken.
    """
    sockets: dict[int, Any] = {}
    with socket.create_server((HOST, port), backlog=_CONNECTIONS) as listening:
        # With one socket given, waitress makes one plain server; its stubs do not say so.
        server: Any = create_server(
            application,
            map=sockets,
            sockets=[listening],
            threads=_THREADS,
            connection_limit=_CONNECTIONS,
            channel_timeout=_IDLE,
            cleanup_interval=5,
            max_request_header_size=_HEADERS,
            max_request_body_size=1,
            ident="baton",
            clear_untrusted_proxy_headers=True,
            asyncore_use_poll=True,
        )
        try:
            _log.info("the read-only API listens")
            listens(int(listening.getsockname()[1]))
            while not stop.is_set():
                wasyncore.loop(timeout=1.0, map=sockets, use_poll=True, count=1)
                beat()
        finally:
            server.task_dispatcher.shutdown(cancel_pending=True, timeout=1)
            wasyncore.close_all(sockets, ignore_all=True)
