"""Every situation a document can be in, as rows; and what the table of the spec of loops says about each, in plain Python.

The second telling of the table is on purpose: a row that is missing from the first, or stands in the wrong place, shows
as a difference.
"""

import csv
import io
import itertools
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Connection
from uuid_utils.compat import uuid7

from baton.db.states import Lane
from baton.reconcilers.lanes import NEVER, LaneState

VISIBILITY, RETENTION = timedelta(seconds=60), timedelta(days=4)
PARTS = ("card", "sections", "brief")
LIVES = (
    "missing",
    "undispatched",
    "parked",
    "handled",
    "dead",
    "waiting",  # sent after every watermark
    "passed_by",  # sent before the watermarks, never received
    "blocked",  # the same, with an earlier open ticket of the document before it
    "behind_dead",  # the same, the earlier one being a dead letter
    "held",
    "held_late",  # the hold is over, the visibility beside it is not
    "released",
    "received_retained",  # held, and older than the retention
    "retained",  # older than the retention
)
RUNS = ("none", "running", "overdue", "lapsed", "delivered", "rejected", "expired", "superseded", "undispatched")
SETTLED = ("delivered", "rejected", "expired")


@dataclass(frozen=True)
class Axis:
    """A registration's or a part's requests, runs and letters."""

    ticket: str = "missing"
    ticket_mark: bool = True
    run: str = "none"
    run_mark: str = "named"  # or "empty", "foreign"
    letter: str = "missing"
    letter_mark: bool = True
    next_attempt: str = "none"  # or "later", "now"


@dataclass(frozen=True)
class PartOf:
    """A part's row."""

    state: str = "absent"
    axis: Axis = Axis()


@dataclass(frozen=True)
class Combination:
    """One document."""

    deleted: bool = False
    young: bool = False
    """Whether it came to be within every grace, or long ago."""
    processing: str = "indexed"
    ingest: str = "missing"
    ingest_mark: bool = True
    has_pass: bool = True
    status: str = "not_requested"
    status_pass: str = "present"  # or "other", "none"
    understood: bool = True
    axis: Axis = Axis()
    parts: Mapping[str, PartOf] = field(default_factory=lambda: dict.fromkeys(PARTS, PartOf()))

    def refused(self) -> str | None:
        """The constraint that refuses such a row."""
        if self.processing in ("indexed", "needs_review") and not self.has_pass:
            return "text_has_pass"
        if self.status != "not_requested" and self.status_pass == "none":
            return "status_has_pass"
        if self.axis.next_attempt != "none" and self.status != "registration_failed":
            return "next_attempt"
        if any(each.axis.next_attempt != "none" and each.state != "failed" for each in self.parts.values()):
            return "next_attempt"
        return None


def combinations(seed: int, *, mixed: int) -> Iterator[Combination]:
    """All combinations of what the rows of one aspect read, the other aspects drawn at random; then ``mixed`` random ones."""
    draw = random.Random(seed)
    for deleted, young, processing, ingest, mark, has_pass in itertools.product(
        (False, True), (False, True), PROCESSING, LIVES, (False, True), (False, True)
    ):
        values: dict[str, Any] = {"processing": processing, "ingest": ingest, "ingest_mark": mark, "has_pass": has_pass}
        yield replace(any_of(draw), deleted=deleted, young=young, **values)
    for deleted, young, processing, status in itertools.product((False, True), (False, True), PROCESSING, STATUSES):
        # what a run waits for is the same whatever became of the text meanwhile, and without a present pass nothing of
        # it is asked
        if status in ("queued", "registering") and processing not in ("uploaded", "indexed"):
            continue
        for status_pass, has_pass in (("present", True), ("other", True), ("present", False), ("none", True)):
            axes = list(_axes(status))
            for axis, understood in axes if (status_pass, has_pass) == ("present", True) else axes[::13]:
                yield replace(
                    any_of(draw),
                    deleted=deleted,
                    young=young,
                    processing=processing,
                    status=status,
                    status_pass=status_pass,
                    has_pass=has_pass,
                    axis=axis,
                    understood=understood,
                )
    for part in PARTS:
        yield from _of_part(draw, part)
    for _ in range(mixed):
        yield any_of(draw)


PROCESSING = ("pending", "uploaded", "stored", "extracting", "indexed", "needs_review", "failed")
STATUSES = (
    "not_requested",
    "queued",
    "registering",
    "registered",
    "registration_failed",
    "registration_needs_review",
)


