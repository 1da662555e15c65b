"""Asking about many documents at once although the values of one of them may fail the whole question.

Postgres and Python take moments and numbers that they cannot count on with: a row that somebody edited may fail in the
arithmetic of a condition. It is set aside by halves, and hides none of those that were asked about beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar
from uuid import UUID

from sqlalchemy.exc import DataError

T = TypeVar("T")


def asked(
    document_ids: Sequence[UUID], ask: Callable[[Sequence[UUID]], T], *, spoiled: Callable[[UUID, Exception], object]
) -> Iterator[T]:
    """The answers about all of these documents but those whose values fail the question.

    :param ask: in a transaction of its own; asked again with fewer where it fails for what a row has in it.
    :param spoiled: told of each document that is set aside, and why.
    """
    try:
        answer = ask(document_ids)
    except (DataError, OverflowError) as error:
        if len(document_ids) == 1:
            spoiled(document_ids[0], error)
            return
    else:
        yield answer
        return
    middle = len(document_ids) // 2
    for some in (document_ids[:middle], document_ids[middle:]):
        yield from asked(some, ask, spoiled=spoiled)
