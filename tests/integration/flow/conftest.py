"""The whole flow once, through the processes that a cluster runs, with everything about it written down."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from sqlalchemy import Engine, create_engine, exists, select
from sqlalchemy.pool import NullPool

from baton.aws.permissions import Action, Place
from baton.casefile.exhibits import make_case_file
from baton.db.tables import reconcile_state
from baton.demo.arrivals import Filed, open_firm
from baton.demo.cast import PARTS, RECONCILER, Part, running_cast
from baton.demo.sights import Sight, all_at_rest, look
from baton.demo.stage import DATABASE, open_stage
from baton.embedded.postgres import SUPERUSER, EmbeddedPostgres
from baton.settings.watching import Telemetry
from baton.telemetry import tracing
from baton.telemetry.names import SpanName
from support.aws_calls import noting, read_calls
from support.collector import attribute, collecting
from support.statements import Used, log_statements, read_log
from support.waiting import wait_until

_CHOSEN = ("Carriage Agreement", "Advice of counsel.pdf", "Letter to carrier.txt", "Blank.txt")
_PATIENCE = 100.0


@dataclass(frozen=True)
class Flow:
    """What was seen of four documents on their way."""

    filed: Sequence[Filed]
    seen: Mapping[UUID, Sight]
    spans: Sequence[Span]
    used: Used
    calls: Mapping[str, Mapping[Place, set[Action]]]
    """By process."""
    environs: Mapping[str, Mapping[str, str]]
    """What each process was really started with."""


@pytest.fixture(scope="session")
def flow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flow]:
    """The flow, played once for all tests that ask about it."""
    notes = tmp_path_factory.mktemp("calls")
    with ExitStack() as opened:
        collector = opened.enter_context(collecting())
        stage = opened.enter_context(open_stage())
        administrator = create_engine(stage.postgres.url(SUPERUSER, DATABASE), poolclass=NullPool)
        log_statements(administrator)

        def more(part: Part) -> Mapping[str, str]:
            traced = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.endpoint}
            return {**traced, **noting(notes / part.name)} if part.queues else traced

        tracing.start(Telemetry(otlp_endpoint=collector.endpoint), component="platform")
        opened.callback(tracing.stop)
        firm = opened.enter_context(open_firm(stage))
        exhibits = [each for each in make_case_file(stage.papers, ocr=False) if each.name.startswith(_CHOSEN)]
        with running_cast(stage, more=more) as cast:
            filed = firm.upload(exhibits, batch=1)
            wait_until(
                lambda: all_at_rest(filed, look(firm)), timeout=_PATIENCE, interval=0.2, what="every document's rest"
            )
            cast.begin(RECONCILER)
            wait_until(lambda: _has_passed(administrator), timeout=_PATIENCE, what="a pass of the reconciler")
            environs = {name: _environ(pid) for name, pid in cast.pids().items()}
            seen = look(firm)
            wait_until(
                lambda: len([each for each in collector.spans if each.name == SpanName.ARTIFACT_APPLY]) >= 9,
                what="the spans of the last apply",
            )
        assert isinstance(stage.postgres, EmbeddedPostgres)
        with stage.postgres.log.open(errors="replace") as log:
            used = read_log(log)
        yield Flow(
            filed=filed,
            seen=seen,
            spans=[*collector.spans],
            used=used,
            calls={part.name: read_calls(notes / part.name) for part in PARTS},
            environs=environs,
        )


def _has_passed(administrator: Engine) -> bool:
    with administrator.connect() as connection:
        return bool(connection.execute(select(exists(select(reconcile_state.c.name)))).scalar_one())


def _environ(pid: int) -> Mapping[str, str]:
    entries = Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
    return dict(entry.split("=", 1) for entry in entries if "=" in entry)


@pytest.fixture(scope="session")
def contract(flow: Flow) -> Filed:
    """The document that went all the way."""
    return next(each for each in flow.filed if each.exhibit.name.startswith("Carriage Agreement"))


@pytest.fixture(scope="session")
def trace(flow: Flow, contract: Filed) -> Sequence[Span]:
    """Every span of that document's trace."""
    root = next(
        span
        for span in flow.spans
        if span.name == SpanName.UPLOAD_FINALIZE and attribute(span, "document_id") == str(contract.id)
    )
    return [span for span in flow.spans if span.trace_id == root.trace_id]