def _axes(status: str) -> Iterator[tuple[Axis, bool]]:
    if status in ("queued", "requested"):
        yield from ((Axis(ticket=life, ticket_mark=mark), True) for life in LIVES for mark in (True, False))
    elif status in ("registering", "running"):
        for run, run_mark in itertools.product(RUNS, ("named", "empty", "foreign")):
            if run not in SETTLED:
                yield Axis(run=run, run_mark=run_mark), True
                continue
            for letter, letter_mark in itertools.product(LIVES, (True, False)):
                yield Axis(run=run, run_mark=run_mark, letter=letter, letter_mark=letter_mark), True
    elif status in ("registration_failed", "failed"):
        yield from ((Axis(next_attempt=each), True) for each in ("none", "later", "now"))
    elif status == "registered":
        yield from ((Axis(), understood) for understood in (True, False))
    else:
        yield from ((Axis(next_attempt=each), True) for each in ("none", "later"))


def _of_part(draw: random.Random, part: str) -> Iterator[Combination]:
    earlier = PARTS[PARTS.index(part) - 1] if part != "card" else None
    befores = (
        [PartOf()]
        if earlier is None
        else [
            PartOf(),
            PartOf("requested", Axis(ticket="waiting")),
            PartOf("running", Axis(run="running")),
            PartOf("ready"),
            PartOf("failed"),
            PartOf("failed", Axis(next_attempt="later")),
        ]
    )
    for deleted, young, status, understood, before, status_pass in itertools.product(
        (False, True), (False, True), STATUSES, (True, False), befores, ("present", "other")
    ):
        given = {part: PartOf()} | ({} if earlier is None else {earlier: before})
        base = any_of(draw)
        yield replace(
            base,
            deleted=deleted,
            young=young,
            has_pass=True,
            status=status,
            status_pass=status_pass,
            understood=understood,
            axis=replace(base.axis, next_attempt="none"),
            parts={**base.parts, **given},
        )
    for deleted, young, state in itertools.product(
        (False, True), (False, True), ("requested", "running", "ready", "failed")
    ):
        for axis, _ in _axes(state):
            base = any_of(draw)
            yield replace(
                base, deleted=deleted, young=young, has_pass=True, parts={**base.parts, part: PartOf(state, axis)}
            )


def any_of(draw: random.Random) -> Combination:
    """A combination at random that no constraint refuses."""

    def axis(*, failed: bool) -> Axis:
        return Axis(
            ticket=draw.choice(LIVES),
            ticket_mark=draw.random() < 0.7,
            run=draw.choice(RUNS),
            run_mark=draw.choice(("named", "named", "empty", "foreign")),
            letter=draw.choice(LIVES),
            letter_mark=draw.random() < 0.7,
            next_attempt=draw.choice(("none", "later", "now")) if failed else "none",
        )

    processing = draw.choice(PROCESSING)
    status = draw.choice(STATUSES)
    states = {part: draw.choice(("absent", "requested", "running", "ready", "failed")) for part in PARTS}
    return Combination(
        deleted=draw.random() < 0.1,
        young=draw.random() < 0.3,
        processing=processing,
        ingest=draw.choice(LIVES),
        ingest_mark=draw.random() < 0.7,
        has_pass=processing in ("indexed", "needs_review") or draw.random() < 0.5,
        status=status,
        status_pass=draw.choice(("present", "present", "other")),
        understood=draw.random() < 0.7,
        axis=axis(failed=status == "registration_failed"),
        parts={part: PartOf(state, axis(failed=state == "failed")) for part, state in states.items()},
    )


# As rows


@dataclass
class Written:
    """What was written for one document."""

    combination: Combination
    id: UUID
    tickets: list[dict[str, Any]] = field(default_factory=list)
    runs: list[dict[str, Any]] = field(default_factory=list)


