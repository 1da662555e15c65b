"""The extraction worker: from an ingest ticket to the text of a document, and its registration asked for.

====================  ===========================================================  ==================================
step                  what is committed                                            a crash after it leaves
====================  ===========================================================  ==================================
look                  the ticket's outcome, where there is nothing to do           an acknowledged message
fetch, scan           nothing                                                      ``uploaded``; all of it again
store                 ``stored``, checksum, size                                   ``stored``; fetched and read again
begin                 ``extracting``                                               ``extracting``; the same
read                  nothing                                                      the same
finish                pages, search rows, pass, verdict, registration request      the end; a redelivery does nothing
                      with its ticket, the ingest ticket closed: one transaction
====================  ===========================================================  ==================================

The document is locked only inside store, begin, finish and fail, each of which asks again whether the ticket still
concerns it. Fetching, scanning and reading happen without any lock or open transaction.
"""

from __future__ import annotations

import errno
import logging
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Final, Protocol

from sqlalchemy import Connection, Engine
from uuid_utils.compat import uuid7

from baton.aws.errors import BucketMissing, KeyRefused, ObjectMissing, ObjectTooLarge, StoreUnavailable
from baton.aws.objects import Fetched, Store
from baton.consumers.verdicts import Ack, Retry, Verdict
from baton.db.rows import Document, lock_document, read_document
from baton.db.states import FailureKind, Outcome, ProcessingStatus
from baton.documents import processing
from baton.documents.upload import key_of
from baton.extraction import messages, pages
from baton.extraction.limits import Limits
from baton.extraction.outcomes import NOTES, Reading, ReasonCode
from baton.extraction.outcomes import Verdict as ReadingVerdict
from baton.extraction.reading import ReaderUnavailable
from baton.extraction.scanner import ScanFault, Scanner, ScanVerdict
from baton.extraction.scratch import Scratch
from baton.outbox.life import mark_handled
from baton.outbox.tickets import Ticket
from baton.registration import service as registration
from baton.telemetry import fields, metrics
from baton.telemetry.labels import ReadVerdict
from baton.telemetry.names import Attribute, SpanName
from baton.telemetry.spans import Span, span

_log = logging.getLogger(__name__)

#: Attempts that must find no object before its absence is believed: a store may be behind, or restored a moment ago.
_MISSING_TRIES: Final = 3
_MISSING_WAIT: Final = timedelta(seconds=5)
#: Until something outside (store, scanner, this machine) is asked again.
_OUTSIDE_WAIT: Final = timedelta(seconds=20)
_CRASH_WAIT: Final = timedelta(seconds=5)
_NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO})


class Reader(Protocol):
    """Reads a file; ``FileReader`` does it in a child process."""

    def read(self, path: Path | str, *, content_type: str, name: str, limits: Limits | None = None) -> Reading:
        """The outcome of reading it, whatever that is."""
        ...


class _Failure(Exception):
    """The document ends as failed."""

    def __init__(self, kind: FailureKind, message: str, *, fetched: Fetched | None = None) -> None:
        super().__init__(kind)
        self.kind = kind
        self.message = message
        self.fetched = fetched
        """The bytes that are at fault; ``None``: none were had."""


