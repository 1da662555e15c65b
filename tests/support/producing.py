"""Finalizing uploads at an even rate, in processes of their own: whoever measures does not share an interpreter with them."""

import multiprocessing
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from uuid import UUID

from sqlalchemy import Engine
from uuid_utils.compat import uuid7

from baton.aws.objects import ObjectHead
from baton.db.connect import database_engine, firm_transaction
from baton.documents.upload import create_document, finalize_upload

#: Seconds that the processes have to start before the first document is due.
_HEAD_START = 3.0
_WARM = 20


class NullStore:
    """Every object is there; so that only the database is measured."""

    def head(self, key: str) -> ObjectHead:
        """A file of some bytes."""
        return ObjectHead(key=key, size=1000, etag="e", content_type="text/plain", sha256=None)


def await_upload(engine: Engine, firm: UUID, count: int) -> list[UUID]:
    """So many documents whose upload has begun."""
    matter = uuid7()
    with firm_transaction(engine, firm) as connection:
        return [
            create_document(connection, firm_id=firm, matter_id=matter, name="a.txt", content_type="text/plain").id
            for _ in range(count)
        ]


def finalize(
    url: str, firm: UUID, documents: Sequence[UUID], *, a_second: float, processes: int
) -> tuple[dict[str, float], float]:
    """Ticket → when its commit had returned, by the machine's monotonic clock; and by how much the plan was missed at worst."""
    begin = time.monotonic() + _HEAD_START
    shares = [documents[number::processes] for number in range(processes)]
    plans = [
        [begin + place / a_second for place in range(number, len(documents), processes)] for number in range(processes)
    ]
    context = multiprocessing.get_context("spawn")
    committed: dict[str, float] = {}
    late = 0.0
    with ProcessPoolExecutor(processes, mp_context=context) as pool:
        for made, missed in pool.map(_finalize, [url] * processes, [firm] * processes, shares, plans):
            committed |= made
            late = max(late, missed)
    return committed, late


def _finalize(url: str, firm: UUID, documents: Sequence[UUID], plan: Sequence[float]) -> tuple[dict[str, float], float]:
    engine = database_engine(url, application="producer", prepare=True)
    committed: dict[str, float] = {}
    late, pause = 0.0, threading.Event()
    with firm_transaction(engine, firm) as connection:  # statements are compiled before the first document is due
        for document in documents[:_WARM]:
            with connection.begin_nested() as point:
                finalize_upload(connection, document_id=document, store=NullStore(), actor="bench")
                point.rollback()
    for document, due in zip(documents, plan, strict=True):
        pause.wait(max(0.0, due - time.monotonic()))
        late = max(late, time.monotonic() - due)
        with firm_transaction(engine, firm) as connection:
            done = finalize_upload(connection, document_id=document, store=NullStore(), actor="bench")
        committed[str(done.ingest_ticket_id)] = time.monotonic()
    engine.dispose()
    return committed, late
