"""Which documents a redrive is about: what was chosen, and the pages of documents that it may be true of.

A discrepancy brings its own index; a firm or a matter has one; everything else walks the documents in key order. Each
page reads a bounded number of rows however few of them are wanted, and ends with a key from which the next one goes on,
so that a redrive which was interrupted is taken up where it stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final, Self, TypeVar
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, and_, func, literal_column, or_, select, true, tuple_

from baton.db.states import FailureKind, ProcessingStatus, RegistrationStatus
from baton.db.tables import documents
from baton.reconcilers.aspects import Aspect
from baton.reconcilers.candidates import Candidates, Key
from baton.reconcilers.classification import DISCREPANCIES
from baton.reconcilers.memory import moment
from baton.reconcilers.planning import Ground

_d: Final = documents.c
#: Rows that one page looks at, at most.
EXAMINED: Final = 1000
_ZERO: Final = UUID(int=0)
#: The longest age that may be asked for; nothing stands here for longer.
_OLDEST: Final = timedelta(days=36_500)


class SelectorRefused(ValueError):
    """What was chosen makes no sense; the message says why."""


T = TypeVar("T")


def kept(written: Any, read: Callable[[Any], T]) -> T:
    """Read something that is kept of a request.

    :raises SelectorRefused: it makes no sense: somebody else wrote it.
    """
    try:
        return read(written)
    except (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise SelectorRefused("what is kept of the request makes no sense") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Selector:
    """What was chosen. All of it must be true of a document; of several values of one kind, one of them."""

    documents: tuple[UUID, ...] = ()
    firm: UUID | None = None
    matter: UUID | None = None
    discrepancies: tuple[str, ...] = ()
    """Names; what still settles counts, a person need not wait for a grace."""
    processing: tuple[ProcessingStatus, ...] = ()
    registration: tuple[RegistrationStatus, ...] = ()
    errors: tuple[FailureKind, ...] = ()
    aspects: tuple[Aspect, ...] = ()
    """Only these are redriven; empty: whichever needs it."""
    older_than: timedelta | None = None
    """Both statuses have stood for as long."""
    under_way: bool = False
    """Also what is healthy and on its way: its ticket is written anew, and the old one closed."""

    def checked(self) -> Self:
        """The selector itself.

        :raises SelectorRefused: nothing was named, or a name is none.
        """
        named = (self.documents, self.firm, self.discrepancies, self.processing, self.registration, self.errors)
        if not any(named):
            raise SelectorRefused("say what to redrive: documents, a firm, a discrepancy, a status or an error")
        if self.matter is not None and self.firm is None:
            raise SelectorRefused("a matter is looked for within its firm: name the firm, too")
        if self.older_than is not None and not timedelta(0) <= self.older_than <= _OLDEST:
            raise SelectorRefused(f"an age of at most {_OLDEST.days} days may be asked for")
        unknown = sorted(set(self.discrepancies) - DISCREPANCIES.keys())
        if unknown:
            raise SelectorRefused(f"there is no discrepancy {unknown[0]}; there are {', '.join(sorted(DISCREPANCIES))}")
        return self

    def as_json(self) -> dict[str, Any]:
        """What is kept of it; members at rest are left out."""
        written: dict[str, Any] = {
            "documents": [str(each) for each in self.documents],
            "firm": None if self.firm is None else str(self.firm),
            "matter": None if self.matter is None else str(self.matter),
            "discrepancies": list(self.discrepancies),
            "processing": [each.value for each in self.processing],
            "registration": [each.value for each in self.registration],
            "errors": [each.value for each in self.errors],
            "aspects": [each.value for each in self.aspects],
            "older_than": None if self.older_than is None else self.older_than.total_seconds(),
            "under_way": self.under_way,
        }
        return {name: value for name, value in written.items() if value not in ([], None, False)}

    @classmethod
    def from_json(cls, written: Mapping[str, Any]) -> Self:
        """Read what :meth:`as_json` wrote.

        :raises SelectorRefused: what is kept makes no sense: somebody else wrote it.
        """
        return kept(written, cls._of)

    @classmethod
    def _of(cls, written: Mapping[str, Any]) -> Self:
        older = written.get("older_than")
        return cls(
            documents=tuple(UUID(each) for each in written.get("documents", ())),
            firm=None if written.get("firm") is None else UUID(written["firm"]),
            matter=None if written.get("matter") is None else UUID(written["matter"]),
            discrepancies=tuple(written.get("discrepancies", ())),
            processing=tuple(ProcessingStatus(each) for each in written.get("processing", ())),
            registration=tuple(RegistrationStatus(each) for each in written.get("registration", ())),
            errors=tuple(FailureKind(each) for each in written.get("errors", ())),
            aspects=tuple(Aspect(each) for each in written.get("aspects", ())),
            older_than=None if older is None else timedelta(seconds=older),
            under_way=bool(written.get("under_way", False)),
        )

    def names(self, document_id: UUID) -> bool:
        """Whether the document was named by itself."""
        return document_id in self.documents

    def condition(self, *, now: datetime) -> ColumnElement[bool]:
        """What the document's own row must say."""
        wanted: list[ColumnElement[bool]] = [_d.deleted_at.is_(None)]
        if self.documents:
            wanted.append(_d.id.in_(self.documents))
        if self.firm is not None:
            wanted.append(_d.firm_id == self.firm)
        if self.matter is not None:
            wanted.append(_d.matter_id == self.matter)
        if self.processing or self.registration:
            processing = _d.processing_status.in_([each.value for each in self.processing])
            wanted.append(or_(processing, _d.registration_status.in_([each.value for each in self.registration])))
        if self.errors:
            wanted.append(_d.failure_kind.in_([each.value for each in self.errors]))
        if self.older_than is not None:
            since = func.greatest(_d.processing_status_since, _d.registration_status_since)
            wanted.append(since <= now - self.older_than)
        return and_(*wanted)


