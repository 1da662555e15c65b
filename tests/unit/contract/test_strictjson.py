"""The strict reader takes what every JSON reader understands alike, and nothing else."""

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baton.contract import limits, strictjson

_NUMBERS = st.integers(-limits.MAX_INTEGER, limits.MAX_INTEGER) | st.floats(-limits.MAX_INTEGER, limits.MAX_INTEGER)
_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
_VALUES = st.recursive(
    st.none() | st.booleans() | _NUMBERS | _TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXT, inner, max_size=4),
    max_leaves=12,
)


@given(_VALUES)
def test_ordinary_json_is_read_as_python_reads_it(value: Any) -> None:
    """What is ordinary comes out as it went in, also through the canonical form."""
    assert strictjson.loads(json.dumps(value).encode()) == value
    assert strictjson.loads(strictjson.canonical(value)) == value


@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_garbage_is_refused_with_one_kind_of_error(data: bytes) -> None:
    """Whatever the bytes, there is a value or NotStrictJson."""
    with contextlib.suppress(strictjson.NotStrictJson):
        strictjson.loads(data)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b'{"a": 1, "a": 2}', "twice"),
        (b'{"a": {"b": 1, "\\u0062": 2}}', "twice"),
        (b'{"a": NaN}', "NaN"),
        (b"[-Infinity]", "NaN"),
        (b"[1e999]", "number"),
        (b"[9007199254740992.0]", "number"),
        (b"[9007199254740992]", "integer"),
        (b"[-9007199254740992]", "integer"),
        (b"[" + b"9" * 100_000 + b"]", "integer"),
        (b'["\\ud800"]', "surrogate"),
        (b'{"\\udfff": 1}', "surrogate"),
        (b'"\xff"', "UTF-8"),
        (b"\xef\xbb\xbf{}", "BOM"),
        (b"[" * 100_000, "deep"),
        (b"[" * (limits.MAX_DEPTH + 2) + b"]" * (limits.MAX_DEPTH + 2), "deep"),
        (b'{"a":' * 500 + b"1" + b"}" * 500, "deep"),
        (b"", "Expecting value"),
        (b"{} {}", "Extra data"),
    ],
)
def test_what_readers_disagree_on_is_refused(data: bytes, why: str) -> None:
    """Each point on which JSON readers differ is an error that says which."""
    with pytest.raises(strictjson.NotStrictJson, match=why):
        strictjson.loads(data)


def test_the_bounds_themselves_are_inside() -> None:
    """The largest exact integer and the deepest nesting are still read."""
    deepest = b"[" * limits.MAX_DEPTH + b"7" + b"]" * limits.MAX_DEPTH
    assert strictjson.loads(b"[9007199254740991,-9007199254740991]") == [limits.MAX_INTEGER, -limits.MAX_INTEGER]
    assert strictjson.loads(deepest)


def test_an_error_never_repeats_what_it_read() -> None:
    """The text of an error can go to a log: it holds no part of the document."""
    with pytest.raises(strictjson.NotStrictJson) as caught:
        strictjson.loads(b'{"secret settlement": nope}')
    assert "secret" not in str(caught.value)
    assert caught.value.__suppress_context__
