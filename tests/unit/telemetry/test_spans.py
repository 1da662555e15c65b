"""Spans carry a trace from finalize to registered, and nothing that is not listed."""

import threading
import uuid
from collections.abc import Iterator

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from baton.settings.watching import Telemetry
from baton.telemetry import spans, traceparents, tracing
from baton.telemetry.names import KINDS, Attribute, SpanKind, SpanName
from support.collector import Collector, attribute, collecting

REMOTE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def collector() -> Iterator[Collector]:
    """A collector that this process exports to."""
    with collecting() as found:
        tracing.start(Telemetry(otlp_endpoint=found.endpoint), component="tests", version="1")
        yield found
        tracing.stop()


def received(collector: Collector, count: int) -> dict[str, Span]:
    """The spans by name, after everything was sent."""
    assert tracing.stop(within=5)
    return {span.name: span for span in collector.wait_for(count)}


def test_every_name_has_a_kind() -> None:
    """The registry of kinds is as closed as that of names."""
    assert set(KINDS) == set(SpanName)
    assert SpanName.OUTBOX_ENQUEUE.value == "functions.document_ingest_outbox.enqueue"
    assert KINDS[SpanName.OUTBOX_ENQUEUE] is SpanKind.PRODUCER
    assert SpanName.RELAY_BATCH.value == "functions.document_ingest_relay.batch"
    assert KINDS[SpanName.RELAY_BATCH] is SpanKind.CONSUMER


def test_one_trace_leads_from_finalize_to_the_consumer(collector: Collector) -> None:
    """A consumer that is given a ticket's traceparent continues its trace as a child."""
    with spans.span(SpanName.UPLOAD_FINALIZE), spans.span(SpanName.OUTBOX_ENQUEUE) as ticket:
        stored = spans.current_traceparent()
        assert stored == ticket.traceparent
    assert spans.current_traceparent() is None
    with spans.span(SpanName.EXTRACT, parent_traceparent=stored):
        pass
    found = received(collector, 3)
    enqueue, extract = found[SpanName.OUTBOX_ENQUEUE], found[SpanName.EXTRACT]
    assert extract.trace_id == enqueue.trace_id == found[SpanName.UPLOAD_FINALIZE].trace_id
    assert extract.parent_span_id == enqueue.span_id
    assert enqueue.parent_span_id == found[SpanName.UPLOAD_FINALIZE].span_id
    assert extract.kind == extract.SPAN_KIND_CONSUMER
    assert enqueue.kind == enqueue.SPAN_KIND_PRODUCER


def test_a_batch_links_to_at_most_a_hundred_different_traces(collector: Collector) -> None:
    """Links are kept once each, the first hundred of them, and the others are counted."""
    many = [f"00-{n:032x}-{n:016x}-01" for n in range(1, 131)]
    with spans.span(SpanName.RELAY_BATCH, links=[None, "nonsense", many[0], *many]):
        pass
    batch = received(collector, 1)[SpanName.RELAY_BATCH]
    assert len(batch.links) == 100
    assert batch.links[0].trace_id == (1).to_bytes(16, "big")
    assert attribute(batch, "links_dropped") == 30


def test_only_listed_attributes_and_closed_values_leave(collector: Collector) -> None:
    """Ids, words and counts go out; free text, other names and other types are dropped."""
    firm = uuid.uuid4()
    offered = {
        Attribute.FIRM: firm,
        Attribute.BATCH_COUNT: 3,
        Attribute.OUTCOME: SpanKind.CLIENT,
        Attribute.REASON: "The parties agree as follows",
        Attribute.MATTER: ["a"],
        "title": "contract",
    }
    with spans.span(SpanName.EXTRACT, attributes=offered) as opened:  # type: ignore[arg-type]
        opened.set(Attribute.STATE, "line\nbreak")
        opened.set(Attribute.PAGE_COUNT, 7)
    extract = received(collector, 1)[SpanName.EXTRACT]
    assert {each.key for each in extract.attributes} == {"firm_id", "batch_count", "outcome", "page_count"}
    assert attribute(extract, "firm_id") == str(firm)


def test_an_exception_passes_through_and_leaves_its_type_only(collector: Collector) -> None:
    """The caller's exception is the caller's; of its text nothing is exported."""
    with pytest.raises(ValueError, match="privileged"), spans.span(SpanName.ARTIFACT_APPLY):
        raise ValueError("privileged content")
    apply = received(collector, 1)[SpanName.ARTIFACT_APPLY]
    assert attribute(apply, "error_type") == "ValueError"
    assert apply.status.code == apply.status.STATUS_CODE_ERROR
    assert not apply.events
    assert b"privileged" not in apply.SerializeToString()


def test_the_resource_names_the_component(collector: Collector) -> None:
    """Service, version and component stand in the resource."""
    with spans.span(SpanName.EXTRACT):
        pass
    received(collector, 1)
    assert collector.resources[0]["baton.component"] == "tests"
    assert collector.resources[0]["service.name"] == "baton"


@pytest.mark.parametrize("parent", ["", "nonsense", "00-" + "0" * 32 + "-b7ad6b7169203331-01", None, 7])
def test_a_parent_that_is_none_starts_a_trace(parent: object) -> None:
    """A traceparent that came back damaged does not keep a span from opening."""
    with spans.span(SpanName.EXTRACT, parent_traceparent=parent) as opened:  # type: ignore[arg-type]
        assert traceparents.read(opened.traceparent) is not None


def test_a_trace_continues_where_nothing_is_exported() -> None:
    """Without a collector, traceparents are still made and passed on."""
    tracing.stop()
    with spans.span(SpanName.EXTRACT, parent_traceparent=REMOTE) as opened:
        assert opened.traceparent is not None
        assert opened.traceparent.split("-")[1] == REMOTE.split("-")[1]
        assert opened.traceparent.split("-")[2] != REMOTE.split("-")[2]


def test_a_given_parent_wins_over_the_open_span() -> None:
    """Each message of a batch continues its own ticket's trace, not the batch's."""
    with spans.span(SpanName.RELAY_BATCH), spans.span(SpanName.EXTRACT, parent_traceparent=REMOTE):
        current = spans.current_traceparent()
    assert current is not None
    assert current.split("-")[1] == REMOTE.split("-")[1]


def test_threads_do_not_share_their_open_span() -> None:
    """A span opened in one thread is not the parent of another thread's."""
    seen: list[str | None] = []
    with spans.span(SpanName.RELAY_BATCH):
        thread = threading.Thread(target=lambda: seen.append(spans.current_traceparent()))
        thread.start()
        thread.join()
    assert seen == [None]


class Broken:
    """A tracer whose every method fails."""

    def __getattr__(self, name: str) -> object:
        raise RuntimeError(name)


def test_a_broken_tracer_never_reaches_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """When the SDK raises at every turn, the block runs, and every method of the span is quiet."""
    monkeypatch.setattr(tracing, "tracer", Broken)
    ran = False
    with spans.span(SpanName.EXTRACT, attributes={Attribute.FIRM: "f"}, links=[REMOTE]) as opened:
        opened.set(Attribute.PAGE_COUNT, 1)
        opened.fail("reason")
        ran = opened.traceparent is None
    assert ran


def test_links_that_raise_never_reach_the_work() -> None:
    """An iterable of links that fails on its way loses the span, not the work."""

    def broken() -> Iterator[str]:
        yield REMOTE
        raise RuntimeError

    with spans.span(SpanName.RELAY_BATCH, links=broken()) as opened:
        assert opened.traceparent is None