class Writer:
    """Writes combinations; constraints hold, triggers do not."""

    def __init__(self, now: datetime, *, history: bool = False) -> None:
        """:param history: whether earlier readings, generations and runs have left handled tickets behind."""
        self.now = now
        self.history = history
        self.firm = uuid7()
        self._ticket = 0

    def begin_after(self, ticket_id: int) -> None:
        """Go on with ids above those that are taken."""
        self._ticket = ticket_id

    def ago(self, **span: float) -> datetime:
        """That long before now."""
        return self.now - timedelta(**span)

    def rows(self, c: Combination) -> tuple[Written, dict[str, Any], list[dict[str, Any]], list[dict[str, Any]]]:
        """The document's row, its parts' rows, its dead letters; its tickets and runs are with what was written."""
        identity, present = uuid7(), uuid7() if c.has_pass else None
        written = Written(c, identity)
        dead: list[dict[str, Any]] = []
        since = self.ago(seconds=5) if c.young else self.ago(days=3)
        ingest = self._ticketed(written, dead, c.ingest, young=c.young, event_type="document.ingest.requested", epoch=2)
        marks = self._axis(written, dead, c.axis, c=c, purpose="classify", present=present)
        document = {
            "id": identity,
            "firm_id": self.firm,
            "matter_id": self.firm,
            "name": "a",
            "object_key": str(identity),
            "content_type": "text/plain",
            "processing_status": c.processing,
            "processing_status_since": since,
            "registration_status": c.status,
            "registration_status_since": since,
            "extraction_epoch": 2,
            "extraction_run_id": present,
            "registration_run_id": marks["run"],
            "registration_pass": {"present": present or uuid7(), "other": uuid7(), "none": None}[c.status_pass],
            "understood_pass": None if c.young else uuid7(),  # that of an earlier reading, or none
            "ingest_ticket_id": (ingest or 1) if c.ingest_mark else None,
            "registration_ticket_id": marks["ticket"],
            "next_attempt_at": marks["next"],
            "created_at": since,
            "deleted_at": since if c.deleted else None,
        }
        if c.understood:
            document["understood_pass"] = document["registration_pass"]
        parts = []
        for part, of in c.parts.items():
            if of.state == "absent" or present is None:
                continue
            marks = self._axis(written, dead, of.axis, c=c, purpose=part, present=present)
            parts.append(
                {
                    "firm_id": self.firm,
                    "document_id": identity,
                    "extraction_run_id": present,
                    "part": part,
                    "state": of.state,
                    "state_since": since,
                    "attempt": 1,
                    "ticket_id": marks["ticket"],
                    "run_id": marks["run"],
                    "next_attempt_at": marks["next"],
                }
            )
        return written, document, parts, dead

    def _axis(
        self,
        written: Written,
        dead: list[dict[str, Any]],
        axis: Axis,
        *,
        c: Combination,
        purpose: str,
        present: UUID | None,
    ) -> dict[str, Any]:
        next_attempt = {"none": None, "later": self.now + timedelta(hours=1), "now": self.ago(hours=1)}
        marks: dict[str, Any] = {"ticket": None, "run": None, "next": next_attempt[axis.next_attempt]}
        ticket = None
        if present is not None:
            event = "document.registration.requested" if purpose == "classify" else "document.understanding.requested"
            part = None if purpose == "classify" else purpose
            ticket = self._ticketed(
                written, dead, axis.ticket, young=c.young, event_type=event, epoch=2, present=present, part=part
            )
        marks["ticket"] = (ticket or 1) if axis.ticket_mark else None
        run_id = uuid7()
        if axis.run_mark != "empty":
            marks["run"] = run_id if axis.run_mark == "named" else uuid7()
        if axis.run == "none" or present is None:
            return marks
        deadline = {"running": self.now + timedelta(minutes=5), "overdue": self.ago(minutes=5)}
        pending = axis.run in ("running", "overdue", "lapsed")
        letter = None
        if axis.run in SETTLED:
            letter = self._ticketed(
                written,
                dead,
                axis.letter,
                young=c.young,
                event_type="document.artifact.delivered",
                epoch=2,
                present=present,
                run_id=run_id,
            )
        written.runs.append(
            {
                "run_id": run_id,
                "seq": self._next(),
                "firm_id": self.firm,
                "document_id": written.id,
                "extraction_run_id": present,
                "attempt": 1,
                "purpose": purpose,
                "result_schema": "x",
                "state": "pending" if pending else axis.run,
                "deadline_at": deadline.get(axis.run, self.ago(hours=1)),
                "settled_at": None if pending else self.ago(seconds=4.5) if c.young else self.ago(hours=1),
                "result_key": "k",
                "artifact_ticket_id": (letter or 1) if axis.letter_mark and axis.run in SETTLED else None,
            }
        )
        return marks

    def _next(self) -> int:
        self._ticket += 1
        return self._ticket

    def _ticketed(
        self,
        written: Written,
        dead: list[dict[str, Any]],
        life: str,
        *,
        young: bool,
        event_type: str,
        epoch: int,
        present: UUID | None = None,
        part: str | None = None,
        run_id: UUID | None = None,
    ) -> int | None:
        if life == "missing":
            if self.history:  # what an earlier reading, or another run, has left behind is none of this one's
                self._ticketed(
                    written,
                    dead,
                    "handled",
                    young=young,
                    event_type=event_type,
                    epoch=1,
                    present=None if present is None else uuid7(),
                    part=part,
                    run_id=None if run_id is None else uuid7(),
                )
            return None
        if life == "undispatched" and self.history:  # it was asked for before: of several generations the newest counts
            self._ticketed(
                written,
                dead,
                "handled",
                young=young,
                event_type=event_type,
                epoch=epoch,
                present=present,
                part=part,
                run_id=run_id,
            )
        if life in ("blocked", "behind_dead"):
            lane = event_type == "document.ingest.requested"
            earlier = self._ticketed(
                written,
                dead,
                "dead" if life == "behind_dead" else "passed_by",
                young=young,
                event_type="document.ingest.requested" if lane else "document.artifact.delivered",
                epoch=1,
                present=None if lane else uuid7(),
                run_id=None if lane else uuid7(),
            )
            assert earlier is not None
        identity = self._next()
        row: dict[str, Any] = {
            "id": identity,
            "firm_id": self.firm,
            "matter_id": self.firm,
            "document_id": written.id,
            "event_type": event_type,
            "idempotency_key": str(identity),
            "extraction_epoch": epoch,
            "extraction_run_id": present,
            "run_id": run_id,
            "part": part,
            "object_key": "k",
            "content_type": "text/plain",
            "created_at": self.ago(seconds=6) if young else self.ago(hours=3),
            "not_before": self.ago(seconds=6) if young else self.ago(hours=3),
            "dispatched_at": None,
            "parked_at": None,
            "first_received_at": None,
            "hold_until": None,
            "handled_at": None,
            "outcome": None,
        }
        row |= self._life(life, young=young)
        if life == "dead":
            found = self.ago(minutes=10)
            dead.append(
                {"queue": "q", "message_id": str(identity), "ticket_id": identity, "body": "{}", "found_at": found}
            )
        written.tickets.append(row | {"life": life})
        return identity

    def _life(self, life: str, *, young: bool) -> dict[str, Any]:  # noqa: PLR0911 - one line a state
        match life:
            case "undispatched":
                return {}
            case "parked":
                # written long before: what counts is since when it is parked
                written = self.ago(hours=3)
                parked = self.ago(minutes=1) if young else self.ago(hours=1)
                return {"parked_at": parked, "created_at": written, "not_before": written}
            case "handled":
                handled = self.ago(seconds=4) if young else self.ago(minutes=30)
                return {"dispatched_at": self.ago(hours=2), "handled_at": handled, "outcome": "stale"}
            case "waiting":
                return {"dispatched_at": self.ago(minutes=10)}
            case "held":
                received = {"first_received_at": self.ago(minutes=5), "hold_until": self.now + timedelta(seconds=20)}
                return {"dispatched_at": self.ago(minutes=10), **received}
            case "held_late":
                received = {"first_received_at": self.ago(minutes=5), "hold_until": self.ago(seconds=40)}
                return {"dispatched_at": self.ago(minutes=10), **received}
            case "released":
                received = {"first_received_at": self.ago(minutes=9), "hold_until": self.ago(minutes=8)}
                return {"dispatched_at": self.ago(minutes=10), **received}
            case "received_retained":
                received = {"first_received_at": self.ago(days=5), "hold_until": self.now + timedelta(seconds=20)}
                return {"dispatched_at": self.ago(days=6), **received}
            case "retained":
                return {"dispatched_at": self.ago(days=5)}
            case _:  # passed_by, blocked, behind_dead, dead
                return {"dispatched_at": self.ago(minutes=90)}


