"""The latest wish of every resource, and who is to be told of a change.

Written by the watch and by the roll-call, read by the loops; a lock, and nothing slow under it. An older version never
takes the place of a newer one, whoever brings it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum

from baton.operator.specs import Key, Wanted


class Change(StrEnum):
    """What became different of a resource."""

    NEW = "new"
    SPEC = "spec"
    """Takes effect at once: the pass under way is cut."""
    ASKED = "asked"
    """A pass is asked for now."""
    STATUS = "status"
    """Only what the operator wrote itself, or what nobody reads."""
    GONE = "gone"


Told = Callable[[Change, Key], None]


class Roster:
    """All resources of one kind."""

    def __init__(self, tell: Told) -> None:
        """:param tell: called with each change, outside the lock, in the thread that brought it."""
        self._tell = tell
        self._lock = threading.Lock()
        self._wanted: dict[str, Wanted] = {}

    def latest(self, uid: str) -> Wanted | None:
        """The latest wish; ``None``: the resource is gone."""
        with self._lock:
            return self._wanted.get(uid)

    def all(self) -> list[Wanted]:
        """Every resource."""
        with self._lock:
            return list(self._wanted.values())

    def put(self, wanted: Wanted) -> Change | None:
        """Take a resource as it was seen; ``None``: it was known so, or better."""
        return self._put(wanted, instead_of=None)

    def _put(self, wanted: Wanted, *, instead_of: str | None) -> Change | None:
        with self._lock:
            old = self._wanted.get(wanted.key.uid)
            if old is not None and old.version != instead_of and not _newer(wanted.version, old.version):
                return None
            self._wanted[wanted.key.uid] = wanted
        change = _change(old, wanted)
        self._tell(change, wanted.key)
        return change

    def drop(self, uid: str) -> None:
        """Take a resource as gone."""
        with self._lock:
            old = self._wanted.pop(uid, None)
        if old is not None:
            self._tell(Change.GONE, old.key)

    def recount(self, listed: Iterable[Wanted], *, known: Mapping[str, str]) -> None:
        """Take a list of all resources.

        :param known: versions by uid that stood here before the list was asked for. Only of these is one that is missing
            gone; and one that is listed at an older version is so by now: the server's store was set back to a copy.
        """
        present = set()
        for each in listed:
            uid = each.key.uid
            present.add(uid)
            before = known.get(uid)
            self._put(each, instead_of=before if before is not None and _newer(before, each.version) else None)
        for uid in known.keys() - present:
            self.drop(uid)


def _newer(version: str, than: str) -> bool:
    """Versions are numbers that grow, by the API's promise; where one is none, what comes later is newer."""
    if version.isdecimal() and than.isdecimal():
        return int(version) > int(than)
    return version != than


def _change(old: Wanted | None, new: Wanted) -> Change:
    if old is None:
        return Change.NEW
    if old.generation != new.generation or old.spec != new.spec:
        return Change.SPEC
    return Change.ASKED if old.asked_at != new.asked_at else Change.STATUS
