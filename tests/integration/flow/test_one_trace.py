"""One document can be followed from its upload to the Record."""

from collections.abc import Sequence

from opentelemetry.proto.trace.v1.trace_pb2 import Span

from baton.demo.arrivals import Filed
from baton.telemetry.names import SpanName
from integration.flow.conftest import Flow

STATIONS = {
    SpanName.UPLOAD_FINALIZE,
    SpanName.OUTBOX_ENQUEUE,
    SpanName.EXTRACT,
    SpanName.REGISTRATION_DISPATCH,
    SpanName.UNDERSTANDING_DISPATCH,
    SpanName.AGENT_INVOKE,
    SpanName.AGENT_SETTLE,
    SpanName.ARTIFACT_APPLY,
}


def test_every_document_is_where_it_must_be(flow: Flow) -> None:
    """What is asked below is asked of a flow that succeeded."""
    assert [each.exhibit.name for each in flow.filed if not flow.seen[each.id].as_expected(each.exhibit)] == []


def test_one_trace_leads_from_finalize_to_registered(trace: Sequence[Span]) -> None:
    """Platform, extractor, registrar and settler continue the trace that the upload began."""
    assert {each.name for each in trace} >= STATIONS


def test_no_station_hangs_in_the_air(trace: Sequence[Span]) -> None:
    """Each span's parent is a span of the same trace; only the upload has none."""
    known = {each.span_id for each in trace}
    orphans = {each.name for each in trace if each.parent_span_id not in known}
    assert orphans == {SpanName.UPLOAD_FINALIZE}


def test_relays_of_both_lanes_are_linked_to_the_trace(flow: Flow, trace: Sequence[Span]) -> None:
    """A batch belongs to no single trace: it is linked to the one of each ticket."""
    tickets = {each.span_id for each in trace if each.name == SpanName.OUTBOX_ENQUEUE}
    linked = {link.span_id for span in flow.spans if span.name == SpanName.RELAY_BATCH for link in span.links}
    assert tickets
    assert tickets <= linked


def test_another_documents_trace_is_another(flow: Flow, contract: Filed, trace: Sequence[Span]) -> None:
    """Traces of documents that were uploaded together do not run into each other."""
    about = {each.value.string_value for span in trace for each in span.attributes if each.key == "document_id"}
    assert about == {str(contract.id)}
    assert len(flow.filed) > 1
