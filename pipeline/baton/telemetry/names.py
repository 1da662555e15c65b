"""The closed registry of spans and of what they may carry.

A span that is not named here cannot be opened, and an attribute that is not listed here is
dropped: ids, closed words and counts go out, never content of a document.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class SpanKind(StrEnum):
    """Where a span stands towards a queue or a call."""

    INTERNAL = "internal"
    PRODUCER = "producer"
    CONSUMER = "consumer"
    CLIENT = "client"
    SERVER = "server"


class SpanName(StrEnum):
    """Every span that Baton opens."""

    UPLOAD_FINALIZE = "functions.document_upload.finalize"
    """An upload is finalized; the root of a document's trace."""
    OUTBOX_ENQUEUE = "functions.document_ingest_outbox.enqueue"
    """A ticket is written; its traceparent is stored with it."""
    RELAY_BATCH = "functions.document_ingest_relay.batch"
    """A batch of tickets is sent; linked to each ticket's trace."""
    EXTRACT = "functions.document_extraction.extract"
    """One document is fetched, scanned, read and indexed."""
    REGISTRATION_DISPATCH = "functions.document_registration.dispatch"
    """A registration request is decided on, and its run made."""
    UNDERSTANDING_DISPATCH = "functions.document_understanding.dispatch"
    """A request for a card, sections or a brief is decided on."""
    AGENT_INVOKE = "functions.agent_run.invoke"
    """The agent is asked; its answer is short."""
    AGENT_SETTLE = "functions.agent_run.settle"
    """A run's artifact is verified and the run settled."""
    ARTIFACT_APPLY = "functions.document_artifact.apply"
    """A settled run's effects are applied, or its failure stamped."""
    RUN_SWEEP = "functions.agent_run_sweeper.pass"
    """One look at the runs past their deadline."""
    RECONCILE_PASS = "functions.document_reconciler.pass"
    """One hot scan with its repairs."""
    RECONCILE_SCRUB = "functions.document_reconciler.scrub"
    """One slice of the walk over all documents."""
    RECONCILE_REPAIR = "functions.document_reconciler.repair"
    """One document's repair."""
    REFERENCE_AGENT_RUN = "functions.reference_agent.run"
    """The reference agent works on one run."""


KINDS: Final[dict[SpanName, SpanKind]] = {
    SpanName.UPLOAD_FINALIZE: SpanKind.INTERNAL,
    SpanName.OUTBOX_ENQUEUE: SpanKind.PRODUCER,
    SpanName.RELAY_BATCH: SpanKind.CONSUMER,
    SpanName.EXTRACT: SpanKind.CONSUMER,
    SpanName.REGISTRATION_DISPATCH: SpanKind.CONSUMER,
    SpanName.UNDERSTANDING_DISPATCH: SpanKind.CONSUMER,
    SpanName.AGENT_INVOKE: SpanKind.CLIENT,
    SpanName.AGENT_SETTLE: SpanKind.CONSUMER,
    SpanName.ARTIFACT_APPLY: SpanKind.CONSUMER,
    SpanName.RUN_SWEEP: SpanKind.INTERNAL,
    SpanName.RECONCILE_PASS: SpanKind.INTERNAL,
    SpanName.RECONCILE_SCRUB: SpanKind.INTERNAL,
    SpanName.RECONCILE_REPAIR: SpanKind.INTERNAL,
    SpanName.REFERENCE_AGENT_RUN: SpanKind.SERVER,
}
"""The kind of each span, unless its opener says otherwise."""


class Attribute(StrEnum):
    """Everything that a span may carry."""

    FIRM = "firm_id"
    MATTER = "matter_id"
    DOCUMENT = "document_id"
    PASS = "extraction_run_id"
    RUN = "run_id"
    TICKET = "ticket_id"
    MESSAGE = "message_id"
    EVENT_TYPE = "event_type"
    LANE = "lane"
    QUEUE = "queue"
    PURPOSE = "purpose"
    SCHEMA = "schema"
    KIND = "kind"
    STATE = "state"
    OUTCOME = "outcome"
    VERDICT = "verdict"
    REASON = "reason_code"
    RULE = "rule"
    EPOCH = "epoch"
    ATTEMPT = "attempt"
    GENERATION = "generation"
    STATUS_CODE = "status_code"
    BATCH_COUNT = "batch_count"
    SENT_COUNT = "sent_count"
    FAILED_COUNT = "failed_count"
    FOUND_COUNT = "found_count"
    REPAIRED_COUNT = "repaired_count"
    EFFECT_COUNT = "effect_count"
    PAGE_COUNT = "page_count"
    BYTE_COUNT = "byte_count"
    LINKS_DROPPED = "links_dropped"
    ERROR = "error_type"
