"""The machine of the processing status, held to the table of edges without a database."""

from itertools import product
from typing import Any
from uuid import uuid4

import pytest

from baton.db.edges import EDGES, Machine
from baton.db.errors import IllegalTransition
from baton.db.rows import Document
from baton.db.states import ProcessingStatus
from baton.documents import processing
from baton.documents.machine import move


class Untouched:
    """An executor that must not be used."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"the database was asked: {name}")


class Reached(Exception):
    """The database would have been asked."""


class Asked:
    """An executor that tells that it was used."""

    def execute(self, *_: Any, **__: Any) -> Any:
        """Go no further."""
        raise Reached


def document(status: ProcessingStatus) -> Document:
    """A document of which nothing but the status matters."""
    values: dict[str, Any] = dict.fromkeys(Document.__dataclass_fields__)
    values |= {"id": uuid4(), "processing_status": status, "extraction_epoch": 1, "extraction_attempt": 0}
    return Document(**values)


LEGAL = {(edge.source, edge.target): edge for edge in EDGES[Machine.PROCESSING]}


@pytest.mark.parametrize(("source", "target"), list(product(ProcessingStatus, ProcessingStatus)))
def test_a_move_that_is_no_edge_never_reaches_the_database(source: ProcessingStatus, target: ProcessingStatus) -> None:
    """Of 49 pairs exactly the edges of the table pass; those that begin an epoch pass with an epoch only."""
    edge = LEGAL.get((source, target))
    if edge is None or edge.guard is not None:
        with pytest.raises(IllegalTransition):
            move(Untouched(), document(source), target)  # type: ignore[arg-type]
    if edge is not None:
        with pytest.raises(Reached):
            move(Asked(), document(source), target, extraction_epoch=2)  # type: ignore[arg-type]


def test_only_text_is_a_verdict_with_text() -> None:
    """A failure is not to be slipped in as the end of a reading."""
    for verdict in set(ProcessingStatus) - {ProcessingStatus.INDEXED, ProcessingStatus.NEEDS_REVIEW}:
        with pytest.raises(ValueError, match="verdict"):
            processing.finish(
                Untouched(),  # type: ignore[arg-type]
                document(ProcessingStatus.EXTRACTING),
                verdict=verdict,
                extraction_run_id=uuid4(),
                message=None,
            )
