"""The machine of ``processing_status``: every move of it in Python goes through :func:`move`.

The database's trigger refuses the same moves by the same table of edges.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import update

from baton.db.connect import Executor
from baton.db.edges import Guard, Machine, find
from baton.db.errors import IllegalTransition
from baton.db.rows import DOCUMENT_COLUMNS, Document, as_document
from baton.db.states import ProcessingStatus
from baton.db.tables import documents
from baton.documents.errors import LostDocument


def move(executor: Executor, document: Document, target: ProcessingStatus, **values: Any) -> Document:
    """Move a document to ``target``, write ``values`` in the same UPDATE, and return it as it then is.

    The UPDATE demands the status and the epoch that were read: a worker of an older epoch, however slow, changes
    nothing. The since-time, the ledger row and the clearing of marks are the trigger's.

    :raises IllegalTransition: the machine has no such edge.
    :raises LostDocument: status or epoch are no longer those that were read.
    """
    edge = find(Machine.PROCESSING, source=document.processing_status, target=target)
    if edge is None or (edge.guard is Guard.EPOCH_RAISED and "extraction_epoch" not in values):
        raise IllegalTransition(
            f"processing status cannot go from {document.processing_status} to {target}",
            constraint="processing_status_edge",
        )
    return write(executor, document, processing_status=target.value, **values)


def write(executor: Executor, document: Document, **values: Any) -> Document:
    """Write columns of a document, provided that its status and epoch are still those that were read.

    :raises LostDocument: they are not.
    """
    row = executor.execute(
        update(documents)
        .where(
            documents.c.id == document.id,
            documents.c.processing_status == document.processing_status.value,
            documents.c.extraction_epoch == document.extraction_epoch,
        )
        .values(**values)
        .returning(*DOCUMENT_COLUMNS)
    ).one_or_none()
    if row is None:
        raise LostDocument(f"document {document.id} is no longer {document.processing_status}")
    return as_document(row)