def write(connection: Connection, writer: Writer, given: list[Combination]) -> list[Written]:
    """Write many at once; none of them may be one that is refused."""
    connection.exec_driver_sql("SET LOCAL session_replication_role = 'replica'")
    all_written, documents, parts, dead = [], [], [], []
    for each in given:
        written, document, its_parts, its_dead = writer.rows(each)
        all_written.append(written)
        documents.append(document)
        parts += its_parts
        dead += its_dead
    _copy(connection, "documents", documents)
    _copy(connection, "record.understanding_part", parts)
    _copy(connection, "ops.dead_letter", dead)
    tickets = [{k: v for k, v in t.items() if k != "life"} for w in all_written for t in w.tickets]
    _copy(connection, "ops.document_ingest_outbox", tickets)
    _copy(connection, "agents.agent_run", [run for w in all_written for run in w.runs])
    connection.exec_driver_sql(
        "SELECT setval(pg_get_serial_sequence('ops.document_ingest_outbox', 'id'), max(id))"
        " FROM ops.document_ingest_outbox"
    )
    return all_written


def _copy(connection: Connection, table: str, rows: list[dict[str, Any]]) -> None:
    if not rows:
        return
    text = io.StringIO()
    writer = csv.writer(text)
    columns = list(rows[0])
    for row in rows:
        writer.writerow(["" if row[column] is None else row[column] for column in columns])
    raw = connection.connection.dbapi_connection
    assert raw is not None
    with raw.cursor().copy(f"COPY {table} ({', '.join(columns)}) FROM STDIN WITH (FORMAT csv)") as copy:
        copy.write(text.getvalue())


