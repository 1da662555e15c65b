"""What the extraction worker promises about one document."""

import threading
from dataclasses import replace
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from botocore.exceptions import EndpointConnectionError

from baton.aws.clients import Clients
from baton.aws.faults import Service
from baton.consumers.verdicts import Ack, Retry
from baton.db.states import EventType, FailureKind, Outcome, ProcessingStatus, RegistrationStatus
from baton.extraction import messages
from baton.extraction.outcomes import ReasonCode
from baton.extraction.reading import ReaderUnavailable
from baton.extraction.scanner import ScanFault, ScanResult, ScanVerdict
from support.aws_answers import answered, failing


class FixedScanner:
    """Gives one answer."""

    def __init__(self, result: ScanResult) -> None:
        self.result = result
        self.asked = 0

    def scan(self, source: Path | BinaryIO) -> ScanResult:
        """Give it."""
        self.asked += 1
        return self.result


def counted(ticket: Any, attempts: int) -> Any:
    """The ticket as the consumer hands it over at its attempt of that number."""
    return replace(ticket, work_attempts=attempts)


def test_a_file_becomes_text_and_a_request(firm: Any, reader: Any) -> None:
    """A real file, really read: checksum, pages, search, pass, status, and one ticket for the registrar."""
    ticket = firm.upload(b"The quick brown fox jumps over the harbour wall.\n")
    assert firm.worker(reader).handle(ticket) == Ack()
    document = firm.document(ticket)
    assert document.processing_status is ProcessingStatus.INDEXED
    assert document.registration_status is RegistrationStatus.QUEUED
    assert document.registration_pass == document.extraction_run_id
    assert document.extraction_attempt == 1
    assert len(document.checksum_sha256 or "") == 64
    assert [hit.document_id for hit in firm.search("harbour")] == [document.id]
    (request,) = firm.tickets(document.id, EventType.REGISTRATION_REQUESTED)
    assert document.registration_ticket_id == request.id
    assert firm.ticket(document.id).outcome is Outcome.DONE
    path = firm.rows(
        "SELECT to_status FROM ops.document_status_transition WHERE document_id = :id AND axis = 'processing' ORDER BY id",
        id=document.id,
    )
    assert [row.to_status for row in path] == ["uploaded", "stored", "extracting", "indexed"]


def test_a_redelivered_extraction_changes_nothing(firm: Any, stub: Any) -> None:
    """Delivered five times: one pass, one set of pages, one registration ticket, one reading."""
    ticket = firm.upload()
    worker = firm.worker(stub)
    for _ in range(5):
        assert worker.handle(ticket) == Ack()
    assert len(firm.passes(ticket)) == 1
    assert len(firm.tickets(ticket.document_id, EventType.REGISTRATION_REQUESTED)) == 1
    assert len(firm.rows("SELECT 1 FROM document_search WHERE document_id = :id", id=ticket.document_id)) == 1
    assert stub.reads == 1


