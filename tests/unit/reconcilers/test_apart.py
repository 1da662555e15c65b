"""One whose values fail a question is set aside, and nobody beside it."""

from collections.abc import Sequence
from uuid import UUID

import pytest
from sqlalchemy.exc import DataError
from uuid_utils.compat import uuid7

from baton.reconcilers import apart


@pytest.mark.parametrize("error", [OverflowError(), DataError("", {}, Exception())])
@pytest.mark.parametrize("count", [1, 2, 7, 64])
def test_all_others_are_asked_about_once(count: int, error: Exception) -> None:
    """Two of them are spoiled, the first and the last; each is told once; the questions grow with their logarithm."""
    ids = [uuid7() for _ in range(count)]
    bad = {ids[0], ids[-1]}
    told: list[UUID] = []
    asked: list[int] = []

    def ask(some: Sequence[UUID]) -> list[UUID]:
        asked.append(len(some))
        if bad & set(some):
            raise error
        return list(some)

    found = [each for part in apart.asked(ids, ask, spoiled=lambda document, _: told.append(document)) for each in part]
    assert found == [each for each in ids if each not in bad]
    assert set(told) == bad
    assert len(told) == len(bad)
    assert len(asked) <= 4 * max(count.bit_length(), 1)


def test_any_other_failure_is_the_callers() -> None:
    """A database that is away, a fault of ours: not looked into by halves."""
    asked = []

    def ask(some: Sequence[UUID]) -> None:
        asked.append(some)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        list(apart.asked([uuid7(), uuid7()], ask, spoiled=lambda *_: None))
    assert len(asked) == 1
