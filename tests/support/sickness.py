"""As many documents as are wanted of each discrepancy, beside whatever is there."""

from uuid import UUID

from sqlalchemy import text

from baton.db import clock
from support.databases import Database
from support.situations import Axis, Combination, PartOf, Writer, write

_READY = dict.fromkeys(("card", "sections", "brief"), PartOf("ready"))


#: A situation of each that an index shows; a lane's consumers being alive, and no queue seen empty.
OF_EACH = {
    "upload_abandoned": Combination(processing="pending", has_pass=False),
    "ingest_ticket_missing": Combination(processing="uploaded", has_pass=False, ingest_mark=False),
    "ingest_stalled": Combination(processing="uploaded", has_pass=False, ingest="released"),
    "request_missing": Combination(),
    "request_ticket_missing": Combination(status="queued", axis=Axis(ticket_mark=False)),
    "request_stalled": Combination(status="queued", axis=Axis(ticket="released")),
    "run_missing": Combination(status="registering", axis=Axis(run_mark="empty")),
    "run_lapsed": Combination(status="registering", axis=Axis(run="lapsed")),
    "artifact_unopened": Combination(status="registering", axis=Axis(run="delivered", letter_mark=False)),
    "apply_stalled": Combination(status="registering", axis=Axis(run="delivered", letter="released")),
    "failure_retryable": Combination(status="registration_failed", axis=Axis(next_attempt="now")),
    "pass_superseded": Combination(status="registered", status_pass="other"),
    "fan_out_missing": Combination(status="registered", understood=False, parts=_READY),
    "ticket_parked": Combination(status="queued", axis=Axis(ticket="parked")),
    "ticket_dead_lettered": Combination(status="queued", axis=Axis(ticket="dead")),
    "understanding_stalled": Combination(
        status="registered", parts={**_READY, "brief": PartOf("requested", Axis(ticket="released"))}
    ),
    "mark_missing": Combination(status="queued", axis=Axis(ticket="waiting", ticket_mark=False)),
    "deleted_in_flight": Combination(deleted=True, status="registering", axis=Axis(run="lapsed")),
}


def sicken(database: Database, count: int, *names: str) -> UUID:
    """Write ``count`` documents of each, or of those that are named; returns their firm."""
    with database.preparer.begin() as connection:
        now = clock.now(connection)
        taken = connection.execute(text("SELECT max(id) FROM ops.document_ingest_outbox")).scalar_one()
        writer = Writer(now)
        writer.begin_after(taken or 0)
        write(connection, writer, [OF_EACH[name] for name in names or OF_EACH for _ in range(count)])
    return writer.firm
