"""Running one of the pipeline's processes until it is told to stop."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType

from baton.settings.exits import Exit
from baton.settings.loading import load
from baton.settings.model import Settings


def run_process(
    run: Callable[[Settings, threading.Event], None], *, required: tuple[str, ...] = ("DATABASE_URL",)
) -> int:
    """Load the settings and run until SIGTERM or SIGINT; a second signal ends the process at once.

    :param required: variables that the process cannot do without.
    :raises SettingsError: with one line per fault, before anything is started.
    """
    settings = load(required=required)
    stop = stop_on_signals()
    run(settings, stop)
    return Exit.OK


def stop_on_signals() -> threading.Event:
    """An event that the first SIGTERM or SIGINT sets."""
    stop = threading.Event()

    def asked(number: int, _frame: FrameType | None) -> None:
        if stop.is_set():
            os._exit(128 + number)  # what is in hand becomes visible again by itself
        stop.set()

    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, asked)
    return stop