def test_two_workers_on_one_document_make_one_pass(firm: Any, stub: Any) -> None:
    """Both read it at the same time; one of them commits, the other finds it done."""
    ticket = firm.upload()
    meet = threading.Barrier(2, timeout=20)
    stub.before = meet.wait
    verdicts: list[Any] = []
    threads = [threading.Thread(target=lambda: verdicts.append(firm.worker(stub).handle(ticket))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert verdicts == [Ack(), Ack()]
    assert stub.reads == 2
    assert len(firm.passes(ticket)) == 1
    assert len(firm.tickets(ticket.document_id, EventType.REGISTRATION_REQUESTED)) == 1
    assert firm.document(ticket).registration_attempt == 1


def test_a_slow_worker_of_an_older_epoch_changes_nothing(firm: Any, stub: Any) -> None:
    """The document is re-extracted while its first reading runs: only the second one's text stays."""
    ticket = firm.upload()
    stub.text = "old words"
    newer: list[Any] = []
    stub.before = lambda: newer.append(firm.read_again(ticket))
    assert firm.worker(stub).handle(ticket) == Ack()
    assert firm.document(ticket).processing_status is ProcessingStatus.UPLOADED
    assert firm.passes(ticket) == set()
    assert firm.tickets(ticket.document_id, EventType.REGISTRATION_REQUESTED) == []
    stub.text, stub.before = "new words", lambda: None
    assert firm.worker(stub).handle(newer[0]) == Ack()
    assert firm.document(ticket).processing_status is ProcessingStatus.INDEXED
    assert len(firm.search("new")) == 1
    assert firm.search("old") == []


def test_a_slow_worker_finishes_after_the_newer_epoch(firm: Any, stub: Any) -> None:
    """The newer epoch is read and indexed while the older one still reads: the older result is dropped."""
    ticket = firm.upload()
    stub.text = "old words"

    def overtaken() -> None:
        stub.before, stub.text = lambda: None, "new words"
        assert firm.worker(stub).handle(firm.read_again(ticket)) == Ack()
        stub.text = "old words"

    stub.before = overtaken
    assert firm.worker(stub).handle(ticket) == Ack()
    assert len(firm.passes(ticket)) == 1
    assert len(firm.search("new")) == 1
    assert firm.search("old") == []
    assert len(firm.tickets(ticket.document_id, EventType.REGISTRATION_REQUESTED)) == 1


def test_pages_of_older_passes_do_not_show(firm: Any, stub: Any) -> None:
    """After a re-extraction the search knows the new text only, while the old pages stay in the table."""
    ticket = firm.upload()
    stub.text = "ancient wording"
    firm.worker(stub).handle(ticket)
    second = firm.read_again(ticket)
    assert firm.search("ancient") == []
    stub.text = "modern wording"
    firm.worker(stub).handle(second)
    assert firm.search("ancient") == []
    assert len(firm.search("modern")) == 1
    assert len(firm.passes(ticket)) == 2


@pytest.mark.parametrize("decided", ["registration_needs_review", "registration_failed", "registered"])
def test_a_late_redelivery_never_queues_a_decision_again(firm: Any, stub: Any, decided: str) -> None:
    """What a person or an agent has concluded stands when the ingest message comes once more."""
    ticket = firm.upload()
    worker = firm.worker(stub)
    worker.handle(ticket)
    for status in ("registering", decided):
        firm.prepare(
            "UPDATE documents SET registration_status = :to, registration_run_id = gen_random_uuid() WHERE id = :id",
            to=status,
            id=ticket.document_id,
        )
    before = firm.document(ticket)
    assert worker.handle(ticket) == Ack()
    assert firm.document(ticket) == before
    assert len(firm.tickets(ticket.document_id, EventType.REGISTRATION_REQUESTED)) == 1


def test_a_document_for_review_is_not_handed_over(firm: Any, stub: Any) -> None:
    """Uncertain text is kept and found, its reason is shown, and no agent is asked."""
    ticket = firm.upload()
    stub.reason = ReasonCode.LOW_CONFIDENCE
    assert firm.worker(stub).handle(ticket) == Ack()
    document = firm.document(ticket)
    assert document.processing_status is ProcessingStatus.NEEDS_REVIEW
    assert document.processing_message
    assert document.registration_status is RegistrationStatus.NOT_REQUESTED
    assert firm.tickets(document.id, EventType.REGISTRATION_REQUESTED) == []
    assert len(firm.search("harbour")) == 1


def test_an_unreadable_file_fails_with_its_reason(firm: Any, stub: Any) -> None:
    """Failed for good, in words for counsel, with its ticket closed and nothing to search."""
    ticket = firm.upload()
    stub.reason = ReasonCode.CORRUPT
    assert firm.worker(stub).handle(ticket) == Ack()
    document = firm.document(ticket)
    assert document.processing_status is ProcessingStatus.FAILED
    assert document.failure_kind == FailureKind.UNREADABLE
    assert "damaged" in (document.processing_message or "")
    assert firm.ticket(document.id).outcome is Outcome.REFUSED
    assert firm.search("harbour") == []


def test_a_failed_document_can_be_extracted_again(firm: Any, stub: Any) -> None:
    """A re-extraction of what once failed leads to the text, without the old reason."""
    ticket = firm.upload()
    stub.reason = ReasonCode.CORRUPT
    firm.worker(stub).handle(ticket)
    stub.reason = None
    assert firm.worker(stub).handle(firm.read_again(ticket)) == Ack()
    document = firm.document(ticket)
    assert document.processing_status is ProcessingStatus.INDEXED
    assert document.failure_kind is None
    assert document.processing_message is None


def test_a_deleted_document_is_left_alone(firm: Any, stub: Any) -> None:
    """Its message is acknowledged; nothing is fetched or read."""
    ticket = firm.upload()
    firm.delete(ticket)
    assert firm.worker(stub).handle(ticket) == Ack()
    assert stub.reads == 0
    assert firm.ticket(ticket.document_id).outcome is Outcome.DOCUMENT_DELETED


def test_a_document_deleted_while_it_is_read_stays_as_it_was(firm: Any, stub: Any) -> None:
    """Deletion in the middle of a reading: no pages, no request."""
    ticket = firm.upload()
    stub.before = lambda: firm.delete(ticket)
    assert firm.worker(stub).handle(ticket) == Ack()
    assert firm.document(ticket).processing_status is ProcessingStatus.EXTRACTING
    assert firm.passes(ticket) == set()
    assert firm.tickets(ticket.document_id, EventType.REGISTRATION_REQUESTED) == []


def test_a_missing_object_fails_after_a_few_tries(firm: Any, stub: Any) -> None:
    """Absence is believed at the third attempt, not before."""
    ticket = firm.upload(put=False)
    worker = firm.worker(stub)
    for attempt in (1, 2):
        verdict = worker.handle(counted(ticket, attempt))
        assert isinstance(verdict, Retry)
        assert verdict.spent
        assert firm.document(ticket).processing_status is ProcessingStatus.UPLOADED
    assert worker.handle(counted(ticket, 3)) == Ack()
    document = firm.document(ticket)
    assert document.processing_status is ProcessingStatus.FAILED
    assert document.failure_kind == FailureKind.OBJECT_MISSING
    assert document.processing_message == messages.OBJECT_MISSING


def test_a_store_that_is_away_costs_nothing(firm: Any, stub: Any, clients: Clients) -> None:
    """The document waits as it is, and no attempt is spent."""
    ticket = firm.upload()
    away = failing(EndpointConnectionError(endpoint_url="http://store"))
    with answered(clients, Service.S3, "GetObject", away):
        verdict = firm.worker(stub).handle(ticket)
    assert isinstance(verdict, Retry)
    assert not verdict.spent
    assert firm.document(ticket).processing_status is ProcessingStatus.UPLOADED
    assert firm.worker(stub).handle(ticket) == Ack()


def test_an_object_over_the_limit_fails(firm: Any, stub: Any) -> None:
    """It is not read, nor kept on the disk."""
    ticket = firm.upload(b"x" * 1000)
    assert firm.worker(stub, max_bytes=999).handle(ticket) == Ack()
    document = firm.document(ticket)
    assert document.processing_status is ProcessingStatus.FAILED
    assert document.processing_message == messages.TOO_LARGE
    assert stub.reads == 0


def test_an_infected_file_is_never_read(firm: Any, stub: Any) -> None:
    """Failed as infected, before anything looked at its content."""
    ticket = firm.upload()
    scanner = FixedScanner(ScanResult(ScanVerdict.INFECTED, signature="Test"))
    assert firm.worker(stub, scanner=scanner).handle(ticket) == Ack()
    document = firm.document(ticket)
    assert document.processing_status is ProcessingStatus.FAILED
    assert document.failure_kind == FailureKind.INFECTED
    assert stub.reads == 0
    assert firm.search("harbour") == []


@pytest.mark.parametrize("fault", [ScanFault.ABSENT, ScanFault.TIMED_OUT, ScanFault.PROTOCOL, ScanFault.REFUSED])
def test_an_unscanned_file_is_never_let_through(firm: Any, stub: Any, fault: ScanFault) -> None:
    """While the scanner gives no answer the document stays uploaded; a refusal of this file spends an attempt."""
    ticket = firm.upload()
    scanner = FixedScanner(ScanResult(ScanVerdict.UNAVAILABLE, fault=fault))
    verdict = firm.worker(stub, scanner=scanner).handle(ticket)
    assert isinstance(verdict, Retry)
    assert verdict.spent is (fault is ScanFault.REFUSED)
    assert firm.document(ticket).processing_status is ProcessingStatus.UPLOADED
    assert stub.reads == 0


def test_a_file_too_large_for_the_scanner_fails_visibly(firm: Any, stub: Any) -> None:
    """Waiting would not help: only another setting of the scanner would."""
    ticket = firm.upload()
    scanner = FixedScanner(ScanResult(ScanVerdict.UNAVAILABLE, fault=ScanFault.SIZE_LIMIT))
    assert firm.worker(stub, scanner=scanner).handle(ticket) == Ack()
    assert firm.document(ticket).processing_message == messages.UNSCANNABLE


def test_an_object_that_was_replaced_is_scanned_again(firm: Any, stub: Any) -> None:
    """Clean at first; another object under the same key before the retry is not trusted by the first one's answer."""
    ticket = firm.upload(b"first")
    scanner = FixedScanner(ScanResult(ScanVerdict.CLEAN))
    stub.reason = ReasonCode.READER_CRASHED
    worker = firm.worker(stub, scanner=scanner)
    assert isinstance(worker.handle(ticket), Retry)
    assert isinstance(worker.handle(ticket), Retry)
    assert scanner.asked == 1
    firm.store.put(ticket.object_key, b"second", content_type="text/plain")
    scanner.result = ScanResult(ScanVerdict.INFECTED, signature="Test")
    assert worker.handle(ticket) == Ack()
    assert scanner.asked == 2
    assert firm.document(ticket).failure_kind == FailureKind.INFECTED


def test_a_key_that_leads_to_another_firms_object_is_not_followed(firm: Any, stub: Any) -> None:
    """Whoever works for a firm may write a key into a row; the store knows no firms, so the worker does."""
    other = firm.other()
    theirs = other.upload(b"privileged")
    for key in (
        theirs.object_key,
        f"agent-runs/{theirs.document_id}/artifact.json",
        f"documents/{firm.id}/x/letter.txt",
    ):
        mine = firm.upload(b"mine")
        firm.prepare("UPDATE documents SET object_key = :key WHERE id = :id", key=key, id=mine.document_id)
        assert firm.worker(stub).handle(counted(mine, 3)) == Ack()
        assert firm.document(mine).failure_kind == FailureKind.OBJECT_MISSING
    assert stub.reads == 0


@pytest.mark.parametrize("ends", [None, ReasonCode.CORRUPT])
def test_the_checksum_is_of_the_bytes_that_were_read(firm: Any, stub: Any, ends: ReasonCode | None) -> None:
    """The object is replaced between two attempts: checksum and size are told of what the verdict is about."""
    ticket = firm.upload(b"first")
    stub.reason = ReasonCode.READER_CRASHED
    assert isinstance(firm.worker(stub).handle(ticket), Retry)
    firm.store.put(ticket.object_key, b"the second", content_type="text/plain")
    stub.reason = ends
    assert firm.worker(stub).handle(ticket) == Ack()
    document = firm.document(ticket)
    assert (document.checksum_sha256, document.size_bytes) == (sha256(b"the second").hexdigest(), 10)


def test_a_reader_that_crashes_is_tried_again_and_given_up_visibly(firm: Any, stub: Any) -> None:
    """Each crash spends an attempt; giving up fails the document with a sentence."""
    ticket = firm.upload()
    stub.reason = ReasonCode.READER_CRASHED
    verdict = firm.worker(stub).handle(ticket)
    assert isinstance(verdict, Retry)
    assert verdict.spent
    assert firm.document(ticket).processing_status is ProcessingStatus.EXTRACTING
    assert firm.worker(stub).give_up(ticket) == Ack()
    document = firm.document(ticket)
    assert document.processing_status is ProcessingStatus.FAILED
    assert document.failure_kind == FailureKind.EXTRACTION_CRASHED
    assert document.processing_message == messages.CRASHED
    assert firm.ticket(document.id).outcome is Outcome.POISON


def test_giving_up_what_was_done_changes_nothing(firm: Any, stub: Any) -> None:
    """A ticket whose attempts are used up is not failed where its document is indexed already."""
    ticket = firm.upload()
    worker = firm.worker(stub)
    worker.handle(ticket)
    before = firm.document(ticket)
    assert worker.give_up(ticket) == Ack()
    assert firm.document(ticket) == before


def test_no_process_to_read_in_costs_nothing(firm: Any, stub: Any) -> None:
    """Nothing is known about the file then, so nothing is held against it."""
    ticket = firm.upload()

    def broken() -> None:
        raise ReaderUnavailable

    stub.before = broken
    assert firm.worker(stub).handle(ticket) == Retry(timedelta(seconds=20))


def test_duplicate_content_is_two_documents(firm: Any, stub: Any) -> None:
    """The same bytes twice: two passes, two requests, one checksum."""
    first, second = firm.upload(b"same"), firm.upload(b"same")
    worker = firm.worker(stub)
    assert (worker.handle(first), worker.handle(second)) == (Ack(), Ack())
    documents = firm.document(first), firm.document(second)
    assert documents[0].checksum_sha256 == documents[1].checksum_sha256
    assert documents[0].extraction_run_id != documents[1].extraction_run_id
