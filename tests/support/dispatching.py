"""Dispatch and settlement over a real database, a real object store and an agent on a real socket."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from sqlalchemy import select, text

from baton.aws.clients import Clients
from baton.aws.objects import Store
from baton.contract.artifacts import Effect, build_artifact
from baton.db.access import Role
from baton.db.rows import lock_document
from baton.db.states import Part
from baton.outbox.tickets import TICKET_COLUMNS, Ticket, as_ticket
from baton.registration import parts, service
from baton.runs.calling import Dispatched
from baton.runs.dispatch import Dispatcher
from baton.runs.inputs import Inputs
from baton.runs.invocation import AgentClient
from baton.runs.results import Results
from baton.runs.rows import Run, read_run
from baton.runs.sweeper import Sweeper
from baton.settings.agents import Agent, Runs
from baton.settings.agents import Sweeper as SweeperSettings
from baton.settings.loading import load
from baton.settings.secret import Secret
from baton.settings.stores import Bucket
from support.aws_accounts import AwsAccount
from support.databases import Database
from support.matters import Matter
from support.scripted_agent import TOKEN

#: Nobody waits long in a test; the deadline is an hour, so that only a moved clock passes it.
LIMITS = Runs(deadline=900.0, upload_slack=60.0, max_attempts=3, retry_initial=10.0, retry_max=80.0)


@dataclass
class Desk:
    """A matter whose registrations are dispatched and settled."""

    matter: Matter
    account: AwsAccount
    limits: Runs = LIMITS
    clients: Clients = field(init=False)
    store: Store = field(init=False)

    def __post_init__(self) -> None:
        self.clients = Clients(load(self.account.environ).aws)
        self.store = Store(self.clients, Bucket(name=f"baton-{self.account.account}"))
        self.store.ensure()

    @property
    def database(self) -> Database:
        """The test's database."""
        return self.matter.database

    def limited(self, **changes: Any) -> "Desk":
        """The same desk under other limits."""
        other = replace(self, limits=replace(self.limits, **changes))
        other.clients, other.store = self.clients, self.store
        return other

    # preparing

    def queued(self, *, pages: tuple[str, ...] = ("First page.", "Second page."), name: str = "letter.pdf") -> Ticket:
        """A document with text that waits for dispatch; its ticket has been sent."""
        document = self.matter.document(name)
        self.write_pages(document, pages)
        with self.database.engine(Role.REGISTRAR).begin() as connection:
            found = lock_document(connection, document)
            assert found is not None
            ticket = service.request(connection, found)
        assert ticket is not None
        return self.sent(ticket)

    def write_pages(self, document: UUID, pages: tuple[str, ...]) -> None:
        """The text of the present pass."""
        for number, page in enumerate(pages, 1):
            self.matter.prepare(
                "INSERT INTO document_page (firm_id, document_id, extraction_run_id, page_number, text, source)"
                " SELECT firm_id, id, extraction_run_id, :number, :text, 'native' FROM documents WHERE id = :id",
                number=number,
                text=page,
                id=document,
            )

    def part_asked(self, part: Part = Part.CARD) -> Ticket:
        """A registered document whose part waits for dispatch."""
        document = self.matter.document()
        self.write_pages(document, ("Only page.",))
        with self.database.engine(Role.REGISTRAR).begin() as connection:
            found = lock_document(connection, document)
            assert found is not None
            ticket = parts.request(connection, found, part)
        assert ticket is not None
        return self.sent(ticket)

    def sent(self, ticket: Ticket) -> Ticket:
        """The ticket as it is once its relay has sent it."""
        self.matter.prepare(
            "UPDATE ops.document_ingest_outbox SET claimed_at = app.clock(), dispatched_at = app.clock(),"
            " message_id = 'm' WHERE id = :id AND dispatched_at IS NULL",
            id=ticket.id,
        )
        return self.matter.reload(ticket)

    def newest_ticket(self, document: UUID, event_type: str = "document.registration.requested") -> Ticket:
        """The newest ticket of a kind."""
        with self.database.preparer.connect() as connection:
            row = connection.execute(
                select(*TICKET_COLUMNS)
                .where(text("document_id = :document AND event_type = :event"))
                .order_by(text("id DESC"))
                .limit(1),
                {"document": document, "event": event_type},
            ).one()
        return as_ticket(row)

    # working

    @contextmanager
    def dispatcher(self, url: str, *, token: str = TOKEN, patience: float = 2.0) -> Iterator[Dispatcher]:
        """Dispatch to an agent at `url`, as the registrar's role."""
        settings = Agent(url=url, token=Secret(token), connect_timeout=min(patience, 1.0), read_timeout=patience)
        engine = self.database.engine(Role.REGISTRAR)
        with AgentClient(settings) as agent:
            yield Dispatcher(
                engine, agent=agent, inputs=Inputs(engine, self.store, limits=self.limits), limits=self.limits
            )

    def dispatch(self, ticket: Ticket, url: str, **options: Any) -> Dispatched:
        """Dispatch once."""
        with self.dispatcher(url, **options) as dispatcher:
            return dispatcher.dispatch(self.matter.reload(ticket))

    def results(self) -> Results:
        """The results queue's handler, as the settler's role."""
        return Results(self.database.engine(Role.SETTLER), self.store, limits=self.limits)

    def sweeper(self, *, unannounced: bool = False, **config: Any) -> Sweeper:
        """A sweeper, as the settler's role."""
        return Sweeper(
            self.database.engine(Role.SETTLER),
            self.store,
            config=SweeperSettings(**config),
            limits=self.limits,
            unannounced=unannounced,
        )

    def put_artifact(self, run: Run, *effects: Effect) -> None:
        """What the agent leaves behind."""
        data = build_artifact(effects, schema=run.result_schema, run_id=run.run_id)
        self.store.put(run.result_key, data, content_type="application/json", only_new=True)

    # looking

    def run(self, run_id: UUID | None) -> Run:
        """The run as it is."""
        assert run_id is not None
        with self.database.preparer.connect() as connection:
            found = read_run(connection, run_id)
        assert found is not None
        return found

    def runs(self, document: UUID) -> list[Any]:
        """Every run of a document, the oldest first."""
        return self.matter.rows(
            "SELECT run_id, state, attempt, invoke_count, accepted_at, message, purpose, artifact_ticket_id"
            " FROM agents.agent_run WHERE document_id = :id ORDER BY seq",
            id=document,
        )

    def tickets(self, document: UUID, event_type: str) -> int:
        """How many tickets of a kind there are."""
        return self.matter.count(
            "ops.document_ingest_outbox", "document_id = :id AND event_type = :event", id=document, event=event_type
        )

    def spent(self) -> int:
        """Runs paid for."""
        return int(self.matter.rows("SELECT coalesce(sum(runs), 0) FROM ops.agent_spend")[0][0])
