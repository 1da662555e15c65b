"""What a resource's passes stand on in the database."""

import threading
from datetime import datetime
from typing import cast

import pytest

from baton.db.access import Role
from baton.db.connect import read_connection
from baton.operator.api import Api
from baton.operator.credentials import Credentials
from baton.operator.specs import Wanted
from baton.operator.standing import Standing
from baton.settings.loading import load
from baton.settings.secret import Secret
from support.aws_accounts import AwsAccount
from support.databases import Database


@pytest.mark.parametrize(("mode", "role"), [("Repair", Role.RECONCILER), ("Observe", Role.OBSERVER)])
def test_what_a_pass_has_prepared_serves_the_next(database: Database, aws: AwsAccount, mode: str, role: Role) -> None:
    """Nobody who works on its connections, or around it, ends in a rollback: at one the driver forgets all of it."""
    metadata = {"namespace": "n", "name": "r", "uid": "u", "resourceVersion": "1", "generation": 1}
    ambient = load(aws.environ)
    standing = Standing(
        Wanted.of({"metadata": metadata, "spec": {"mode": mode, "bucket": "papers"}}),
        Credentials(database=Secret(database.direct_url(role)), aws=ambient.aws),
        ambient=ambient,
        api=cast("Api", None),  # nobody is asked: no other resource has left anything
        installation="here",
        beat=lambda: None,
    )
    try:
        standing.levels(standing.make_pass(threading.Event()))  # the first sees first whether the database is fit
        before = _prepared(standing)
        standing.levels(standing.make_pass(threading.Event()))
        assert before
        assert before <= _prepared(standing)
    finally:
        standing.close()


def _prepared(standing: Standing) -> set[tuple[str, datetime]]:
    """On its only connection by now: each with the moment at which it was prepared."""
    with read_connection(standing._engine) as connection:
        rows = connection.exec_driver_sql("SELECT name, prepare_time FROM pg_prepared_statements")
        return {(row.name, row.prepare_time) for row in rows}
