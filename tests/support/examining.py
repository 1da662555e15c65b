"""What the doctor finds, asked for as an operator asks."""

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from sqlalchemy import text

from support.operators import Operator


def alive(operator: Operator, *queues: str, version: str = "0.1.0", seconds_ago: float = 0.0) -> None:
    """Somebody polls these queues; all of them where none is named."""
    with operator.database.preparer.begin() as connection:
        for queue in queues or ("ingest", "registrar", "results"):
            connection.execute(
                text(
                    "INSERT INTO ops.consumer_heartbeat (consumer_id, queue, version, polled_at) VALUES"
                    " (:id, :queue, :version, app.clock() - make_interval(secs => :ago))"
                ),
                {"id": uuid4(), "queue": queue, "version": version, "ago": seconds_ago},
            )


def prepare(operator: Operator, *statements: str) -> None:
    """Change something as the superuser."""
    with operator.database.preparer.begin() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)


def findings_of(operator: Operator, *, level: str = "fault", check: str | None = None) -> Sequence[Any]:
    """The findings of a level."""
    findings = operator.run("doctor", "--json").json["findings"]
    return [each for each in findings if each["level"] == level and check in (None, each["check"])]
