"""The answer of a child is checked like a stranger's."""

import json
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baton.extraction.jobs import Draft
from baton.extraction.limits import Limits
from baton.extraction.outcomes import Kind, Note, ReasonCode, Source, Verdict
from baton.extraction.wire import Answer, WireError, decode, encode

LIMITS = Limits(page_chars=50, text_chars=120)
GOOD: dict[str, Any] = {"kind": "pdf", "reason": None, "pages": [["a", "native", None]], "attachments": [], "notes": []}


def framed(value: Any) -> bytes:
    """A frame around anything."""
    body = json.dumps(value).encode()
    return struct.pack(">Q", len(body)) + body


def test_an_answer_arrives_as_it_was_sent() -> None:
    """What the child says is what the caller gets."""
    pages = [Draft("क\nb"), Draft("scan", Source.OCR, 88.5)]
    answer = Answer(Kind.PDF, ReasonCode.LOW_CONFIDENCE, pages, ["a.txt"], [Note.OTHER_TYPE])
    reading = decode(encode(answer), limits=LIMITS)
    assert reading.verdict is Verdict.NEEDS_REVIEW
    assert [(p.number, p.text, p.source, p.confidence) for p in reading.pages] == [
        (1, "क\nb", Source.NATIVE, None),
        (2, "scan", Source.OCR, 88.5),
    ]
    assert reading.attachments == ("a.txt",)
    assert reading.notes == (Note.OTHER_TYPE,)


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "exe"},
        {"reason": "because"},
        {"pages": [["a", "native"]]},
        {"pages": [["a\x00", "native", None]]},
        {"pages": [["\ud800", "native", None]]},
        {"pages": [["a" * 51, "native", None]]},
        {"pages": [["a" * 50, "native", None]] * 3},
        {"pages": [["a", "magic", None]]},
        {"pages": [["a", "ocr", 101]]},
        {"pages": [["a", "ocr", True]]},
        {"pages": [["a", "ocr", float("nan")]]},
        {"pages": {"0": "a"}},
        {"attachments": [1]},
        {"notes": ["psst"]},
        {"more": 1},
    ],
)
def test_a_value_that_is_not_what_it_must_be_is_refused(change: dict[str, Any]) -> None:
    """No field is taken on trust."""
    decode(framed(GOOD), limits=LIMITS)
    with pytest.raises(WireError):
        decode(framed(GOOD | change), limits=LIMITS)


@given(st.binary(max_size=200))
def test_garbage_is_a_wire_error_and_nothing_else(data: bytes) -> None:
    """No bytes make the parent stumble."""
    for frame in (data, struct.pack(">Q", len(data)) + data):
        with pytest.raises(WireError):
            decode(frame, limits=LIMITS)


@given(
    st.recursive(
        st.none() | st.booleans() | st.text() | st.floats(),
        lambda x: st.lists(x) | st.dictionaries(st.text(), x),
        max_leaves=12,
    )
)
def test_other_json_is_a_wire_error_and_nothing_else(value: Any) -> None:
    """Well-formed JSON of another shape is refused the same way."""
    with pytest.raises(WireError):
        decode(framed(value), limits=LIMITS)
    with pytest.raises(WireError):
        decode(framed(GOOD | {"pages": [value]}), limits=LIMITS)
