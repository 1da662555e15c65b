"""How a command's failure is told: a line or a few on standard error, and an exit code that means something."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

import click
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from baton.aws.errors import AwsError
from baton.consumers.faults import Blame, blame
from baton.db.errors import MigrationFailed, StartupRefusal
from baton.documents.errors import DoorRefused
from baton.embedded.errors import EmbeddedError, Unreachable
from baton.settings.errors import SettingsError
from baton.settings.exits import Exit

_log = logging.getLogger(__name__)


class CommandFailed(Exception):
    """A command's work did not succeed; the message is for the person who ran it."""

    def __init__(self, message: str, *, code: Exit = Exit.FAILED) -> None:
        super().__init__(message)
        self.code = code


_DATABASE: Final = {
    Blame.DATABASE: ("the database does not answer: ", Exit.UNAVAILABLE),
    Blame.CONTENTION: ("the database was busy, try again: ", Exit.TEMPORARY),
}
_REFUSED: Final = ("the database refused: ", Exit.REFUSED)
#: What else is expected to go wrong: kinds, what is said before the error's own words, exit code. First that fits.
_KINDS: Final = (
    ((DoorRefused, MigrationFailed), "", Exit.FAILED),
    ((AwsError, Unreachable), "", Exit.UNAVAILABLE),
    ((OSError,), "", Exit.FAILED),
)


def told(work: Callable[[], object]) -> int:
    """Run ``work``, say what went wrong, and return the exit code."""
    try:
        answer = work()
    except click.exceptions.Abort:
        return _stopped()
    except click.ClickException as error:
        error.show()
        return Exit.SETTINGS if isinstance(error, click.UsageError) else Exit.FAILED
    except click.exceptions.Exit as left:
        return left.exit_code
    except Exception as error:  # noqa: BLE001 - the last place that can say what happened
        return _stopped() if _interrupted(error) else _told(error)
    return answer if isinstance(answer, int) else Exit.OK


def words_of(error: Exception) -> tuple[str, Exit]:
    """One line that says what went wrong, and the exit code of a command that ends with it.

    :raises KeyboardInterrupt: it came of Ctrl-C, which is nothing to go on after.
    """
    if _interrupted(error):
        raise KeyboardInterrupt from error
    if isinstance(error, CommandFailed):
        return str(error), error.code
    if isinstance(error, DBAPIError | PoolTimeout):
        words, code = _DATABASE.get(blame(error), _REFUSED)
        return words + _first_line(error), code
    for kinds, words, code in _KINDS:
        if isinstance(error, kinds):
            return words + _first_line(error), code
    if isinstance(error, EmbeddedError):
        return str(error).strip(), Exit.FAILED  # with the end of the server's log, which says why
    _log.error("a fault of Baton's own", exc_info=error)
    return f"a fault of Baton's own: {type(error).__name__}: {error}", Exit.SOFTWARE


def _told(error: Exception) -> Exit:
    if isinstance(error, SettingsError | StartupRefusal):
        for fault in error.faults:
            _say(fault)
        return Exit.SETTINGS if isinstance(error, SettingsError) else Exit.REFUSED
    words, code = words_of(error)
    _say(words)
    return code


def _stopped() -> int:
    _say("stopped")
    return 130


def _interrupted(error: BaseException | None) -> bool:
    """Whether Ctrl-C stands behind an error: a driver that it strikes while it tidies up says something else."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__cause__ or error.__context__
    return False


def _first_line(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    lines = str(getattr(error, "orig", None) or error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def _say(line: str) -> None:
    click.echo(f"baton: {line}", err=True)
