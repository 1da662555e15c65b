"""Sending many messages under one total bound, and what became of each of them.

A batch is cut into calls of at most ten messages and ``CALL_BYTES``. Several calls may be in
flight at once; messages of one group stay in one strand of calls, in their order. Each strand is
a daemon thread that is waited for no longer than the bound: a resolver that hangs or an answer
that trickles in byte by byte defeats every time-out inside the SDK, and the caller holds rows
locked meanwhile. What an abandoned strand still does is nobody's business any more: its messages
count as unanswered and are sent again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from baton.aws.clients import Clients
from baton.aws.errors import AwsError, FaultKind, QueueUnavailable, RequestRefused
from baton.aws.faults import Service, kind_of, translated

CALL_ENTRIES: Final = 10
CALL_BYTES: Final = 256 * 1024
"""Bytes of one message and of one call. SQS allows 1 MiB since August 2025; regions, endpoints
and stand-ins that still enforce the old limit are met by staying below it, and tickets are
pointers of a few hundred bytes."""

_ABANDONED_LIMIT: Final = 32
"""Strands that may hang past their bound before sending is refused outright."""

# Refusals of a whole call for which a single entry may be to blame; the call is halved until the
# entry stands alone. Any other refusal (wrong queue, wrong address) is the whole batch's.
_ENTRY_BLAME: Final = frozenset(
    {
        "InvalidMessageContents",
        "InvalidParameterValue",
        "BatchRequestTooLong",
        "AWS.SimpleQueueService.BatchRequestTooLong",
        "ParamValidationError",
    }
)


class SendState(StrEnum):
    """What became of one message."""

    SENT = "sent"
    REFUSED = "refused"
    """By its own fault: sending it again cannot help. The only state that counts an attempt."""
    FAILED = "failed"
    """By the service's fault, while others went through."""
    UNANSWERED = "unanswered"
    """The answer left it out, or never came: it may have been sent."""
    UNTRIED = "untried"
    """It was not its turn any more."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One message to send."""

    key: str
    """The caller's own name for it; comes back in the result."""
    body: str
    group: str | None = None
    """FIFO: the messages of a group keep their order. Ignored by standard queues."""
    deduplication: str | None = None
    """FIFO: within five minutes a second message of this id is swallowed."""
    attributes: Mapping[str, str] = field(default_factory=dict)
    """Text attributes, such as ``traceparent``."""

    @property
    def size(self) -> int:
        """Bytes that count towards SQS's limit: body and attributes with names and types."""
        attributes = sum(
            len(name.encode()) + len("String") + len(value.encode()) for name, value in self.attributes.items()
        )
        return len(self.body.encode("utf-8", "surrogatepass")) + attributes


@dataclass(frozen=True, slots=True)
class SendResult:
    """What became of one message."""

    key: str
    state: SendState
    message_id: str | None = None
    """SQS's id; set exactly when ``state`` is SENT."""
    code: str | None = None
    """The service's name for what went wrong with this message."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A whole batch: one result for each entry, in the order given."""

    results: tuple[SendResult, ...]
    failure: AwsError | None
    """What stopped the batch as a whole; back off, it counts for nobody. ``None`` does not mean
    that every message went through."""

    def of(self, state: SendState) -> tuple[SendResult, ...]:
        """The results of one state."""
        return tuple(result for result in self.results if result.state is state)


def send(
    clients: Clients,
    url: Callable[[], str],
    entries: Sequence[Entry],
    *,
    fifo: bool,
    bound: float = 5.0,
    parallel: int = 1,
) -> Sent:
    """Send ``entries`` and return within ``bound`` seconds, whatever the other side does.

    Never raises for a fault of the service: what is known of each message is in the result.

    Args:
        clients: where the sending client comes from.
        url: gives the queue's URL; asked inside the bound, since it may look it up.
        entries: any number of messages.
        fifo: whether group and deduplication id are sent; both are then required.
        bound: seconds in all.
        parallel: calls in flight at most.

    Raises:
        ValueError: for a FIFO queue, when an entry lacks a group or deduplication id.
    """
    if fifo and any(not each.group or not each.deduplication for each in entries):
        raise ValueError("a FIFO queue takes messages with a group and a deduplication id only")
    batch = _Batch(clients, url, fifo=fifo, deadline=time.monotonic() + bound)
    fitting = []
    for index, entry in enumerate(entries):
        if entry.size > CALL_BYTES:
            batch.settle(index, SendResult(entry.key, SendState.REFUSED, code="MessageTooLong"))
        else:
            fitting.append((index, entry))
    if fitting:
        batch.run(_strands(fitting, parallel=parallel))
    return batch.closed(entries)


Numbered = tuple[int, Entry]


