"""One run: every worker driven step by step in one thread, by its own code and role, until nobody has anything to do."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

from sqlalchemy import Connection
from uuid_utils.compat import uuid7

from baton.aws.errors import AwsError
from baton.aws.sending import Entry, Sent
from baton.consumers.messages import QueueConsumer
from baton.consumers.presence import QueueName
from baton.consumers.tickets import TicketConsumer
from baton.db.access import Role
from baton.db.connect import firm_transaction
from baton.db.states import Lane
from baton.documents import doors, upload
from baton.extraction.limits import Limits
from baton.extraction.outcomes import Kind as FileKind
from baton.extraction.outcomes import Page, Reading, ReasonCode, Source, Verdict, verdict_of
from baton.extraction.scanner import NoScanner
from baton.extraction.worker import ExtractionWorker
from baton.outbox.batches import Batches
from baton.outbox.senders import QueueSender, Sender
from baton.record.apply import apply, give_up
from baton.registrar.routing import Routing
from baton.runs.dispatch import Dispatcher
from baton.runs.inputs import Inputs
from baton.runs.results import Results
from baton.runs.sweeper import Sweeper
from baton.settings.agents import Breaker, Runs
from baton.settings.agents import Sweeper as SweeperSettings
from baton.settings.work import Consumer
from baton.settings.work import Relay as RelaySettings
from support.crashing.bench import Bench
from support.crashing.points import Crash, Incarnation, Tracer

LIMITS = Runs(deadline=900.0, upload_slack=60.0, max_attempts=5)
_CONSUMER = Consumer(workers=2)
_ROUNDS = 400


class FileReader:
    """Reads a text file by itself; one that begins with ``broken`` is found corrupt."""

    def read(self, path: Path | str, *, content_type: str, name: str, limits: Limits | None = None) -> Reading:
        """The text as one page."""
        text = Path(path).read_text()
        reason = ReasonCode.CORRUPT if text.startswith("broken") else None
        verdict = verdict_of(reason)
        pages = () if verdict is Verdict.FAILED else (Page(1, text, Source.NATIVE, None),)
        return Reading(verdict=verdict, kind=FileKind.TEXT, reason_code=reason, pages=pages)


@dataclass(frozen=True, slots=True)
class Doubling:
    """Sends everything twice, first in the wrong order."""

    sender: Sender

    def send(self, entries: Sequence[Entry], *, bound: float) -> Sent:
        """The second sending's results."""
        self.sender.send([*reversed(entries)], bound=bound)
        return self.sender.send(entries, bound=bound)

    def mend(self, failure: AwsError) -> None:
        """As the other."""
        self.sender.mend(failure)


@dataclass
class Worker:
    """One life of a worker: what it does in a step, true where it found something to do."""

    life: Incarnation
    step: Callable[[], Any]