@dataclass(frozen=True, slots=True)
class Page:
    """Documents that may be meant, and where to go on; ``None`` after the last page."""

    document_ids: tuple[UUID, ...]
    after: Mapping[str, Any] | None
    examined: int
    absent: int = 0
    """Documents that were named, and are not there, or are deleted."""


def page(
    connection: Connection, selector: Selector, *, after: Mapping[str, Any] | None, size: int, ground: Ground
) -> Page:
    """One page.

    :param after: what the page before brought; ``None`` begins.
    :param size: documents at most.
    :raises SelectorRefused: no page has brought this.
    """
    if selector.documents:
        return _named(connection, selector, after=after, size=size, ground=ground)
    sources = [each for name in selector.discrepancies for each in DISCREPANCIES[name].candidates]
    # one that no index shows can only be found by looking at every document
    if sources and all(DISCREPANCIES[name].candidates for name in selector.discrepancies):
        return _indexed(connection, selector, sources, after=after, size=size, ground=ground)
    return _walked(connection, selector, after=after, size=size, ground=ground)


def _named(
    connection: Connection, selector: Selector, *, after: Mapping[str, Any] | None, size: int, ground: Ground
) -> Page:
    begin = 0 if after is None else kept(after, lambda key: range(len(selector.documents))[int(key["number"])])
    some = replace(selector, documents=selector.documents[begin : begin + size])
    wanted = some.condition(now=ground.now).label("wanted")
    rows = connection.execute(
        select(_d.id, wanted).where(_d.id.in_(some.documents), _d.deleted_at.is_(None)).order_by(_d.id)
    ).all()
    end = begin + len(some.documents)
    return Page(
        tuple(row.id for row in rows if row.wanted),
        {"number": end} if end < len(selector.documents) else None,
        len(some.documents),
        len(set(some.documents)) - len(rows),
    )


def _indexed(
    connection: Connection,
    selector: Selector,
    sources: Sequence[Candidates],
    *,
    after: Mapping[str, Any] | None,
    size: int,
    ground: Ground,
) -> Page:
    number, key = (0, None) if after is None else kept(after, lambda written: _read_key(sources, written))
    ids, next_key = sources[number].page(
        connection, now=ground.now, grace=timedelta(0), lanes=ground.lanes, after=key, size=size
    )
    wanted = select(_d.id).where(_d.id.in_(ids), selector.condition(now=ground.now)).order_by(_d.id)
    found = tuple(connection.scalars(wanted)) if ids else ()
    if next_key is not None:
        return Page(found, {"source": number, "at": next_key[0].isoformat(), "id": str(next_key[1])}, len(ids))
    return Page(found, {"source": number + 1} if number + 1 < len(sources) else None, len(ids))


def _read_key(sources: Sequence[Candidates], written: Mapping[str, Any]) -> tuple[int, Key | None]:
    number = range(len(sources))[int(written["source"])]
    if "at" not in written:
        return number, None
    at = moment(written["at"])
    return number, (at, int(written["id"])) if sources[number].by_number else (at, UUID(written["id"]))


def _walked(
    connection: Connection, selector: Selector, *, after: Mapping[str, Any] | None, size: int, ground: Ground
) -> Page:
    """In the order of ``doc_matter`` within a firm, else of the primary key."""
    matter, identity = (
        (_ZERO, _ZERO) if after is None else kept(after, lambda key: (UUID(key["matter"]), UUID(key["id"])))
    )
    scope: ColumnElement[bool] = true()
    order: tuple[ColumnElement[Any], ...] = (_d.id,)
    behind: ColumnElement[bool] = _d.id > identity
    if selector.firm is not None:
        scope, order = _d.firm_id == selector.firm, (_d.matter_id, _d.id)
        behind = tuple_(_d.matter_id, _d.id) > tuple_(matter, identity)
        if selector.matter is not None:
            scope = and_(scope, _d.matter_id == selector.matter)
    wanted = selector.condition(now=ground.now).label("wanted")
    rows = connection.execute(
        select(_d.id, _d.matter_id, wanted).where(scope, behind).order_by(*order).limit(literal_column(str(EXAMINED)))
    ).all()
    found = [row for row in rows if row.wanted]
    if len(found) > size:
        last = found[size - 1]
    elif len(rows) == EXAMINED:
        last = rows[-1]
    else:
        return Page(tuple(sorted(row.id for row in found)), None, len(rows))
    ids = tuple(sorted(row.id for row in found[:size]))
    return Page(ids, {"matter": str(last.matter_id), "id": str(last.id)}, rows.index(last) + 1)