class _Batch:
    """The state that the strands of one batch share."""

    _abandoned: list[threading.Thread] = []  # noqa: RUF012 - all batches of the process
    _abandoned_lock = threading.Lock()

    def __init__(self, clients: Clients, url: Callable[[], str], *, fifo: bool, deadline: float) -> None:
        self._clients = clients
        self._url = url
        self._fifo = fifo
        self._deadline = deadline
        self._lock = threading.Lock()
        self._results: dict[int, SendResult] = {}
        self._failure: AwsError | None = None

    def settle(self, index: int, result: SendResult) -> None:
        """Note what is known of a message by now."""
        with self._lock:
            self._results[index] = result

    def run(self, strands: Sequence[Sequence[Numbered]]) -> None:
        """Run every strand, and wait for them until the deadline."""
        with self._abandoned_lock:
            self._abandoned[:] = [thread for thread in self._abandoned if thread.is_alive()]
            if len(self._abandoned) >= _ABANDONED_LIMIT:
                self._stop(_timed_out("earlier calls still hang"))
                return
        threads = [
            threading.Thread(target=self._strand, args=(strand,), name="sqs-send", daemon=True) for strand in strands
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(max(0.0, self._deadline - time.monotonic()))
        hanging = [thread for thread in threads if thread.is_alive()]
        if hanging:
            self._stop(_timed_out("no answer within the bound"))
            with self._abandoned_lock:
                self._abandoned.extend(hanging)

    def closed(self, entries: Sequence[Entry]) -> Sent:
        """The batch as it stands: a copy, which late answers do not reach."""
        with self._lock:
            results = tuple(
                self._results.get(index, SendResult(entry.key, SendState.UNTRIED))
                for index, entry in enumerate(entries)
            )
            return Sent(results, self._failure)

    def _stop(self, failure: AwsError) -> None:
        with self._lock:
            if self._failure is None:
                self._failure = failure

    def _strand(self, strand: Sequence[Numbered]) -> None:
        for call in _calls(strand):
            if self._failure is not None:
                return
            if time.monotonic() >= self._deadline:
                self._stop(_timed_out("the bound passed before every message had its turn"))
                return
            if not self._call(call):
                return

    def _call(self, call: Sequence[Numbered]) -> bool:
        """Make one call, halving it where an entry is to blame; false: stop here."""
        self._mark(call, SendState.UNANSWERED)
        try:
            with translated(Service.SQS, "SendMessageBatch"):
                answer: Any = self._clients.sender.send_message_batch(
                    QueueUrl=self._url(),
                    Entries=[_written(n, each, fifo=self._fifo) for n, (_, each) in enumerate(call)],  # type: ignore[misc]
                )
                self._read(call, answer)
        except RequestRefused as refused:
            return self._blamed(call, refused)
        except AwsError as failure:
            return self._failed(call, failure)
        except Exception as failure:  # noqa: BLE001 - a thread must not die with its news
            text = f"sqs SendMessageBatch: {type(failure).__name__}"
            return self._failed(call, QueueUnavailable(text, kind=FaultKind.SERVER))
        return True

    def _blamed(self, call: Sequence[Numbered], refused: RequestRefused) -> bool:
        """Find the entry that a refused call is to be blamed on, and send the others."""
        if refused.code not in _ENTRY_BLAME:
            return self._failed(call, refused)
        if len(call) == 1:
            self._mark(call, SendState.REFUSED, code=refused.code)
            return True
        self._mark(call, SendState.UNTRIED)
        middle = len(call) // 2
        return self._call(call[:middle]) and self._call(call[middle:])

    def _failed(self, call: Sequence[Numbered], failure: AwsError) -> bool:
        """Stop the batch; messages of a call that timed out stay unanswered."""
        timed_out = isinstance(failure, QueueUnavailable) and failure.kind is FaultKind.TIMEOUT
        if not timed_out:
            self._mark(call, SendState.UNTRIED, code=failure.code or None)
        self._stop(failure)
        return False

    def _mark(self, call: Sequence[Numbered], state: SendState, *, code: str | None = None) -> None:
        for index, entry in call:
            self.settle(index, SendResult(entry.key, state, code=code))

    def _read(self, call: Sequence[Numbered], answer: Mapping[str, Any]) -> None:
        """Take each entry's own answer; one that is left out stays unanswered."""
        named = {str(n): numbered for n, numbered in enumerate(call)}
        for each in answer.get("Successful") or ():
            if each.get("Id") in named and each.get("MessageId"):
                index, entry = named[each["Id"]]
                self.settle(index, SendResult(entry.key, SendState.SENT, each["MessageId"]))
        for each in answer.get("Failed") or ():
            if each.get("Id") in named:
                index, entry = named[each["Id"]]
                code = str(each.get("Code", ""))
                own = bool(each.get("SenderFault")) and kind_of(code) is None
                state = SendState.REFUSED if own else SendState.FAILED
                self.settle(index, SendResult(entry.key, state, code=code))


def _timed_out(why: str) -> QueueUnavailable:
    return QueueUnavailable(f"sqs SendMessageBatch: {why}", kind=FaultKind.TIMEOUT, code="Bound")


def _written(position: int, entry: Entry, *, fifo: bool) -> dict[str, Any]:
    written: dict[str, Any] = {"Id": str(position), "MessageBody": entry.body}
    if fifo:
        written["MessageGroupId"] = entry.group
        written["MessageDeduplicationId"] = entry.deduplication
    if entry.attributes:
        written["MessageAttributes"] = {
            name: {"DataType": "String", "StringValue": value} for name, value in entry.attributes.items()
        }
    return written


def _strands(entries: Sequence[Numbered], *, parallel: int) -> list[list[Numbered]]:
    """Deal the entries out to at most ``parallel`` strands, a group to one strand only.

    A strand takes whole calls' worth before the next one is opened, so that dealing out does not
    multiply the calls.
    """
    calls = -(-len(entries) // CALL_ENTRIES)
    share = -(-calls // max(1, parallel)) * CALL_ENTRIES
    strands: list[list[Numbered]] = [[]]
    home: dict[str, list[Numbered]] = {}
    for numbered in entries:
        group = numbered[1].group
        strand = home.get(group) if group else None
        if strand is None:
            if len(strands[-1]) >= share and len(strands) < parallel:
                strands.append([])
            strand = strands[-1]
            if group:
                home[group] = strand
        strand.append(numbered)
    return strands


def _calls(strand: Sequence[Numbered]) -> Iterator[list[Numbered]]:
    """Cut a strand into calls by number and by bytes."""
    call: list[Numbered] = []
    size = 0
    for numbered in strand:
        more = numbered[1].size
        if call and (len(call) == CALL_ENTRIES or size + more > CALL_BYTES):
            yield call
            call, size = [], 0
        call.append(numbered)
        size += more
    if call:
        yield call
