"""Asks every pod behind the Services named whether it is ready; ends with 1 and their own words where one is not."""

import json
import socket
import sys
import threading
import time
from urllib.error import HTTPError
from urllib.request import urlopen


def unready(place: str, port: int) -> str | None:
    """What keeps a workload from being ready, or None."""
    try:
        addresses = {found[4][0] for found in socket.getaddrinfo(place, port, type=socket.SOCK_STREAM)}
        for address in sorted(addresses):
            host = f"[{address}]" if ":" in address else address
            with urlopen(f"http://{host}:{port}/readyz", timeout=5):
                pass
    except HTTPError as answer:
        return json.dumps(json.loads(answer.read())["details"])
    except OSError as error:
        return str(error)
    return None


def tell(place: str, word: str) -> None:
    """A line for a workload."""
    sys.stdout.write(f"{place}: {word}\n")
    sys.stdout.flush()


def main(patience: str, port: str, *places: str) -> int:
    """Wait until all are ready."""
    ends, waiting = time.monotonic() + float(patience), dict.fromkeys(places, "")
    while waiting:
        told = {place: unready(place, int(port)) for place in waiting}
        for place in [place for place, fault in told.items() if fault is None]:
            tell(place, "ready")
        waiting = {place: fault for place, fault in told.items() if fault is not None}
        if waiting and time.monotonic() > ends:
            for place, fault in waiting.items():
                tell(place, f"not ready: {fault}")
            return 1
        if waiting:
            threading.Event().wait(1)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