# Lanes


def lanes(now: datetime, kind: str) -> Mapping[Lane, LaneState]:
    """``polled``: consumers, nothing passed by; ``emptied``, ``overtaken``: what was sent before an hour ago was passed
    by; ``stalled``: so it was, and nobody consumes any more.
    """
    hour = now - timedelta(hours=1)
    return {
        lane: LaneState(
            lane=lane,
            alive=kind != "stalled",
            visibility=VISIBILITY,
            retention=RETENTION,
            empty_before=hour if kind in ("emptied", "stalled") else NEVER,
            overtaken_before=hour if kind in ("overtaken", "stalled") else NEVER,
        )
        for lane in Lane
    }


KINDS = ("polled", "emptied", "overtaken", "stalled")


# What the table says


@dataclass(frozen=True)
class Table:
    """The table, told again."""

    written: Written
    kind: str
    now: datetime

    @property
    def c(self) -> Combination:
        """The document."""
        return self.written.combination

    def expected(self) -> dict[str, str]:
        """The verdict of each aspect."""
        found = {"ingest": self._ingest(), "registration": self._registration()}
        return found | {part: self._part(part) for part in PARTS}

    def _young(self, name: str) -> str:
        return f"healthy:settling:{name}" if self.c.young else name

    def _ingest(self) -> str:
        c = self.c
        if c.deleted:
            return "healthy:deleted"
        match c.processing:
            case "indexed":
                return "healthy:extracted"
            case "needs_review":
                return "healthy:text_needs_review"
            case "failed":
                return "healthy:unreadable"
            case "pending":
                return self._young("upload_abandoned")
        unnamed = c.processing == "uploaded" and not c.ingest_mark
        return self._asked(
            c.ingest, "ingest", unnamed=unnamed, missing="ingest_ticket_missing", stalled="ingest_stalled"
        )

    def _registration(self) -> str:  # noqa: PLR0911 - one line a row of the table
        c, axis = self.c, self.c.axis
        if c.deleted:
            return self._deleted("classify")
        if c.status != "not_requested" and (c.status_pass == "other" or not c.has_pass):
            return self._young("pass_superseded")
        if c.status == "registered":
            return "healthy:registered" if c.understood else self._young("fan_out_missing")
        if c.status == "registration_needs_review":
            return "healthy:registration_needs_review"
        if c.status == "not_requested" or (c.status == "registration_failed" and axis.next_attempt != "none"):
            if c.processing == "needs_review":
                return "healthy:text_under_review"
            if c.processing == "failed":
                return "healthy:without_text"
            if c.processing != "indexed":
                return "healthy:awaiting_text"
            if c.status == "not_requested":
                return self._young("request_missing")
            return "failure_retryable" if axis.next_attempt == "now" else "healthy:awaiting_retry"
        if c.status == "registration_failed":
            return "healthy:failed"
        if c.status == "queued":
            names = {"missing": "request_ticket_missing", "stalled": "request_stalled"}
            return self._asked(axis.ticket, "registration", unnamed=not axis.ticket_mark, **names)
        names = {"gone": "run_missing", "missing": "artifact_unopened", "stalled": "apply_stalled"}
        return self._running(axis, "classify", **names)

    def _part(self, part: str) -> str:
        c = self.c
        of = c.parts[part] if c.has_pass else PartOf()
        if c.deleted:
            return self._deleted(part)
        if of.state == "absent":
            return self._absent(part)
        if of.state == "ready":
            return "healthy:ready"
        stalled = "understanding_stalled"
        if of.state == "failed":
            names = {"none": "healthy:failed", "later": "healthy:awaiting_retry", "now": "failure_retryable"}
            return names[of.axis.next_attempt]
        if of.state == "requested":
            unnamed = not of.axis.ticket_mark
            return self._asked(of.axis.ticket, part, unnamed=unnamed, missing=stalled, stalled=stalled)
        return self._running(of.axis, part, gone=stalled, missing=stalled, stalled=stalled)

    def _absent(self, part: str) -> str:
        c = self.c
        if c.status != "registered" or c.status_pass != "present" or not c.has_pass:
            return "healthy:awaiting_turn"
        turn = c.understood
        if part != "card":
            before = c.parts[PARTS[PARTS.index(part) - 1]]
            turn = before.state == "ready" or (before.state == "failed" and before.axis.next_attempt == "none")
        return self._young("part_missing") if turn else "healthy:awaiting_turn"

    def _deleted(self, purpose: str) -> str:
        pending = any(run["purpose"] == purpose and run["state"] == "pending" for run in self.written.runs)
        return self._young("deleted_in_flight") if pending else "healthy:deleted"

    def _asked(self, life: str, aspect: str, *, unnamed: bool, missing: str, stalled: str) -> str:
        if life == "missing":
            return self._young(missing)
        events = {"ingest": "document.ingest.requested", "registration": "document.registration.requested"}
        event, part = events.get(aspect, "document.understanding.requested"), aspect if aspect in PARTS else None
        ticket = next(
            t
            for t in reversed(self.written.tickets)
            if (t["event_type"], t["part"], t["extraction_epoch"]) == (event, part, 2)
        )
        return self._travels(ticket, unnamed=unnamed, stalled=stalled)

    def _running(self, axis: Axis, purpose: str, *, gone: str, missing: str, stalled: str) -> str:
        run = next((run for run in self.written.runs if run["purpose"] == purpose), None)
        if run is None or axis.run_mark != "named" or run["state"] in ("superseded", "undispatched"):
            return self._young(gone)
        if run["state"] == "pending":
            return {"running": "healthy:with_agent", "overdue": "healthy:settling:run_lapsed", "lapsed": "run_lapsed"}[
                axis.run
            ]
        letter = next((t for t in reversed(self.written.tickets) if t["run_id"] == run["run_id"]), None)
        if letter is None:
            return self._young(missing)
        return self._travels(letter, unnamed=not axis.letter_mark, stalled=stalled)

    def _travels(self, ticket: dict[str, Any], *, unnamed: bool, stalled: str) -> str:  # noqa: PLR0911 - the same
        life = ticket["life"]
        if life == "received_retained" and self._lost(ticket):
            return f"healthy:settling:{stalled}"  # not before its hold is over: somebody is at work on it
        if life == "parked":
            return self._young("ticket_parked")
        if life == "handled":
            return self._young(stalled)
        if life == "dead":
            return "ticket_dead_lettered"
        if life != "undispatched" and self._lost(ticket):
            return stalled
        if unnamed:
            return self._young("mark_missing")
        if life == "undispatched":
            return "healthy:undispatched"
        return "healthy:held" if ticket["first_received_at"] else "healthy:waiting"

    def _lost(self, ticket: dict[str, Any]) -> bool:
        if self.kind == "stalled":
            return False
        if ticket["dispatched_at"] < self.now - RETENTION:
            return True
        if ticket["first_received_at"]:
            return bool(ticket["hold_until"] + VISIBILITY < self.now)
        hour = self.now - timedelta(hours=1)
        return self.kind in ("emptied", "overtaken") and ticket["dispatched_at"] < hour and not self._blocked(ticket)

    def _blocked(self, ticket: dict[str, Any]) -> bool:
        ingest = ticket["event_type"] == "document.ingest.requested"
        return any(
            (each["event_type"] == "document.ingest.requested") == ingest
            and each["id"] < ticket["id"]
            and each["dispatched_at"] is not None
            and each["dispatched_at"] >= self.now - RETENTION
            and each["handled_at"] is None
            and each["life"] != "dead"
            for each in self.written.tickets
        )
