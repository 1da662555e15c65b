"""Free ports on the loopback address."""

import socket

LOOPBACK = "127.0.0.1"


def free_port() -> int:
    """A TCP port that nobody listened on a moment ago; the caller must bear losing it to another."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def answers(port: int, *, host: str = LOOPBACK, timeout: float = 1.0) -> bool:
    """Whether something accepts a connection on the port within `timeout` seconds."""
    try:
        with socket.create_connection((host, port), timeout=timeout):
            return True
    except OSError:
        return False
