"""Two pieces of work on two real connections, each held before each of its statements, in every order that is asked for.

A turn lets one of them make one statement. Whether it then waits for the other is asked of the server, which knows; a
turn of one that waits is passed on. So a schedule is always played to its end, and says which merge it became.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum, auto
from math import comb
from typing import Any

import psycopg
import pytest

from support.databases import Database
from support.waiting import wait_until

_PATIENCE = 120.0
_GLANCE = 0.01
ALL = "all merges"
Schedule = tuple[int, ...]
"""Whose turn it is, statement by statement."""


class State(Enum):
    """Where a piece of work is."""

    HELD = auto()
    RUNNING = auto()
    WAITING = auto()
    """For the other's lock, in the database."""
    DONE = auto()


class Piece(threading.Thread):
    """One of the two."""

    def __init__(self, number: int, work: Callable[[], Any], merge: "Merge") -> None:
        super().__init__(name=f"piece-{number}", daemon=True)
        self.number = number
        self.state = State.RUNNING
        self.statements = 0
        self.pid: int | None = None
        self.error: BaseException | None = None
        self._work = work
        self._merge = merge

    def run(self) -> None:
        """The work; what it raises is kept."""
        try:
            self._work()
        except BaseException as error:  # noqa: BLE001 - looked at by the test
            self.error = error
        with self._merge.changed:
            self.state = State.DONE
            self._merge.changed.notify_all()

    def hold(self, pid: int) -> None:
        """Wait for a turn; called on its own thread before each statement."""
        with self._merge.changed:
            self.pid, self.state = pid, State.HELD
            self._merge.changed.notify_all()
            self._merge.changed.wait_for(lambda: self.state is State.RUNNING, _PATIENCE)
            self.statements += 1


class Merge:
    """One run of two pieces of work."""

    def __init__(self, database: Database, first: Callable[[], Any], second: Callable[[], Any]) -> None:
        self.changed = threading.Condition()
        self.waited = False
        """Whether one of them ever waited for the other."""
        self._database = database
        self._pieces = (Piece(0, first, self), Piece(1, second, self))

    def play(self, schedule: Sequence[int]) -> tuple[int, int]:
        """Play a schedule, and then each to its end; how many statements each made. Raises what either of them raised."""
        with _gates():
            for piece in self._pieces:
                piece.start()
                self._settle(piece)
            for number in schedule:
                self._turn(number)
            for number in (*schedule[-1:], 0, 1):
                while self._pieces[number].state is State.HELD:
                    self._turn(number)
            while any(piece.state is not State.DONE for piece in self._pieces):
                for piece in self._pieces:
                    self._turn(piece.number)
            for piece in self._pieces:
                piece.join(_PATIENCE)
        for piece in self._pieces:
            if piece.error is not None:
                raise piece.error
        return self._pieces[0].statements, self._pieces[1].statements

    def _turn(self, number: int) -> None:
        piece, other = self._pieces[number], self._pieces[1 - number]
        if piece.state is State.HELD:
            with self.changed:
                piece.state = State.RUNNING
                self.changed.notify_all()
        self._settle(piece)
        if other.state is State.WAITING:
            self._settle(other)

    def _settle(self, piece: Piece) -> None:
        """Return once a piece is held, done, or waits for a lock by the server's own word."""

        def settled() -> bool:
            with self.changed:
                if self.changed.wait_for(lambda: piece.state in (State.HELD, State.DONE), _GLANCE):
                    return True
                piece.state = State.WAITING if self._waits(piece.pid) else State.RUNNING
                return piece.state is State.WAITING

        wait_until(settled, timeout=_PATIENCE, interval=0.001, what=f"the turn of {piece.name}")
        self.waited = self.waited or piece.state is State.WAITING

    def _waits(self, pid: int | None) -> bool:
        with self._database.preparer.connect() as connection:
            found = connection.exec_driver_sql(
                f"SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE pid = {pid or 0}"
            ).scalar()
        return bool(found)


def schedules(first: int, second: int, *, every: int = 1, limit: int = 300) -> tuple[list[Schedule], str]:
    """Every merge of two pieces of so many statements where these are fewer than ``limit``; else those of few switches.

    :param every: of the merges with three switches each so-many-th is taken.
    :returns: the schedules, and which they are, in words.
    """
    if comb(first + second, first) < limit:
        return [*_merges(first, second)], ALL
    found: list[Schedule] = []
    three = 0
    for one, (mine, its) in enumerate(((first, second), (second, first))):
        other = 1 - one
        found.append((one,) * mine)
        for cut in range(1, mine):
            found.append((one,) * cut + (other,) * its)
            for its_cut in range(1, its):
                three += 1
                if three % every == 0:
                    found.append((one,) * cut + (other,) * its_cut + (one,) * mine)
    return found, "all merges of two switches" + (", " + f"one in {every} of three" if every > 1 else " and of three")


def _merges(first: int, second: int) -> Iterator[Schedule]:
    if not first or not second:
        yield (0,) * first + (1,) * second
        return
    for rest in _merges(first - 1, second):
        yield (0, *rest)
    for rest in _merges(first, second - 1):
        yield (1, *rest)


@contextmanager
def _gates() -> Iterator[None]:
    """Hold each piece of work before each statement, the ends of transactions included."""
    execute, command = psycopg.Cursor.execute, psycopg.Connection._exec_command

    def gated_execute(cursor: Any, *arguments: Any, **options: Any) -> Any:
        _hold(cursor.connection)
        return execute(cursor, *arguments, **options)

    def gated_command(connection: Any, asked: Any, *arguments: Any, **options: Any) -> Any:
        if not str(asked).startswith(("BEGIN", "b'BEGIN")):
            _hold(connection)
        return (yield from command(connection, asked, *arguments, **options))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(psycopg.Cursor, "execute", gated_execute)
        patch.setattr(psycopg.Connection, "_exec_command", gated_command)
        yield


def _hold(connection: Any) -> None:
    piece = threading.current_thread()
    if isinstance(piece, Piece):
        piece.hold(connection.info.backend_pid)
