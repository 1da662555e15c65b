"""Envelopes: what is written can be read, and nothing else can."""

import contextlib
import json
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baton.db.states import EventType
from baton.outbox import envelope

ID = UUID("01890000-0000-7000-8000-000000000001")


def _written(**changed: object) -> str:
    values = {
        "ticket_id": 7,
        "idempotency_key": "document_ingest:abc",
        "event_type": "document.ingest.requested",
        "firm_id": ID,
        "matter_id": ID,
        "document_id": ID,
        "object_key": "documents/a.pdf",
        "content_type": "application/pdf",
        **changed,
    }
    return envelope.write(**values)  # type: ignore[arg-type]


def _changed(**changed: object) -> str:
    return json.dumps({**json.loads(_written()), **changed})


def test_an_envelope_has_the_agreed_fields() -> None:
    """The body's names are an interface."""
    assert set(json.loads(_written(run_id=ID, part="card"))) == {
        "v", "ticket_id", "idempotency_key", "event_type", "firm_id", "matter_id", "document_id", "object_key",
        "content_type", "run_id", "part",
    }  # fmt: skip


def test_no_ticket_makes_a_body_that_a_receiver_would_not_read() -> None:
    """A key of the longest and a content type of any length, every character of them escaped, still arrive."""
    body = _written(object_key="\U0001f4c4" * 1024, content_type="\U0001f4c4" * 100_000)
    assert envelope.parse(body).ticket_id == 7


@given(st.text(min_size=1, max_size=60))
def test_any_file_name_travels(name: str) -> None:
    """A body is printable ASCII whatever stands in it, and reads back."""
    body = _written(object_key=name)
    assert all(" " <= character <= "~" for character in body)
    assert json.loads(body)["object_key"] == name
    read = envelope.parse(body)
    assert (read.ticket_id, read.idempotency_key) == (7, "document_ingest:abc")
    assert read.event_type is EventType.INGEST_REQUESTED


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("", envelope.UnreadableEnvelope),
        ("nonsense", envelope.UnreadableEnvelope),
        ("[]", envelope.UnreadableEnvelope),
        ("null", envelope.UnreadableEnvelope),
        ("[" * 60_000, envelope.UnreadableEnvelope),
        ('{"v":' + "1" * 5000 + "}", envelope.UnreadableEnvelope),
        (_changed(object_key="x" * 70_000), envelope.UnreadableEnvelope),
        (_changed(ticket_id="7"), envelope.UnreadableEnvelope),
        (_changed(ticket_id=True), envelope.UnreadableEnvelope),
        (_changed(ticket_id=0), envelope.UnreadableEnvelope),
        (_changed(ticket_id=2**63), envelope.UnreadableEnvelope),
        (_changed(ticket_id=1.5), envelope.UnreadableEnvelope),
        (_changed(idempotency_key=""), envelope.UnreadableEnvelope),
        (_changed(idempotency_key="k" * 129), envelope.UnreadableEnvelope),
        (_changed(idempotency_key=None), envelope.UnreadableEnvelope),
        (_changed(event_type=None), envelope.UnreadableEnvelope),
        (_changed(event_type="document.unheard.of"), envelope.UnknownEvent),
        (_changed(v=2), envelope.UnknownVersion),
        (_changed(v=True), envelope.UnreadableEnvelope),
        (_changed(v="1"), envelope.UnreadableEnvelope),
        (_changed(v=0), envelope.UnreadableEnvelope),
        (_changed(v=-1), envelope.UnreadableEnvelope),
        ("{}", envelope.UnreadableEnvelope),
        ('{"Service":"Amazon S3","Event":"s3:TestEvent"}', envelope.UnreadableEnvelope),
    ],
)
def test_anything_else_is_refused_by_kind(body: str, kind: type[Exception]) -> None:
    """Each kind of nonsense has its own error, and none repeats the message."""
    with pytest.raises(kind) as refused:
        envelope.parse(body)
    assert type(refused.value) is kind
    assert len(str(refused.value)) < 80


@given(st.text(max_size=200))
def test_no_text_crashes_the_reader(body: str) -> None:
    """Whatever arrives is an envelope or an EnvelopeError."""
    with contextlib.suppress(envelope.EnvelopeError):
        envelope.parse(body)


@pytest.mark.parametrize("stored", [None, "", " ", "hello", "00-zz", "00-" + "a" * 200, "\x00"])
def test_a_trace_that_is_none_is_left_out(stored: str | None) -> None:
    """A queue refuses empty or odd attributes, and the ticket would be counted at fault."""
    assert envelope.attributes(stored) == {}


def test_a_trace_travels_beside_the_body() -> None:
    """A stored traceparent is the message's one attribute."""
    trace = f"00-{'a' * 32}-{'b' * 16}-01"
    assert envelope.attributes(trace) == {"traceparent": trace}
