"""Reading JSON that nobody vouches for, and writing it in the one form that can be digested.

Python's reader is kinder than RFC 8259: it lets the last of two equal names win, takes NaN, and keeps half a surrogate
pair. Two readers that differ in such a point see two documents under one digest; so here each of them is an error.
"""

import json
from collections.abc import Iterator
from typing import Any, NoReturn

import rfc8785

from baton.contract import limits


class NotStrictJson(ValueError):
    """The bytes are not JSON of the strict kind; the text says what is wrong, never a value."""


def loads(data: bytes) -> Any:
    """Parse UTF-8 JSON strictly, at most `limits.MAX_DEPTH` deep.

    Raises NotStrictJson for everything else, whatever the bytes.
    """
    try:
        text = data.decode("utf-8")
        value = json.loads(
            text,
            object_pairs_hook=_unique_names,
            parse_int=_exact_int,
            parse_float=_finite_float,
            parse_constant=_no_constant,
        )
    except NotStrictJson:
        raise
    except UnicodeDecodeError as error:
        raise NotStrictJson(f"not UTF-8 at byte {error.start}") from None
    except json.JSONDecodeError as error:
        # error.msg is one of json's own fixed sentences; error.doc would be content
        raise NotStrictJson(f"{error.msg} at character {error.pos}") from None
    except RecursionError:
        raise NotStrictJson("nested too deeply") from None
    for depth, node in walk(value):
        if depth > limits.MAX_DEPTH:
            raise NotStrictJson(f"nested more than {limits.MAX_DEPTH} deep")
        if isinstance(node, str):
            _whole_characters(node)
        elif isinstance(node, dict):
            for name in node:
                _whole_characters(name)
    return value


def canonical(value: Any) -> bytes:
    """The RFC 8785 form of a JSON value, in bytes.

    Raises NotStrictJson where the value has no such form (NaN, integers beyond 2**53, half a surrogate pair).
    """
    try:
        return rfc8785.dumps(value)
    except (rfc8785.CanonicalizationError, UnicodeError, RecursionError) as error:
        raise NotStrictJson(f"no canonical form ({type(error).__name__})") from None


def walk(value: Any) -> Iterator[tuple[int, Any]]:
    """Every node below and including `value`, with its depth; a stack of its own, so depth costs no recursion."""
    stack: list[tuple[int, Any]] = [(0, value)]
    while stack:
        depth, node = stack.pop()
        yield depth, node
        if isinstance(node, dict):
            stack.extend((depth + 1, child) for child in node.values())
        elif isinstance(node, list):
            stack.extend((depth + 1, child) for child in node)


def _unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise NotStrictJson("a name occurs twice in one object")
    return members


def _exact_int(digits: str) -> int:
    # Length first: turning a million digits into an int is itself an attack.
    if len(digits) > 17 or abs(number := int(digits)) > limits.MAX_INTEGER:
        raise NotStrictJson("an integer beyond 2**53 - 1")
    return number


def _finite_float(digits: str) -> float:
    number = float(digits)
    # the canonical form of 1e16 is an integer of 17 digits, so the bound is one for both spellings
    if not abs(number) <= limits.MAX_INTEGER:
        raise NotStrictJson("a number beyond 2**53 - 1")
    return number


def _no_constant(_name: str) -> NoReturn:
    raise NotStrictJson("NaN and Infinity are not JSON")


def _whole_characters(text: str) -> None:
    if not text.isascii():
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            raise NotStrictJson("half a surrogate pair") from None
