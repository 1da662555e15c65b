"""How a command fails: one line on standard error, and an exit code that means something."""

from __future__ import annotations

from baton.settings.exits import Exit


class Failed(Exception):
    """A command's work did not succeed; the message is for the person who ran it, and holds no token."""

    def __init__(self, message: str, *, code: Exit = Exit.FAILED) -> None:
        super().__init__(message)
        self.code = code
