"""Names that people and programs read in the resources: kinds, conditions, reasons, labels, annotations.

They are documented, and part of the version of the API: a reason that is gone breaks somebody's alert.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

GROUP: Final = "baton.pramaan.dev"
VERSION: Final = "v1alpha1"

#: A secret may be used only if this label stands at "true".
USE_LABEL: Final = f"{GROUP}/use"
#: A new value asks for a pass now; the value is repeated in ``status.lastHandledReconcileAt``.
RECONCILE_AT: Final = f"{GROUP}/reconcile-at"

#: Whom a token is meant for that is good for the read-only API and for nothing else.
AUDIENCE: Final = GROUP
#: The port of the read-only API, where nothing else is said, and the labels of the pods that answer there.
READING_PORT: Final = 8642
OPERATOR_LABELS: Final = "app.kubernetes.io/name=baton,app.kubernetes.io/component=operator"


class Plural(StrEnum):
    """The kinds, as they stand in paths."""

    RECONCILERS = "registrationreconcilers"
    REDRIVES = "registrationredrives"


#: Kinds by their plurals.
KINDS: Final = {Plural.RECONCILERS: "RegistrationReconciler", Plural.REDRIVES: "RegistrationRedrive"}


class Phase(StrEnum):
    """How far a redrive is."""

    PENDING = "Pending"
    PLANNED = "Planned"
    """What would be done is known, and nothing is done yet."""
    RUNNING = "Running"
    FINISHED = "Finished"
    REFUSED = "Refused"
    """It will not be carried out."""

    @property
    def final(self) -> bool:
        """Whether it stays as it is."""
        return self in (Phase.FINISHED, Phase.REFUSED)


class ConditionType(StrEnum):
    """What is said of a resource. ``READY`` sums up the others."""

    READY = "Ready"
    """Passes are made and end, whatever they find."""
    RECONCILING = "Reconciling"
    """The first pass is not over, or the last one failed and is tried again."""
    STALLED = "Stalled"
    """Somebody has to do something."""
    DRIFTED = "Drifted"
    """Documents disagree with what is wanted."""
    SUSPENDED = "Suspended"
    """Repairs are held back."""
    BREAKER_OPEN = "BreakerOpen"
    """The breaker holds agent runs back."""


class Status(StrEnum):
    """Whether a condition holds."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class Reason(StrEnum):
    """Why a condition holds or does not."""

    FIRST_PASS = "FirstPass"
    """No pass has ended yet."""
    IN_ORDER = "InOrder"
    """Nothing was found."""
    DISCREPANCIES_FOUND = "DiscrepanciesFound"
    """Documents disagree with what is wanted."""
    SETTLED = "Settled"
    """Nothing is under way that would have to end first."""
    PROGRESSING = "Progressing"
    """Nothing needs somebody."""

    SECRET_MISSING = "SecretMissing"
    """There is no secret of that name in the resource's namespace."""
    SECRET_NOT_ALLOWED = "SecretNotAllowed"
    """The secret does not carry the label, or the operator may not read it."""
    SECRET_KEY_MISSING = "SecretKeyMissing"
    """The secret has no such key."""
    SECRET_INVALID = "SecretInvalid"
    """The key's value is not what it should be."""
    SPEC_INVALID = "SpecInvalid"
    """The values of the spec do not go together."""
    LOGIN_REFUSED = "LoginRefused"
    """The database does not let the login in."""
    DATABASE_UNREACHABLE = "DatabaseUnreachable"
    """The database does not answer."""
    DATABASE_UNFIT = "DatabaseUnfit"
    """The database or the login's rights are not those that this mode needs."""
    CONFLICT = "Conflict"
    """Another resource works on this database."""
    SERVICES_UNREACHABLE = "ServicesUnreachable"
    """Queues or bucket do not answer, or are not there."""
    PASS_FAILED = "PassFailed"
    """A pass failed in another way; the operator's log says how."""

    RECONCILER_MISSING = "ReconcilerMissing"
    """There is no reconciler of that name in the redrive's namespace."""
    NOT_OWNED = "NotOwned"
    """The reconciler has not begun to work on its database."""
    OBSERVE_ONLY = "ObserveOnly"
    """The reconciler may not repair, and so nothing is redriven."""
    STOPPED = "Stopped"
    """Somebody stopped the redrive in the database."""
    QUEUED = "Queued"
    """Nothing has been done yet."""
    RUNNING = "Running"
    """Documents are being redriven."""
    REHEARSED = "Rehearsed"
    """It was only to be planned, and is."""
    FINISHED = "Finished"
    """All that was chosen has been looked at."""
    PARTLY_FAILED = "PartlyFailed"
    """The same, but for documents that were busy or whose redrive failed."""

    SUSPENDED = "Suspended"
    """Somebody holds repairs back."""
    MAINTENANCE_WINDOW = "MaintenanceWindow"
    """A window is open."""
    NOT_SUSPENDED = "NotSuspended"

    BREAKER_CLOSED = "Closed"
    BREAKER_OPEN = "Open"
    BREAKER_TRIAL = "Trial"
    """Some runs are let through, to see."""

    @property
    def needs_somebody(self) -> bool:
        """Whether it stays as it is until somebody does something."""
        return self in _NEEDS_SOMEBODY


_NEEDS_SOMEBODY: Final = frozenset(
    {
        Reason.SECRET_MISSING,
        Reason.SECRET_NOT_ALLOWED,
        Reason.SECRET_KEY_MISSING,
        Reason.SECRET_INVALID,
        Reason.SPEC_INVALID,
        Reason.LOGIN_REFUSED,
        Reason.DATABASE_UNFIT,
        Reason.CONFLICT,
        Reason.RECONCILER_MISSING,
        Reason.OBSERVE_ONLY,
        Reason.STOPPED,
    }
)
