"""Points at which a worker may die: counted in a first run, then died at, one in each further run."""

import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Self


class Kind(StrEnum):
    """When, about a statement or a call."""

    BEFORE = "before"
    """It never leaves."""
    UNSEEN = "unseen"
    """The other side did it, and its answer is not seen."""
    AFTER = "after"
    """The answer was seen, and nothing was done with it."""


@dataclass(frozen=True, slots=True)
class Point:
    """One statement or call of one worker."""

    stage: str
    label: str
    """A normalized statement, or the name of a call."""
    occurrence: int
    """1 for the first in the scene."""

    @property
    def name(self) -> str:
        """Short and stable: ``extractor/3f2a/2``."""
        return f"{self.stage}/{hashlib.sha256(self.label.encode()).hexdigest()[:8]}/{self.occurrence}"

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The ways of dying there that differ from dying before whatever follows.

        After a statement of a transaction that is not committed there is nothing that is not there before the next.
        """
        if self.label == "COMMIT":
            return (Kind.BEFORE, Kind.UNSEEN)
        return tuple(Kind) if is_call(self.label) else (Kind.BEFORE,)

    @property
    def told(self) -> str:
        """For a person."""
        return f"{self.name} ({self.label[:90]})"


@dataclass(frozen=True, slots=True)
class Death:
    """A point and a kind."""

    point: Point
    kind: Kind

    @property
    def name(self) -> str:
        """What a person gives to have it again."""
        return f"{self.point.name}/{self.kind}"


class Crash(BaseException):
    """The process is gone; no error, for nothing may catch it."""


_CALLS = ("sqs:", "s3:", "http:")


def is_call(label: str) -> bool:
    """Whether the other side is not the database."""
    return label.startswith(_CALLS)


def normalized(statement: str) -> str:
    """A statement without what differs between two runs of the same code."""
    flat = " ".join(statement.split())
    flat = re.sub(r"'(?:[^']|'')*'", "'…'", flat)
    flat = re.sub(r"%\(\w+\)s|\$\d+|%s", "?", flat)
    flat = re.sub(r"::[a-z]+(?: [a-z]+)*(?:\[\])?", "", flat)
    flat = re.sub(r"\b\d+\b", "0", flat)
    flat = re.sub(r"sa_savepoint_\d+|_pg3_\w+", "savepoint", flat)
    return re.sub(r"(\([?, 0A-Za-z_.'…()]*\))(?:, \1)+", r"\1, …", flat)


class Incarnation:
    """One life of one worker. Once it is over, nothing that it tries reaches anybody."""

    def __init__(self, stage: str) -> None:
        self.stage = stage
        self.dead = False
        self.sessions: set[int] = set()
        """Process ids of its sessions' servers."""


class Tracer:
    """Sees every statement and call of the worker whose step is under way, and ends it where it was told to."""

    def __init__(self, *deaths: Death) -> None:
        """:param deaths: each happens once."""
        self.seen: list[Point] = []
        self.died: list[Death] = []
        self._left = {(death.point, death.kind) for death in deaths}
        self._counts: Counter[tuple[str, str]] = Counter()
        self._current: Incarnation | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._current = None

    def step(self, incarnation: Incarnation) -> Self:
        """The worker whose step begins; for a ``with``."""
        self._current = incarnation
        return self

    @contextmanager
    def paused(self) -> Iterator[None]:
        """The harness itself looks, in the middle of a step."""
        worker, self._current = self._current, None
        try:
            yield
        finally:
            self._current = worker

    @property
    def current(self) -> Incarnation | None:
        """Whose step is under way."""
        return self._current

    def before(self, label: str) -> Point | None:
        """A statement or call is about to be made; what it is, while anybody counts."""
        worker = self._current
        if worker is None:
            return None
        if worker.dead:
            raise Crash
        self._counts[worker.stage, label] += 1
        point = Point(worker.stage, label, self._counts[worker.stage, label])
        self.seen.append(point)
        self.reached(point, Kind.BEFORE)
        return point

    def reached(self, point: Point | None, kind: Kind) -> None:
        """It has come so far."""
        worker = self._current
        if worker is None or point is None:
            return
        if worker.dead:
            raise Crash
        if (point, kind) in self._left:
            self._left.remove((point, kind))
            self.died.append(Death(point, kind))
            worker.dead = True
            raise Crash
