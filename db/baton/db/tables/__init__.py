"""The declared schema as SQLAlchemy Core tables, one module per schema.

Importing this package registers every table on :data:`metadata`. A migrated
empty database equals what is declared here; a test compares the two.
"""

from baton.db.tables.agents import agent_effect, agent_run
from baton.db.tables.base import metadata
from baton.db.tables.content import document_page, document_search
from baton.db.tables.documents import documents
from baton.db.tables.inbox import inbox_item
from baton.db.tables.ledgers import audit_event, registration_repair, status_transition
from baton.db.tables.operations import agent_spend, consumer_heartbeat, dispatch_guard, release
from baton.db.tables.outbox import outbox
from baton.db.tables.reconciling import (
    dead_letter,
    lane_reading,
    maintenance,
    owner,
    reconcile_state,
    redrive,
    repair_budget,
)
from baton.db.tables.record import (
    assertion,
    firm_policy,
    intent_claim,
    part_content,
    understanding_part,
)

__all__ = [
    "agent_effect",
    "agent_run",
    "agent_spend",
    "assertion",
    "audit_event",
    "consumer_heartbeat",
    "dead_letter",
    "dispatch_guard",
    "document_page",
    "document_search",
    "documents",
    "firm_policy",
    "inbox_item",
    "intent_claim",
    "lane_reading",
    "maintenance",
    "metadata",
    "outbox",
    "owner",
    "part_content",
    "reconcile_state",
    "redrive",
    "registration_repair",
    "release",
    "repair_budget",
    "status_transition",
    "understanding_part",
]
