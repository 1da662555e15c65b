"""An invocation is refused for a reason, an answer is taken only when it is exactly an acceptance."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baton.contract import errors, limits
from baton.contract.invocations import (
    Accepted,
    Candidate,
    InputKind,
    InputPointer,
    Invocation,
    InvocationContext,
    ResultDelivery,
    parse_accepted,
    parse_invocation,
)
from baton.contract.pages import PAGES_CONTENT_TYPE, PageText, encode_pages, parse_pages
from baton.contract.purposes import Purpose, SchemaName

RUN = UUID("01890a5d-ac96-774b-bcce-b302099a8057")
SECRET = "X-Amz-Signature=abcdef"


def _invocation(**context: Any) -> Invocation:
    return Invocation(
        run_id=RUN,
        purpose=Purpose.CLASSIFY,
        inputs=(InputPointer(kind=InputKind.TEXT, url=f"http://store/text?{SECRET}", content_type=PAGES_CONTENT_TYPE),),
        context=InvocationContext(**context),
        result_delivery=ResultDelivery(
            url=f"https://store/agent-runs/x?{SECRET}",
            headers={"If-None-Match": "*", "Content-Type": "application/json"},
            schema=SchemaName.CLASSIFICATION_V1,
            deadline=datetime(2030, 1, 1, tzinfo=UTC),
        ),
    )


def test_what_is_sent_is_what_is_read() -> None:
    """An invocation survives its way, with its wire names."""
    invocation = _invocation(file_name="a.pdf", our_side=("ACME",), candidates=(Candidate(name="b.pdf"),), page_count=3)
    assert parse_invocation(invocation.body()) == invocation
    value = json.loads(invocation.body())
    assert set(value) == {"run_id", "purpose", "inputs", "context", "result_delivery"}
    assert value["result_delivery"]["schema"] == "registrar.classification.v1"
    assert value["result_delivery"]["deadline"] == "2030-01-01T00:00:00Z"


@pytest.mark.parametrize("hostile", ["a\nb\x00c", "\ud800x", "x" * 5000, "", "exe\u202efdp.pdf", str(RUN), "   "])
def test_no_name_that_somebody_gave_a_file_stops_an_invocation(hostile: str) -> None:
    """Names are cleaned on the way in, ids are not passed on as references."""
    invocation = _invocation(
        file_name=hostile,
        content_type=hostile,
        our_side=(hostile,),
        candidates=(Candidate(name=hostile, document_ref=hostile),),
    )
    assert parse_invocation(invocation.body()) == invocation
    assert len(invocation.context.file_name or "") <= limits.MAX_NAME
    assert invocation.context.candidates[0].document_ref != str(RUN)


def test_signed_urls_are_not_shown() -> None:
    """Neither repr nor str of an invocation can leak a signature into a log."""
    assert SECRET not in repr(_invocation()) + str(_invocation())


def _put(path: str, new: Any) -> Callable[[dict[str, Any]], None]:
    def change(value: Any) -> None:
        *above, last = path.split(".")
        for name in above:
            value = value[int(name) if name.isdigit() else name]
        value[last] = new

    return change


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda value: value.pop("result_delivery"), errors.DeliveryMissing),
        (_put("result_delivery", None), errors.DeliveryMissing),
        (_put("result_delivery", {}), errors.InvocationInvalid),
        (_put("extra", 1), errors.InvocationInvalid),
        (_put("document_id", str(RUN)), errors.InvocationInvalid),
        (_put("run_id", "run-1"), errors.InvocationInvalid),
        (_put("purpose", "gossip"), errors.InvocationInvalid),
        (_put("purpose", "card"), errors.InvocationInvalid),
        (_put("inputs", []), errors.InvocationInvalid),
        (_put("inputs.0.url", "file:///etc/passwd"), errors.InvocationInvalid),
        (_put("inputs.0.url", "http://store/a b"), errors.InvocationInvalid),
        (_put("result_delivery.method", "POST"), errors.InvocationInvalid),
        (_put("result_delivery.headers", {}), errors.InvocationInvalid),
        (_put("result_delivery.headers", {"If-None-Match": "*", "if-none-match": "*"}), errors.InvocationInvalid),
        (_put("result_delivery.headers", {"If-None-Match": "*", "X": "a\r\nHost: evil"}), errors.InvocationInvalid),
        (_put("result_delivery.deadline", "2030-01-01T00:00:00"), errors.InvocationInvalid),
        (_put("result_delivery.deadline", 1893456000), errors.InvocationInvalid),
        (_put("result_delivery.schema", "registrar.classification.v2"), errors.InvocationInvalid),
        (_put("result_delivery.schema_name", "registrar.classification.v1"), errors.InvocationInvalid),
    ],
)
def test_each_fault_is_refused(change: Callable[[dict[str, Any]], None], error: type[errors.InvocationError]) -> None:
    """One thing wrong is refused by the error made for it, which is no server error."""
    value = json.loads(_invocation().body())
    change(value)
    with pytest.raises(error) as caught:
        parse_invocation(json.dumps(value).encode())
    assert caught.value.status in {400, 422}


@given(st.binary(max_size=200))
def test_garbage_raises_nothing_but_invocation_errors(data: bytes) -> None:
    """No body can make an agent fail in a way it does not expect."""
    with pytest.raises(errors.InvocationError):
        parse_invocation(data)


def test_an_acceptance_is_two_members_and_nothing_else() -> None:
    """The answer names the run and says accepted."""
    body = Accepted(run_id=RUN, status="accepted").body()
    assert json.loads(body) == {"run_id": str(RUN), "status": "accepted"}
    assert parse_accepted(body, run_id=RUN).run_id == RUN


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ({"run_id": str(RUN)}, errors.AnswerMalformed),
        ({"run_id": str(RUN), "status": "done"}, errors.AnswerMalformed),
        ({"run_id": str(RUN), "status": "accepted", "effects": []}, errors.AnswerMalformed),
        ({"status": "accepted"}, errors.AnswerMalformed),
        ([], errors.AnswerMalformed),
        ({"run_id": str(UUID(int=7)), "status": "accepted"}, errors.AnswerForAnotherRun),
    ],
)
def test_any_other_answer_is_no_acceptance(value: Any, error: type[errors.AnswerError]) -> None:
    """What is not exactly the acceptance of this run is refused."""
    with pytest.raises(error):
        parse_accepted(json.dumps(value).encode(), run_id=RUN)


@given(st.binary(max_size=100))
def test_a_garbled_answer_raises_nothing_but_answer_errors(data: bytes) -> None:
    """No answer can make a dispatcher fail in a way it does not expect."""
    with pytest.raises(errors.AnswerError):
        parse_accepted(data, run_id=RUN)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=5))
def test_pages_survive_their_way(texts: list[str]) -> None:
    """Page text comes out as it went in, page by page."""
    pages = tuple(PageText(number, text) for number, text in enumerate(texts, 1))
    assert parse_pages(encode_pages(pages), content_type=f"{PAGES_CONTENT_TYPE}; charset=utf-8") == pages


def test_plain_text_is_paged_at_form_feeds() -> None:
    """Text without page JSON is read as it is, broken characters included."""
    assert parse_pages(b"one\x0ctw\xff", content_type="text/plain") == (PageText(1, "one"), PageText(2, "tw\ufffd"))


@pytest.mark.parametrize(
    "data",
    [
        b"plain",
        b"[]",
        b"{}",
        b'{"pages":[1]}',
        b'{"pages":[{"number":0,"text":""}]}',
        b'{"pages":[{"number":true,"text":""}]}',
        b'{"pages":[{"number":2,"text":""},{"number":2,"text":""}]}',
    ],
)
def test_broken_page_json_is_refused(data: bytes) -> None:
    """Bytes that do not keep what their content type promises are no text."""
    with pytest.raises(errors.PagesInvalid):
        parse_pages(data, content_type=PAGES_CONTENT_TYPE)
