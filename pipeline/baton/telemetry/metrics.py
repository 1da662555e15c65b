"""Every metric that Baton keeps, in one place.

Names carry the ``pramaan_`` prefix, durations are seconds, labels come from closed sets.
"""

from __future__ import annotations

from typing import Final

from baton.telemetry.instruments import Counter, Gauge, Histogram
from baton.telemetry.labels import (
    AnswerClass,
    Axis,
    BreakerState,
    DatabaseFault,
    DepthState,
    Discrepancy,
    DispatchOutcome,
    Disposition,
    EventType,
    FaultClass,
    HandleOutcome,
    Lane,
    PassOutcome,
    Purpose,
    QueueRole,
    ReadVerdict,
    RedriveState,
    RegistrationStatus,
    RepairGuard,
    RepairResult,
    RunState,
    Schema,
    SendOutcome,
    Settler,
    TextSource,
)

_QUICK: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_SLOW: Final = (0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800)
_WAIT: Final = (0.01, 0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600, 14_400, 86_400)

# Outbox and relay.

TICKETS_WRITTEN = Counter(
    "pramaan_document_ingest_outbox_tickets_total",
    "Tickets written.",
    labels={"event_type": EventType},
)
RELAY_DURATION = Histogram(
    "pramaan_document_ingest_relay_duration_seconds",
    "One relay batch, from claim to settlement.",
    buckets=_QUICK,
    labels={"lane": Lane},
)
RELAY_TICKETS = Counter(
    "pramaan_document_ingest_relay_tickets_total",
    "Tickets in relay batches, by what became of them.",
    labels={"lane": Lane, "outcome": SendOutcome},
)
RELAY_FAILURES = Counter(
    "pramaan_document_ingest_relay_failures_total",
    "Batches that failed as a whole, by cause.",
    labels={"lane": Lane, "fault": FaultClass},
)
RELAY_PARKED = Counter(
    "pramaan_document_ingest_relay_parked_total",
    "Tickets parked after refusals by their own fault.",
    labels={"lane": Lane},
)
RELAY_STALLED = Gauge(
    "pramaan_document_ingest_relay_stalled",
    "1 while the relay cannot send though tickets are due.",
    labels={"lane": Lane},
)
RELAY_LAG = Gauge(
    "pramaan_document_ingest_relay_lag_seconds",
    "Age of the oldest due ticket that is not dispatched.",
    labels={"lane": Lane},
)
RELAY_WAIT = Histogram(
    "pramaan_document_ingest_relay_wait_seconds",
    "Time of a ticket from being due to being dispatched.",
    buckets=_WAIT,
    labels={"lane": Lane},
)
TICKETS_PARKED = Gauge(
    "pramaan_document_ingest_outbox_parked",
    "Tickets that stand parked; 10001 stands for more than 10,000.",
    labels={"lane": Lane},
    of_resource=True,
)

# Queues and consumers.

QUEUE_MESSAGES = Gauge(
    "pramaan_queue_messages",
    "Messages in a queue, as SQS estimates them.",
    labels={"queue": QueueRole, "state": DepthState},
)
CONSUMER_RECEIVED = Counter(
    "pramaan_consumer_received_total",
    "Messages received.",
    labels={"queue": QueueRole},
)
CONSUMER_HANDLED = Counter(
    "pramaan_consumer_handled_total",
    "Messages let go of, by outcome.",
    labels={"queue": QueueRole, "outcome": HandleOutcome},
)
CONSUMER_IN_FLIGHT = Gauge(
    "pramaan_consumer_in_flight",
    "Messages in hand.",
    labels={"queue": QueueRole},
)
CONSUMER_DURATION = Histogram(
    "pramaan_consumer_handle_duration_seconds",
    "Work on one message.",
    buckets=_SLOW,
    labels={"queue": QueueRole},
)
CONSUMER_FAILURES = Counter(
    "pramaan_consumer_failures_total",
    "Receives, extensions and deletions that failed, by cause.",
    labels={"queue": QueueRole, "fault": FaultClass},
)
CONSUMER_HOLDS_LOST = Counter(
    "pramaan_consumer_holds_lost_total",
    "Messages whose visibility lapsed while they were worked on.",
    labels={"queue": QueueRole},
)

DEAD_LETTERS = Gauge(
    "pramaan_dead_letters",
    "Messages of dead-letter queues that nobody has settled; 10001 stands for more than 10,000.",
    labels={"queue": QueueRole},
    of_resource=True,
)

# Extraction.

EXTRACTIONS = Counter(
    "pramaan_extraction_documents_total",
    "Documents read, by verdict.",
    labels={"verdict": ReadVerdict},
)
EXTRACTION_DURATION = Histogram(
    "pramaan_extraction_duration_seconds",
    "One document, from fetch to commit.",
    buckets=_SLOW,
    labels={"verdict": ReadVerdict},
)
EXTRACTION_PAGES = Counter(
    "pramaan_extraction_pages_total",
    "Pages read, by the source of their text.",
    labels={"source": TextSource},
)

# Agent runs.

