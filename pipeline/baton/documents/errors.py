"""What the doors refuse; nothing is written when one of these is raised.

    DoorRefused
    ├── UnknownDocument       no such document for this firm; another firm's looks exactly the same
    ├── DocumentDeleted       it is deleted; restore it first
    ├── ObjectNotUploaded     the store has no object at the document's key
    ├── NotPossible           the document's state does not allow what was asked
    └── LostDocument          it changed under a caller that did not hold its lock, or is of another epoch

A store that fails raises ``baton.aws.errors.StoreUnavailable``: nothing is known then, and the caller asks again.
"""

from __future__ import annotations


class DoorRefused(Exception):
    """What was asked for cannot be done; the message is for the caller to show."""


class UnknownDocument(DoorRefused):
    """There is no such document for this firm."""


class DocumentDeleted(DoorRefused):
    """The document is deleted."""


class ObjectNotUploaded(DoorRefused):
    """The store has no object at the document's key."""


class NotPossible(DoorRefused):
    """The document's state does not allow what was asked."""


class LostDocument(DoorRefused):
    """The document is not as it was read."""