class Play:
    """The workers on a bench, one after the other. What dies is born again with nothing of its former life."""

    def __init__(self, bench: Bench, tracer: Tracer, *, doubling: bool = False) -> None:
        """:param doubling: every message of a relay comes twice, once out of order."""
        self._doubling = doubling
        self.bench = bench
        self.tracer = tracer
        self.moved = 0.0
        self.firm, self.matter = uuid7(), uuid7()
        bench.hooks.tracer = tracer
        self._makers: dict[str, Callable[[], Callable[[], Any]]] = {
            "relay-ingest": partial(self._relay, Lane.INGEST),
            "extractor": self._extractor,
            "relay-registrar": partial(self._relay, Lane.REGISTRAR),
            "registrar": self._registrar,
            "settler": self._settler,
            "sweeper": self._sweeper,
        }
        self._relays: dict[str, Batches] = {}
        self._workers = {stage: self._born(stage) for stage in self._makers}

    # what a person does, over and over until it is done

    def upload(self, name: str, body: str) -> UUID:
        """A document comes in."""
        identity = uuid7()

        def create(connection: Connection) -> str:
            return upload.create_document(
                connection,
                firm_id=self.firm,
                matter_id=self.matter,
                name=name,
                content_type="text/plain",
                document_id=identity,
            ).object_key

        key = self._person(create)
        self.bench.store.put(key, body.encode(), content_type="text/plain")
        self._person(
            lambda connection: upload.finalize_upload(
                connection, document_id=identity, store=self.bench.store, actor="counsel"
            )
        )
        return identity

    def re_extract(self, document: UUID) -> None:
        """It is to be read again; a person who saw nothing of it looks before asking twice."""
        epoch = self.column(document, "extraction_epoch")
        self._person(
            lambda connection: doors.re_extract(connection, document_id=document, actor="counsel"),
            unless=lambda: self.column(document, "extraction_epoch") > epoch,
        )

    def retry(self, document: UUID) -> None:
        """Register again."""
        self._person(
            lambda connection: doors.retry_registration(connection, document_id=document, actor="counsel"),
            unless=lambda: self.column(document, "registration_status") == "queued",
        )

    def delete(self, document: UUID) -> None:
        """It is deleted."""
        self._person(lambda connection: doors.delete(connection, document_id=document, actor="counsel"))

    def restore(self, document: UUID) -> None:
        """It is brought back."""
        self._person(lambda connection: doors.restore(connection, document_id=document, actor="counsel"))

    # the workers

    def until(self, document: UUID, column: str, value: str) -> None:
        """Everybody works until a document has come so far."""
        for _ in range(_ROUNDS):
            if self.column(document, column) == value:
                return
            for stage in self._makers:
                self._step(stage)
                if self.column(document, column) == value:
                    return
            self.bench.release()
        raise AssertionError(f"{column} never became {value}")

    def quiet(self) -> None:
        """Everybody works until there is nothing to do: queues show what they hide, and time moves to what is due."""
        for _ in range(_ROUNDS):
            busy = [self._step(stage) for stage in self._makers]
            if any(busy) or self.bench.release():
                continue
            wait = self._next_due()
            if wait is None:
                return
            self.moved += wait + 1.0
            self.bench.database.move_clock(self.moved)
        raise AssertionError("the pipeline never came to rest")

    def column(self, document: UUID, name: str) -> Any:
        """One column of a document as it is."""
        return self.bench.rows(f"SELECT {name} FROM documents WHERE id = :id", id=document)[0][0]

    def close(self) -> None:
        """Let go of what workers keep from step to step."""
        for stage in self._relays:
            self._let_go(stage)

    # within

    def _let_go(self, stage: str) -> None:
        # a relay keeps its connection; left to itself it would be given back long after it was closed
        if stage in self._relays:
            self._relays[stage].drop()

    def _person(self, work: Callable[[Connection], Any], *, unless: Callable[[], bool] = lambda: False) -> Any:
        while True:
            life = Incarnation("platform")
            try:
                with (
                    self.tracer.step(life),
                    firm_transaction(self.bench.engine("platform", Role.MEMBER_APP), self.firm) as connection,
                ):
                    found = work(connection)
            except Crash:
                self.bench.bury("platform", life.sessions)
                if unless():
                    return None
            else:
                return found

    def _step(self, stage: str) -> bool:
        worker = self._workers[stage]
        try:
            with self.tracer.step(worker.life):
                found = bool(worker.step())
        except Crash:
            found = True
        if worker.life.dead:
            self._let_go(stage)
            self.bench.bury(stage, worker.life.sessions)
            self._workers[stage] = self._born(stage)
            found = True
        if stage == "registrar":
            self.bench.await_agent()
        return found

    def _born(self, stage: str) -> Worker:
        return Worker(Incarnation(stage), self._makers[stage]())

    def _next_due(self) -> float | None:
        (row,) = self.bench.rows(
            "SELECT extract(epoch FROM min(due) - app.clock()) FROM ("
            "SELECT not_before AS due FROM ops.document_ingest_outbox"
            " WHERE dispatched_at IS NULL AND parked_at IS NULL AND handled_at IS NULL"
            " UNION ALL SELECT deadline_at + interval '60 s' FROM agents.agent_run WHERE state = 'pending') AS dues"
        )
        return None if row[0] is None else max(float(row[0]), 0.0)

    def _relay(self, lane: Lane) -> Callable[[], Any]:
        queue = self.bench.ingest if lane is Lane.INGEST else self.bench.registrar
        sender = QueueSender(queue, parallel=1)
        relay = Batches(
            self.bench.engine(f"relay-{lane}", Role.RELAY),
            lane=lane,
            sender=Doubling(sender) if self._doubling else sender,
            config=RelaySettings(),
        )
        self._relays[f"relay-{lane}"] = relay
        return lambda: relay.run_once().claimed

    def _extractor(self) -> Callable[[], Any]:
        engine = self.bench.engine("extractor", Role.EXTRACTOR)
        consumer = TicketConsumer(
            queue=self.bench.ingest,
            lane=Lane.INGEST,
            handler=ExtractionWorker(
                engine=engine,
                store=self.bench.store,
                reader=FileReader(),
                scanner=NoScanner(),
                scratch=self.bench.scratch,
                limits=Limits(),
                max_bytes=1 << 20,
            ),
            engine=engine,
            config=_CONSUMER,
            stop=threading.Event(),
            prefetch=False,
        )
        return lambda: consumer.run_once().received

    def _registrar(self) -> Callable[[], Any]:
        engine = self.bench.engine("registrar", Role.REGISTRAR)
        requests = Dispatcher(
            engine,
            agent=self.bench.caller,
            inputs=Inputs(engine, self.bench.store, limits=LIMITS),
            limits=LIMITS,
            breaker_config=Breaker(),
        )
        consumer = TicketConsumer(
            queue=self.bench.registrar,
            lane=Lane.REGISTRAR,
            handler=Routing(
                engine,
                requests=requests,
                apply=partial(apply, limits=LIMITS),
                abandon=partial(give_up, limits=LIMITS),
            ),
            engine=engine,
            config=_CONSUMER,
            stop=threading.Event(),
        )
        return lambda: consumer.run_once().received

    def _settler(self) -> Callable[[], Any]:
        engine = self.bench.engine("settler", Role.SETTLER)
        consumer = QueueConsumer(
            queue=self.bench.results,
            name=QueueName.RESULTS,
            handler=Results(engine, self.bench.store, limits=LIMITS),
            engine=engine,
            config=_CONSUMER,
            stop=threading.Event(),
        )
        return lambda: consumer.run_once(wait=self._announced()).received

    def _announced(self) -> int:
        """Seconds to wait for what the store has to say: some while there is an artifact that nobody has settled."""
        with self.tracer.paused():
            pending = self.bench.rows(
                "SELECT result_key FROM agents.agent_run WHERE state = 'pending' AND accepted_at IS NOT NULL"
            )
            return 2 if any(self.bench.store.exists(row[0]) for row in pending) else 0

    def _sweeper(self) -> Callable[[], Any]:
        sweeper = Sweeper(
            self.bench.engine("sweeper", Role.SETTLER), self.bench.store, config=SweeperSettings(), limits=LIMITS
        )

        def sweep() -> int:
            swept = sweeper.run_once()
            return swept.delivered + swept.rejected + swept.expired

        return sweep