DISPATCHES = Counter(
    "pramaan_agent_dispatches_total",
    "Decisions on requests, by purpose and outcome.",
    labels={"purpose": Purpose, "outcome": DispatchOutcome},
)
INVOKES = Counter(
    "pramaan_agent_invokes_total",
    "Invocations, by the class of the agent's answer.",
    labels={"purpose": Purpose, "answer": AnswerClass},
)
INVOKE_DURATION = Histogram(
    "pramaan_agent_invoke_duration_seconds",
    "One invocation, until the agent's answer.",
    buckets=_QUICK,
    labels={"answer": AnswerClass},
)
RUNS_SETTLED = Counter(
    "pramaan_agent_runs_settled_total",
    "Runs settled, by state and by who settled them.",
    labels={"state": RunState, "settler": Settler},
)
RUN_DURATION = Histogram(
    "pramaan_agent_run_duration_seconds",
    "One run, from dispatch to settlement.",
    buckets=_SLOW,
    labels={"state": RunState},
)
ARTIFACTS_LATE = Counter(
    "pramaan_agent_artifacts_late_total",
    "Artifacts that came for a run settled before, by the run's state; ignored.",
    labels={"state": RunState},
)
BUDGET_REFUSALS = Counter(
    "pramaan_agent_budget_refusals_total",
    "Dispatches held back by budget or breaker.",
)
BREAKER_OPEN = Gauge(
    "pramaan_agent_breaker_open",
    "1 while the breaker holds back agent runs.",
    of_resource=True,
)
SWEEP_FAILURES = Counter(
    "pramaan_agent_sweep_failures_total",
    "Looks for an artifact that the object store did not answer.",
)

# The Record.

EFFECTS = Counter(
    "pramaan_record_effects_total",
    "Effects of delivered runs, by schema and disposition.",
    labels={"schema": Schema, "disposition": Disposition},
)
DOCUMENTS_FAILED = Counter(
    "pramaan_documents_failed_total",
    "Documents or parts that failed visibly, by axis.",
    labels={"axis": Axis},
)

# Reconcilers.

DISCREPANCIES = Gauge(
    "pramaan_reconcile_discrepancies",
    "Disagreements that the last whole pass found, before its repairs.",
    labels={"discrepancy": Discrepancy},
    of_resource=True,
)
DISCREPANCY_OLDEST = Gauge(
    "pramaan_reconcile_discrepancy_oldest_seconds",
    "Age of the oldest of them; 0 where there is none.",
    labels={"discrepancy": Discrepancy},
    of_resource=True,
)
REPAIRS = Counter(
    "pramaan_reconcile_repairs_total",
    "Repairs, by discrepancy and by how they ended.",
    labels={"discrepancy": Discrepancy, "result": RepairResult},
)
REPAIRS_REFUSED = Counter(
    "pramaan_reconcile_refused_total",
    "Repairs held back, by what held them.",
    labels={"guard": RepairGuard},
)
PASSES = Counter(
    "pramaan_reconcile_passes_total",
    "Passes, by how they ended.",
    labels={"outcome": PassOutcome},
)
PASS_DURATION = Histogram(
    "pramaan_reconcile_pass_duration_seconds",
    "One pass, its repairs included.",
    buckets=_SLOW,
)
LAST_PASS = Gauge(
    "pramaan_reconcile_last_pass_timestamp_seconds",
    "When the last whole pass ended, by the database's clock.",
    of_resource=True,
)
LAST_SCRUB = Gauge(
    "pramaan_reconcile_last_scrub_timestamp_seconds",
    "When all documents had been walked the last time, by the database's clock; 0 before the first.",
    of_resource=True,
)
SCRUBBED = Counter(
    "pramaan_reconcile_scrubbed_total",
    "Documents judged by the scrub.",
)
REPAIRS_HELD = Gauge(
    "pramaan_reconcile_repairs_held",
    "1 while a suspension or a window holds all repairs back.",
    of_resource=True,
)
DOCUMENTS = Gauge(
    "pramaan_documents",
    "Live documents at a registration status; 10001 stands for more than 10,000.",
    labels={"status": RegistrationStatus},
    of_resource=True,
)
REGISTERING_OLDEST = Gauge(
    "pramaan_documents_registering_oldest_seconds",
    "Age of the oldest document at registering; 0 where there is none.",
    of_resource=True,
)
BREAKER_STATE = Gauge(
    "pramaan_agent_breaker_state",
    "1 for the state in which the breaker is.",
    labels={"state": BreakerState},
    of_resource=True,
)
LANE_OPEN = Gauge(
    "pramaan_lane_open_tickets",
    "Tickets sent and not handled; 10001 stands for more than 10,000.",
    labels={"lane": Lane},
    of_resource=True,
)
LANE_OLDEST = Gauge(
    "pramaan_lane_oldest_open_seconds",
    "Age of the oldest of them, since it was sent; 0 where there is none.",
    labels={"lane": Lane},
    of_resource=True,
)
LANE_STALLED = Gauge(
    "pramaan_lane_stalled",
    "1 while tickets wait on a lane that nobody consumes.",
    labels={"lane": Lane},
    of_resource=True,
)

# The operator.

OPERATOR_LEADS = Gauge(
    "pramaan_operator_leads",
    "1 for the replica that works, 0 for one that waits.",
)
OPERATOR_READY = Gauge(
    "pramaan_operator_resource_ready",
    "1 while a RegistrationReconciler's passes are made and end, 0 while they do not.",
    of_resource=True,
)
OPERATOR_STALLED = Gauge(
    "pramaan_operator_resource_stalled",
    "1 while somebody has to do something about a RegistrationReconciler.",
    of_resource=True,
)
OPERATOR_REDRIVES = Gauge(
    "pramaan_operator_redrives",
    "RegistrationRedrives, by how far they are; as of the last roll-call.",
    labels={"state": RedriveState},
)
OPERATOR_STATUS_WRITES = Counter(
    "pramaan_operator_status_writes_total",
    "Statuses written to the API server.",
)

# The ground under all of it.

MIGRATION_PENDING = Gauge(
    "pramaan_database_migration_pending",
    "1 while the process waits for a database that is older than itself.",
)
DATABASE_ERRORS = Counter(
    "pramaan_database_errors_total",
    "Errors of the database, by cause.",
    labels={"fault": DatabaseFault},
)
