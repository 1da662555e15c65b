"""Matters of a firm: documents that wait for an agent's answer, and answers to deliver and apply."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, text
from uuid_utils.compat import uuid7

from baton.contract.artifacts import Effect, dump_effects
from baton.contract.classification import Concern, Intent, Outcome, Turn, Verdict
from baton.contract.purposes import SCHEMA_OF, Purpose
from baton.db.access import Role
from baton.db.rows import Document, lock_document, read_document
from baton.db.states import EventType, Part
from baton.db.states import Outcome as Closed
from baton.outbox.keys import Subject
from baton.outbox.tickets import Pointer, Ticket, load, write_first
from baton.record.apply import apply
from baton.registration import parts, service
from baton.settings.agents import Runs
from support.databases import Database

LIMITS = Runs()


@dataclass
class Matter:
    """One matter of one firm, as the tests prepare it, look at it and let it be worked on."""

    database: Database
    firm: UUID
    id: UUID

    def sibling(self, *, firm: UUID | None = None) -> "Matter":
        """Another matter: of the same firm unless another is named."""
        return Matter(self.database, firm or self.firm, uuid7())

    def prepare(self, statement: str, **values: Any) -> None:
        """Change something as the preparer."""
        with self.database.preparer.begin() as connection:
            connection.execute(text(statement), values)

    def rows(self, statement: str, **values: Any) -> list[Any]:
        """Look at the database as the preparer, who sees every firm."""
        with self.database.preparer.connect() as connection:
            return list(connection.execute(text(statement), values))

    def count(self, table: str, condition: str = "true", **values: Any) -> int:
        """How many rows there are."""
        return int(self.rows(f"SELECT count(*) FROM {table} WHERE {condition}", **values)[0][0])

    @contextmanager
    def registrar(self) -> Iterator[Connection]:
        """A transaction of the registrar's own role."""
        with self.database.engine(Role.REGISTRAR).begin() as connection:
            yield connection

    def document(self, name: str = "letter.pdf", *, checksum: str | None = None) -> UUID:
        """A document whose text is indexed."""
        identity = uuid7()
        self.prepare(
            "INSERT INTO documents (id, firm_id, matter_id, name, object_key, content_type, checksum_sha256)"
            " VALUES (:id, :firm, :matter, :name, :key, 'application/pdf', :checksum)",
            id=identity,
            firm=self.firm,
            matter=self.id,
            name=name,
            key=f"documents/{self.firm}/{identity}/{name}",
            checksum=checksum,
        )
        self.index(identity)
        return identity

    def index(self, document: UUID) -> None:
        """Extraction, up to a new pass."""
        if self.read(document).processing_status == "pending":
            self.prepare("UPDATE documents SET processing_status = 'uploaded' WHERE id = :id", id=document)
        for status in ("stored", "extracting"):
            self.prepare("UPDATE documents SET processing_status = :to WHERE id = :id", id=document, to=status)
        self.prepare(
            "UPDATE documents SET processing_status = 'indexed', extraction_run_id = :pass WHERE id = :id",
            id=document,
            **{"pass": uuid7()},
        )

    def read(self, document: UUID) -> Document:
        """The document as it is."""
        with self.database.preparer.connect() as connection:
            found = read_document(connection, document)
        assert found is not None
        return found

    def dispatch(self, document: UUID, *, explicit: bool = False) -> UUID:
        """Ask for registration and mint its run, as dispatch does."""
        run = uuid7()
        with self.registrar() as connection:
            found = lock_document(connection, document)
            assert found is not None
            assert service.request(connection, found, explicit=explicit) is not None
            found = lock_document(connection, document)
            assert found is not None
            _mint(connection, found, run, Purpose.CLASSIFY)
            service.begin(connection, found, run_id=run)
        return run

    def take_over(self, document: UUID) -> UUID:
        """Mint a newer run while the document still waits for its settled one's apply."""
        run = uuid7()
        with self.registrar() as connection:
            found = lock_document(connection, document)
            assert found is not None
            _mint(connection, found, run, Purpose.CLASSIFY)
            service.renew(connection, found, run_id=run)
        return run

    def dispatch_part(self, document: UUID, part: Part) -> UUID:
        """Mint the run of a part that was asked for."""
        run = uuid7()
        with self.registrar() as connection:
            found = lock_document(connection, document)
            assert found is not None
            row = parts.lock_part(connection, found, part)
            assert row is not None
            _mint(connection, found, run, Purpose(part.value))
            parts.begin(connection, row, run_id=run)
        return run

    def deliver(self, run: UUID, *effects: Effect | dict[str, Any], schema: str | None = None) -> Ticket:
        """Settle a run as delivered, as its settler does; returns the artifact's ticket."""
        return self._settle(run, "delivered", effects=effects, schema=schema)

    def settle(self, run: UUID, state: str, *, message: str | None = None) -> Ticket:
        """Settle a run that brought nothing."""
        return self._settle(run, state, message=message)

    def _settle(
        self,
        run: UUID,
        state: str,
        *,
        message: str | None = None,
        effects: Sequence[Effect | dict[str, Any]] = (),
        schema: str | None = None,
    ) -> Ticket:
        plain = [each if isinstance(each, dict) else dump_effects([each])[0] for each in effects]
        with self.database.engine(Role.SETTLER).begin() as connection:
            row = connection.execute(
                text(
                    "UPDATE agents.agent_run SET state = :state, settled_at = app.clock(), message = :message"
                    " WHERE run_id = :run AND state = 'pending'"
                    " RETURNING document_id, extraction_run_id, result_schema"
                ),
                {"run": run, "state": state, "message": message},
            ).one()
            for ordinal, data in enumerate(plain):
                connection.execute(
                    text(
                        "INSERT INTO agents.agent_effect (firm_id, document_id, run_id, ordinal, schema_name, data)"
                        " VALUES (:firm, :document, :run, :ordinal, :schema, CAST(:data AS jsonb))"
                    ),
                    {
                        "firm": self.firm,
                        "document": row.document_id,
                        "run": run,
                        "ordinal": ordinal,
                        "schema": schema or row.result_schema,
                        "data": json.dumps(data),
                    },
                )
            ticket = write_first(
                connection,
                Subject(
                    firm_id=self.firm,
                    document_id=row.document_id,
                    event_type=EventType.ARTIFACT_DELIVERED,
                    extraction_epoch=1,
                    extraction_run_id=row.extraction_run_id,
                    run_id=run,
                ),
                pointer=Pointer(matter_id=self.id, object_key="k", content_type="application/pdf"),
            )
            connection.execute(
                text("UPDATE agents.agent_run SET artifact_ticket_id = :ticket WHERE run_id = :run"),
                {"ticket": ticket.id, "run": run},
            )
        return ticket

    def apply(self, ticket: Ticket, *, limits: Runs = LIMITS) -> Closed:
        """Apply a ticket in a transaction of the registrar's."""
        with self.registrar() as connection:
            return apply(connection, ticket, limits=limits)

    def reload(self, ticket: Ticket) -> Ticket:
        """The ticket as it is."""
        with self.database.preparer.connect() as connection:
            found = load(connection, ticket_id=ticket.id, key=ticket.idempotency_key)
        assert found is not None
        return found

    def registered(self, *intents: Intent, name: str = "letter.pdf", checksum: str | None = None) -> UUID:
        """A document that went all the way to registered."""
        document = self.document(name, checksum=checksum)
        assert self.apply(self.deliver(self.dispatch(document), turn(*intents))) is Closed.DONE
        return document

    def assertions(self, document: UUID) -> list[tuple[str, str, str]]:
        """Kind, value and state of each assertion, in order of writing."""
        found = self.rows(
            "SELECT kind, value, state FROM record.assertion WHERE document_id = :id ORDER BY id", id=document
        )
        return [(row[0], row[1], row[2]) for row in found]

    def part(self, document: UUID, part: Part) -> Any:
        """The part's row of the present pass, or None."""
        found = self.rows(
            "SELECT p.* FROM record.understanding_part p JOIN documents d ON d.id = p.document_id"
            " AND d.extraction_run_id = p.extraction_run_id WHERE d.id = :id AND p.part = :part",
            id=document,
            part=part.value,
        )
        return found[0] if found else None


def turn(*intents: Intent, verdict: Verdict | None = None, concerns: Sequence[Concern] = ()) -> Turn:
    """A turn; its verdict is registered unless one is given."""
    return Turn(
        intents=tuple(intents), verdict=verdict or Verdict(outcome=Outcome.REGISTERED), concerns=tuple(concerns)
    )


def review(note: str = "Two readings are possible.") -> Verdict:
    """The verdict that a person must look."""
    return Verdict(outcome=Outcome.NEEDS_REVIEW, note=note)


def _mint(connection: Connection, document: Document, run: UUID, purpose: Purpose) -> None:
    connection.execute(
        text(
            "INSERT INTO agents.agent_run (run_id, firm_id, document_id, extraction_run_id, attempt, purpose,"
            " result_schema, deadline_at, result_key)"
            " VALUES (:run, :firm, :document, :pass, 1, :purpose, :schema, app.clock() + interval '15 minutes', :key)"
        ),
        {
            "run": run,
            "firm": document.firm_id,
            "document": document.id,
            "pass": document.extraction_run_id,
            "purpose": purpose.value,
            "schema": SCHEMA_OF[purpose].value,
            "key": f"agent-runs/{run}/artifact.json",
        },
    )
