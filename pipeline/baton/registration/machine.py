"""The machine of ``registration_status``: every move of it in Python goes through :func:`move`.

The database's trigger refuses the same moves by the same table of edges.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import update

from baton.db.connect import Executor
from baton.db.edges import Machine, find
from baton.db.errors import IllegalTransition
from baton.db.rows import DOCUMENT_COLUMNS, Document, as_document
from baton.db.states import RegistrationStatus
from baton.db.tables import documents


class LostDocument(Exception):
    """The document was not as it had been read: whoever moves it does not hold its lock."""


def move(executor: Executor, document: Document, target: RegistrationStatus, **values: Any) -> Document:
    """Move a locked document to ``target``, write ``values`` in the same UPDATE, and return it as it then is.

    The since-time, the ledger row and the clearing of marks are the trigger's.

    :raises IllegalTransition: the machine has no such edge.
    :raises LostDocument: the status is no longer the one that was read under the lock.
    """
    if find(Machine.REGISTRATION, source=document.registration_status, target=target) is None:
        raise IllegalTransition(
            f"registration status cannot go from {document.registration_status} to {target}",
            constraint="registration_status_edge",
        )
    return write(executor, document, registration_status=target.value, **values)


def write(executor: Executor, document: Document, **values: Any) -> Document:
    """Write columns of the registration axis of a locked document, provided that its status is still the one read."""
    row = executor.execute(
        update(documents)
        .where(documents.c.id == document.id, documents.c.registration_status == document.registration_status.value)
        .values(**values)
        .returning(*DOCUMENT_COLUMNS)
    ).one_or_none()
    if row is None:
        raise LostDocument(f"document {document.id} is no longer {document.registration_status}")
    return as_document(row)