class _Closed(Exception):
    """The ticket asks for nothing any more; what is to be said of that is committed."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome)
        self.outcome = outcome


class ExtractionWorker:
    """Handles ingest tickets; shared between the threads of a consumer, each reading in a child of its own."""

    def __init__(
        self,
        *,
        engine: Engine,
        store: Store,
        reader: Reader,
        scanner: Scanner,
        scratch: Scratch,
        limits: Limits,
        max_bytes: int,
    ) -> None:
        """Make a worker.

        :param engine: of the extractor's role.
        :param max_bytes: the largest object that is fetched.
        """
        self._engine = engine
        self._store = store
        self._reader = reader
        self._scanner = scanner
        self._scratch = scratch
        self._limits = limits
        self._max_bytes = max_bytes

    def handle(self, ticket: Ticket) -> Verdict:
        """Bring the ticket's document to a verdict, or say when to try again."""
        began = time.monotonic()
        with span(SpanName.EXTRACT, attributes=_about(ticket), parent_traceparent=ticket.traceparent) as opened:
            try:
                verdict = self._extract_or_fail(ticket, opened)
            except _Closed as closed:
                opened.set(Attribute.OUTCOME, closed.outcome)
                return Ack()
            if isinstance(verdict, Retry):
                return verdict
            opened.set(Attribute.VERDICT, verdict)
        metrics.EXTRACTIONS.add(verdict=verdict)
        metrics.EXTRACTION_DURATION.observe(time.monotonic() - began, verdict=verdict)
        return Ack()

    def give_up(self, ticket: Ticket) -> Verdict:
        """Fail the document visibly: its file ended the worker, or the reader, once too often."""
        try:
            self._fail(ticket, _Failure(FailureKind.EXTRACTION_CRASHED, messages.CRASHED), outcome=Outcome.POISON)
        except _Closed:
            return Ack()
        metrics.EXTRACTIONS.add(verdict=ReadVerdict.CRASHED)
        return Ack()

    # Steps

    def _extract_or_fail(self, ticket: Ticket, opened: Span) -> ReadVerdict | Retry:
        try:
            return self._extract(ticket, opened)
        except _Failure as failure:
            self._fail(ticket, failure, outcome=Outcome.REFUSED)
            return ReadVerdict.FAILED

    def _extract(self, ticket: Ticket, opened: Span) -> ReadVerdict | Retry:
        document = self._look(ticket)
        with self._scratch.file() as path:
            fetched = self._fetched(document, path, ticket)
            if isinstance(fetched, Retry):
                return fetched
            opened.set(Attribute.BYTE_COUNT, fetched.size)
            if document.checksum_sha256 != fetched.sha256 or document.processing_status is ProcessingStatus.UPLOADED:
                later = self._scanned(path, fetched)
                if later is not None:
                    return later
            self._locked(ticket, lambda connection, locked: _store(connection, locked, fetched))
            self._locked(ticket, _begin)
            reading = self._read(document, path)
        if isinstance(reading, Retry):
            return reading
        opened.set(Attribute.PAGE_COUNT, len(reading.pages))
        if reading.verdict is ReadingVerdict.FAILED:
            raise _Failure(FailureKind.UNREADABLE, reading.reason or messages.CRASHED, fetched=fetched)
        self._locked(ticket, lambda connection, locked: _finish(connection, locked, ticket, reading, fetched))
        for page in reading.pages:
            metrics.EXTRACTION_PAGES.add(source=page.source)
        return ReadVerdict(reading.verdict.value)

    def _look(self, ticket: Ticket) -> Document:
        """The document as it stands, unlocked; a ticket that asks for nothing is closed here."""
        with self._engine.begin() as connection:
            document = read_document(connection, ticket.document_id)
            outcome = Outcome.STALE if document is None else _closing(document, ticket)
            if outcome is not None:
                mark_handled(connection, ticket.id, outcome=outcome)
        if document is None or outcome is not None:
            raise _Closed(outcome or Outcome.STALE)
        return document

    def _fetched(self, document: Document, path: Path, ticket: Ticket) -> Fetched | Retry:
        try:
            return self._store.fetch(key_of(document), path, limit=self._max_bytes)
        except ObjectMissing:
            if ticket.work_attempts < _MISSING_TRIES:
                return Retry(_MISSING_WAIT, spent=True)
            raise _Failure(FailureKind.OBJECT_MISSING, messages.OBJECT_MISSING) from None
        except KeyRefused:
            raise _Failure(FailureKind.OBJECT_MISSING, messages.OBJECT_MISSING) from None
        except ObjectTooLarge:
            raise _Failure(FailureKind.UNREADABLE, messages.TOO_LARGE) from None
        except (StoreUnavailable, BucketMissing) as error:
            _log.warning("the object store has to be asked again", exc_info=error)
            return Retry(_OUTSIDE_WAIT)
        except OSError as error:
            return _out_of_room(error)

    def _scanned(self, path: Path, fetched: Fetched) -> Retry | None:
        """``None`` where the file is clean. One that could not be scanned is never let through."""
        try:
            result = self._scanner.scan(path)
        except OSError as error:
            return _out_of_room(error)
        if result.verdict is ScanVerdict.CLEAN:
            return None
        if result.verdict is ScanVerdict.INFECTED:
            raise _Failure(FailureKind.INFECTED, messages.INFECTED, fetched=fetched)
        _log.warning("the scanner gave no answer", extra=fields.of(fault=result.fault))
        if result.fault is ScanFault.SIZE_LIMIT:
            raise _Failure(FailureKind.UNREADABLE, messages.UNSCANNABLE, fetched=fetched)
        # a daemon that answers, but not about this file, may never do so
        return Retry(_OUTSIDE_WAIT, spent=result.fault is ScanFault.REFUSED)

    def _read(self, document: Document, path: Path) -> Reading | Retry:
        try:
            reading = self._reader.read(
                path, content_type=document.content_type, name=document.name, limits=self._limits
            )
        except ReaderUnavailable as error:
            _log.warning("no process could be started to read in", exc_info=error)
            return Retry(_OUTSIDE_WAIT)
        except OSError as error:
            return _out_of_room(error)
        if reading.retryable:
            _log.warning("the reader ended without an answer", extra=fields.of(reason=ReasonCode.READER_CRASHED))
            return Retry(_CRASH_WAIT, spent=True)
        return reading

    def _locked(self, ticket: Ticket, step: Callable[[Connection, Document], None]) -> None:
        """One transaction under the document's lock, after asking once more whether the ticket still concerns it."""
        with self._engine.begin() as connection:
            document = lock_document(connection, ticket.document_id)
            outcome = Outcome.STALE if document is None else _closing(document, ticket)
            if document is not None and outcome is None:
                step(connection, document)
                return
            mark_handled(connection, ticket.id, outcome=outcome or Outcome.STALE)
        raise _Closed(outcome or Outcome.STALE)

    def _fail(self, ticket: Ticket, failure: _Failure, *, outcome: Outcome) -> None:
        def step(connection: Connection, document: Document) -> None:
            if failure.fetched is not None:
                document = _restated(connection, document, failure.fetched)
            processing.fail(connection, document, kind=failure.kind, message=failure.message)
            pages.forget(connection, firm_id=document.firm_id, document_id=document.id)
            mark_handled(connection, ticket.id, outcome=outcome)

        self._locked(ticket, step)
        metrics.DOCUMENTS_FAILED.add(axis="processing")
        _log.info("a document failed", extra=fields.of(reason=failure.kind))


