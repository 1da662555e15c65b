"""Idempotency keys: plain for the first request, of its own for every other."""

import hashlib
from dataclasses import replace
from uuid import UUID

import pytest

from baton.db.states import EventType, Part
from baton.outbox.keys import Subject, idempotency_key

FIRM = UUID("01890000-0000-7000-8000-00000000000f")
DOCUMENT = UUID("01890000-0000-7000-8000-00000000000d")
PASS = UUID("01890000-0000-7000-8000-00000000000a")
RUN = UUID("01890000-0000-7000-8000-00000000000b")
REQUEST = UUID("01890000-0000-7000-8000-00000000000c")


def _subject(event: EventType, **more: object) -> Subject:
    return Subject(firm_id=FIRM, document_id=DOCUMENT, event_type=event, extraction_epoch=1, **more)  # type: ignore[arg-type]


def _sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


INGEST = _subject(EventType.INGEST_REQUESTED)
REGISTRATION = _subject(EventType.REGISTRATION_REQUESTED, extraction_run_id=PASS)
CARD = _subject(EventType.UNDERSTANDING_REQUESTED, extraction_run_id=PASS, part=Part.CARD)
RESEGMENT = _subject(EventType.RESEGMENT_REQUESTED, extraction_run_id=PASS, part=Part.SECTIONS, request_id=REQUEST)
ARTIFACT = _subject(EventType.ARTIFACT_DELIVERED, extraction_run_id=PASS, run_id=RUN)


@pytest.mark.parametrize(
    ("subject", "key"),
    [
        (INGEST, f"document_ingest:{_sha(f'{FIRM}:{DOCUMENT}')}"),
        (replace(INGEST, extraction_epoch=2), f"document_ingest:{_sha(f'{FIRM}:{DOCUMENT}:2')}"),
        (REGISTRATION, f"document_registration:{_sha(f'{FIRM}:{DOCUMENT}:{PASS}')}"),
        (CARD, f"document_understanding:{_sha(f'{FIRM}:{DOCUMENT}:{PASS}:card')}"),
        (RESEGMENT, f"document_resegment:{REQUEST}"),
        (ARTIFACT, f"document_artifact:{RUN}"),
    ],
)
def test_the_first_request_has_the_plain_key(subject: Subject, key: str) -> None:
    """The keys are an interface with whoever deduplicates by them."""
    assert idempotency_key(subject) == key


def test_no_two_requests_share_a_key() -> None:
    """Neither generations, nor epochs, nor parts, nor kinds can be taken for one another."""
    subjects = [REGISTRATION, RESEGMENT, ARTIFACT]
    subjects += [replace(INGEST, extraction_epoch=epoch) for epoch in range(1, 6)]
    subjects += [replace(CARD, part=part) for part in Part]
    keys = [idempotency_key(subject, generation) for subject in subjects for generation in range(1, 6)]
    assert len(set(keys)) == len(keys)
    assert all(len(key) <= 128 and key.isascii() and " " not in key for key in keys)
