"""The appliers of ``document.card.v1``, ``document.sections.v1`` and ``document.brief.v1``.

Each writes its part's content and ends the part; the next of the chain is asked for by the part's own machine. Neither
of the document's axes is touched.
"""

from __future__ import annotations

from sqlalchemy import Connection, func
from sqlalchemy.dialects.postgresql import insert

from baton.contract.artifacts import dump_effects
from baton.db.tables import part_content
from baton.record.aspects import Understanding
from baton.record.letters import Letter
from baton.registration import parts


def apply_part(connection: Connection, letter: Letter) -> None:
    """Write the part's content, in place of what it held, and end the part as ready."""
    aspect = letter.aspect
    if not isinstance(aspect, Understanding):
        raise TypeError("a part's result is for a part")
    row = aspect.running
    (content,) = dump_effects([letter.effect])
    statement = insert(part_content).values(
        firm_id=row.firm_id,
        document_id=row.document_id,
        extraction_run_id=row.extraction_run_id,
        part=row.part.value,
        run_id=letter.delivery.run_id,
        content=content,
    )
    connection.execute(
        statement.on_conflict_do_update(
            index_elements=["document_id", "extraction_run_id", "part", "firm_id"],
            set_={
                "run_id": statement.excluded.run_id,
                "content": statement.excluded.content,
                "written_at": func.app.clock(),
            },
        )
    )
    parts.ready(connection, aspect.document, row)
