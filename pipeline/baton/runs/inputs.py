"""What an invocation carries: pointers to the text, where the result goes, and metadata. Never content.

The pages of a pass are put into the store once, under a key of their own; putting them again changes nothing.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from sqlalchemy import Engine, func, select

from baton.aws.errors import ObjectExists, ObjectMissing
from baton.aws.objects import Store
from baton.contract import limits as bounds
from baton.contract.invocations import (
    Candidate,
    InputKind,
    InputPointer,
    Invocation,
    InvocationContext,
    ResultDelivery,
)
from baton.contract.pages import PAGES_CONTENT_TYPE, PageText, encode_pages
from baton.contract.purposes import Purpose
from baton.contract.wording import clean_line
from baton.db.connect import Executor, read_connection
from baton.db.rows import Document, read_document
from baton.db.tables import document_page, documents
from baton.runs.rows import Run
from baton.settings.agents import Runs

ARTIFACT_CONTENT_TYPE: Final = "application/json"
_LONGEST_URL: Final = 604_800


class NothingToRead(Exception):
    """The document of the run cannot be seen any more."""


def pages_key(run: Run) -> str:
    """Where the text of a pass is put for agents.

    The store knows no firms, and a row's pass may have been written by whoever works for its firm: the document is in the
    key, too, and the agent cannot read it there.
    """
    whose = hashlib.sha256(run.firm_id.bytes + run.document_id.bytes).hexdigest()
    return f"agent-inputs/{run.extraction_run_id}/{whose}/pages.json"


class Inputs:
    """Prepares invocations; shared between threads."""

    def __init__(self, engine: Engine, store: Store, *, limits: Runs) -> None:
        self._engine = engine
        self._store = store
        self._limits = limits

    def invocation(self, run: Run) -> Invocation:
        """The invocation of a pending run, the same whenever it is asked for but for its signatures.

        Holds no lock while it talks to the store.

        :raises AwsError: the store is away, or its credentials end before the run's deadline.
        :raises NothingToRead: there is no such document.
        """
        digest = self._deliver_pages(run)
        with read_connection(self._engine) as connection:
            document = read_document(connection, run.document_id)
            if document is None:
                raise NothingToRead
            context = _context(connection, document, run)
        # a presigned PUT ends with the deadline: what arrives later is ignored, and cannot even be written
        seconds = min(max(math.ceil(run.seconds_left), 1), _LONGEST_URL)
        put = self._store.presign_put(run.result_key, content_type=ARTIFACT_CONTENT_TYPE, seconds=seconds)
        return Invocation(
            run_id=run.run_id,
            purpose=run.purpose,
            inputs=(
                InputPointer(
                    kind=InputKind.TEXT,
                    url=self._store.presign_get(pages_key(run), seconds=seconds),
                    content_type=PAGES_CONTENT_TYPE,
                    sha256=digest,
                ),
            ),
            context=context,
            result_delivery=ResultDelivery(
                url=put.url,
                headers=put.headers,
                schema=run.result_schema,
                deadline=run.deadline_at,
                max_bytes=min(self._limits.artifact_max_bytes, bounds.MAX_ARTIFACT_BYTES),
            ),
        )

    def _deliver_pages(self, run: Run) -> str | None:
        """Put the text of the pass where it is not yet; its SHA-256 in hex, where it is known.

        Of a pass, the run that classifies comes first, so that it is not asked before whether the text is there.
        """
        key = pages_key(run)
        if run.purpose is not Purpose.CLASSIFY:
            with suppress(ObjectMissing):
                return self._store.head(key).sha256
        with read_connection(self._engine) as connection:
            data = encode_pages(_pages(connection, run))
        try:
            self._store.put(key, data, content_type=PAGES_CONTENT_TYPE, only_new=True)
        except ObjectExists:
            return self._store.head(key).sha256
        return hashlib.sha256(data).hexdigest()


def body(invocation: Invocation) -> bytes:
    """The bytes to POST. Candidates are left out, the oldest first, until they fit."""
    data = invocation.body()
    while len(data) > bounds.MAX_INVOCATION_BYTES and invocation.context.candidates:
        half = len(invocation.context.candidates) // 2
        context = invocation.context.model_copy(update={"candidates": invocation.context.candidates[:half]})
        invocation = invocation.model_copy(update={"context": context})
        data = invocation.body()
    return data


def _pages(executor: Executor, run: Run) -> list[PageText]:
    rows = executor.execute(
        select(document_page.c.page_number, document_page.c.text)
        .where(
            document_page.c.document_id == run.document_id,
            document_page.c.extraction_run_id == run.extraction_run_id,
        )
        .order_by(document_page.c.page_number)
        .limit(bounds.MAX_PAGES)
    )
    return [PageText(row.page_number, row.text) for row in rows if row.page_number <= bounds.MAX_PAGE_NUMBER]


def _context(executor: Executor, document: Document, run: Run) -> InvocationContext:
    count = executor.execute(
        select(func.count())
        .select_from(document_page)
        .where(
            document_page.c.document_id == run.document_id,
            document_page.c.extraction_run_id == run.extraction_run_id,
        )
    ).scalar_one()
    # only a classification proposes links
    named = _names_of_matter(executor, document) if run.purpose is Purpose.CLASSIFY else ()
    return InvocationContext(
        file_name=document.name,
        content_type=document.content_type,
        page_count=min(int(count), bounds.MAX_PAGE_NUMBER),
        candidates=tuple(Candidate(name=name) for name in named),
    )


def _names_of_matter(executor: Executor, document: Document) -> Sequence[str]:
    """Names of the newest other documents of the same firm and matter; an agent learns no id."""
    names = executor.scalars(
        select(documents.c.name)
        .where(
            documents.c.firm_id == document.firm_id,
            documents.c.matter_id == document.matter_id,
            documents.c.id != document.id,
            documents.c.deleted_at.is_(None),
        )
        .order_by(documents.c.id.desc())
        .limit(bounds.MAX_CANDIDATES)
    )
    return tuple(dict.fromkeys(cleaned for name in names if (cleaned := clean_line(name))))