def _closing(document: Document, ticket: Ticket) -> Outcome | None:
    """Why a ticket asks for nothing any more, or ``None`` while its document waits for it.

    The epoch decides, not the generation: whichever generation of one request comes first does the work.
    """
    if not document.live:
        return Outcome.DOCUMENT_DELETED
    if document.extraction_epoch != ticket.extraction_epoch:
        return Outcome.STALE
    return None if document.processing_status in processing.IN_EXTRACTION else Outcome.ALREADY_DONE


def _store(connection: Connection, document: Document, fetched: Fetched) -> None:
    """To stored, unless an earlier attempt or another worker came as far."""
    if document.processing_status is ProcessingStatus.UPLOADED:
        processing.store(connection, document, checksum_sha256=fetched.sha256, size_bytes=fetched.size)
    else:
        _restated(connection, document, fetched)


def _restated(connection: Connection, document: Document, fetched: Fetched) -> Document:
    """What is written down of the bytes is of those that this attempt has."""
    return processing.restate_bytes(connection, document, checksum_sha256=fetched.sha256, size_bytes=fetched.size)


def _begin(connection: Connection, document: Document) -> None:
    """To extracting, likewise."""
    if document.processing_status is ProcessingStatus.STORED:
        processing.begin_extraction(connection, document)


def _finish(connection: Connection, document: Document, ticket: Ticket, reading: Reading, fetched: Fetched) -> None:
    """The hand-over: text, verdict, request and both tickets commit together, or none of them does."""
    document = _restated(connection, document, fetched)
    pass_id = document.extraction_run_id or uuid7()
    pages.replace(connection, firm_id=document.firm_id, document_id=document.id, pass_id=pass_id, pages=reading.pages)
    finished = processing.finish(
        connection,
        document,
        verdict=ProcessingStatus(reading.verdict.value),
        extraction_run_id=pass_id,
        message=reading.reason or " ".join(NOTES[note] for note in reading.notes) or None,
    )
    if finished.processing_status is ProcessingStatus.INDEXED:
        registration.request(connection, finished)
    mark_handled(connection, ticket.id, outcome=Outcome.DONE)


def _out_of_room(error: OSError) -> Retry:
    """This machine's own trouble: another worker may have what is missing here. Anything else is an unforeseen fault."""
    if error.errno not in _NO_ROOM:
        raise error
    _log.warning("this machine cannot hold the file now", exc_info=error)
    return Retry(_OUTSIDE_WAIT)


def _about(ticket: Ticket) -> dict[Attribute, object]:
    return {
        Attribute.FIRM: ticket.firm_id,
        Attribute.MATTER: ticket.matter_id,
        Attribute.DOCUMENT: ticket.document_id,
        Attribute.TICKET: ticket.id,
        Attribute.EPOCH: ticket.extraction_epoch,
        Attribute.ATTEMPT: ticket.work_attempts,
    }
