"""What a resource's passes stand on in the database."""

import threading
from typing import cast

import pytest

from baton.db.access import Role
from baton.db.connect import read_transaction
from baton.operator.api import Api
from baton.operator.credentials import Credentials
from baton.operator.specs import Wanted
from baton.operator.standing import Standing
from baton.reconcilers.results import Mode
from baton.settings.loading import load
from baton.settings.secret import Secret
from support.aws_accounts import AwsAccount
from support.databases import Database


@pytest.mark.parametrize(("mode", "role"), [(Mode.REPAIR, Role.RECONCILER), (Mode.OBSERVE, Role.OBSERVER)])
def test_what_passes_ask_stays_prepared_from_one_to_the_next(
    database: Database, aws: AwsAccount, mode: Mode, role: Role
) -> None:
    """Whatever is read around a pass on its connection: what is not committed takes what was prepared with it."""
    metadata = {"namespace": "n", "name": "r", "uid": "u", "resourceVersion": "1", "generation": 1}
    ambient = load(aws.environ)
    standing = Standing(
        Wanted.of({"metadata": metadata, "spec": {"mode": mode.value, "bucket": "papers"}}),
        Credentials(database=Secret(database.direct_url(role)), aws=ambient.aws),
        ambient=ambient,
        api=cast("Api", None),  # nobody is asked: no other resource has left anything
        installation="here",
        beat=lambda: None,
    )
    known = []
    try:
        for _ in range(3):
            standing.levels(standing.make_pass(threading.Event()))
            with read_transaction(standing._engine) as connection:
                known.append(set(connection.exec_driver_sql("SELECT name, statement FROM pg_prepared_statements")))
    finally:
        standing.close()
    assert known[1]
    assert known[1] == known[2]
