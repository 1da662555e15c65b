"""What each answer of an agent lets us conclude."""

import json
from uuid import UUID

import pytest

from baton.runs.answers import Answer, Fate, Reply, classify

RUN = UUID("0198f000-0000-7000-8000-000000000001")
OTHER = UUID("0198f000-0000-7000-8000-000000000002")


def accepted(run_id: UUID = RUN, **more: str) -> bytes:
    """The body of an acceptance."""
    return json.dumps({"run_id": str(run_id), "status": "accepted", **more}).encode()


def said(status: int, body: bytes = b"") -> Reply:
    """An answer."""
    return Reply(fate=Fate.ANSWERED, status=status, body=body)


FIRST = [
    (said(200, accepted()), Answer.ACCEPTED),
    (said(202, accepted()), Answer.ACCEPTED),
    (said(200, accepted(OTHER)), Answer.AMBIGUOUS),
    (said(200, accepted(result="done")), Answer.AMBIGUOUS),
    (said(200, b"{}"), Answer.AMBIGUOUS),
    (said(200, b""), Answer.AMBIGUOUS),
    (said(200, b"\xff" * 5000), Answer.AMBIGUOUS),
    (said(204), Answer.AMBIGUOUS),
    *((said(status, accepted()), Answer.REFUSED) for status in (400, 409, 422)),
    *((said(status, accepted()), Answer.AWAY) for status in (401, 403, 404, 429, 503)),
    *(
        (said(status, accepted()), Answer.AMBIGUOUS)
        for status in (302, 402, 405, 408, 410, 413, 418, 500, 502, 504, 599)
    ),
    (Reply(fate=Fate.UNSENT), Answer.AWAY),
    (Reply(fate=Fate.LOST), Answer.AMBIGUOUS),
]


@pytest.mark.parametrize(("reply", "answer"), FIRST)
def test_the_answer_to_a_first_invocation(reply: Reply, answer: Answer) -> None:
    """Only an exact acceptance accepts; only known refusals refuse; everything else is ambiguous."""
    assert classify(reply, run_id=RUN, first=True) is answer


@pytest.mark.parametrize("reply", [reply for reply, _ in FIRST])
def test_the_answer_to_a_later_invocation(reply: Reply) -> None:
    """Whatever does not accept proves nothing about a run that may have been taken before."""
    expected = Answer.ACCEPTED if classify(reply, run_id=RUN, first=True) is Answer.ACCEPTED else Answer.AMBIGUOUS
    assert classify(reply, run_id=RUN, first=False) is expected
