"""What the database refuses, as typed errors found by constraint name.

DatabaseRefusal
├── IllegalTransition      a status machine has no such edge
├── LedgerRewrite          an append-only table, or a ticket's identity
├── DuplicateKey           a unique key
└── UnknownReference       a foreign key: the row it names is not there for this firm
StartupRefusal             the process must not run against this database
MigrationFailed            the database stays at the version it had
"""

from __future__ import annotations

from sqlalchemy.exc import DBAPIError


class DatabaseRefusal(Exception):
    """The database refused a statement by one of its rules."""

    def __init__(self, message: str, *, constraint: str) -> None:
        super().__init__(message)
        self.constraint = constraint


class IllegalTransition(DatabaseRefusal):
    """The status machine has no such edge."""


class LedgerRewrite(DatabaseRefusal):
    """History is append-only, and a ticket keeps its identity."""


class DuplicateKey(DatabaseRefusal):
    """Another row has this key already."""


class UnknownReference(DatabaseRefusal):
    """The row that is named does not exist, or not for this firm."""


class StartupRefusal(Exception):
    """This process must not run against this database; one line per fault in ``faults``."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__("\n".join(faults))
        self.faults = tuple(faults)


class MigrationFailed(Exception):
    """The migration was rolled back; the database is at the version it had before."""


_EDGES = frozenset(
    {
        "processing_status_edge",
        "registration_status_edge",
        "run_status_edge",
        "part_status_edge",
        "document_initial_status",
        "extraction_epoch",
    }
)
_LEDGERS = frozenset({"append_only", "ticket_immutable"})


def refusal(error: DBAPIError) -> DatabaseRefusal | None:
    """The typed error behind a driver's error, or ``None`` where it is no refusal by a rule."""
    state = getattr(error.orig, "sqlstate", None) or ""
    diagnostics = getattr(error.orig, "diag", None)
    constraint = (getattr(diagnostics, "constraint_name", None) or "") if diagnostics is not None else ""
    message = (getattr(diagnostics, "message_primary", None) or str(error.orig)) if diagnostics else str(error.orig)
    if constraint in _EDGES:
        return IllegalTransition(message, constraint=constraint)
    if constraint in _LEDGERS:
        return LedgerRewrite(message, constraint=constraint)
    if state == "23505":
        return DuplicateKey(message, constraint=constraint)
    if state == "23503":
        return UnknownReference(message, constraint=constraint)
    if state.startswith("23"):
        return DatabaseRefusal(message, constraint=constraint)
    return None
