"""What a consumer of tickets promises while everything around it works."""

from datetime import timedelta
from typing import Any

from baton.consumers.verdicts import Ack, Retry
from support.waiting import wait_until


def test_every_ticket_is_handled_once_and_its_message_deleted(rig: Any, recorder: Any) -> None:
    """Twenty messages lead to twenty works, and an empty queue."""
    ids = rig.write(20)
    rig.send(ids)
    rig.start(recorder)
    wait_until(lambda: len(recorder.ended) == 20 and rig.drained(), what="draining")
    assert sorted(recorder.began) == ids


def test_a_received_batch_is_marked_in_its_tickets(rig: Any, recorder: Any) -> None:
    """The row says when it was received first, how often, and until when its message is hidden."""
    (ticket,) = rig.write(1)
    rig.send([ticket])
    recorder.answer = lambda _: Retry(timedelta(seconds=1))
    rig.consumer(recorder).run_once(wait=2)
    first = rig.row(ticket)
    assert first.receive_count == 1
    assert first.first_received_at is not None
    wait_until(lambda: rig.depth() == (1, 0), what="reappearing")
    recorder.answer = lambda _: Ack()
    rig.consumer(recorder).run_once(wait=2)
    second = rig.row(ticket)
    assert second.receive_count == 2
    assert second.first_received_at == first.first_received_at
    assert second.hold_until > first.hold_until
