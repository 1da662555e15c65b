"""What a resource's passes stand on in the database."""

import threading
from typing import cast

import pytest
from sqlalchemy import event

from baton.db.access import Role
from baton.operator.api import Api
from baton.operator.credentials import Credentials
from baton.operator.specs import Wanted
from baton.operator.standing import Standing
from baton.settings.loading import load
from baton.settings.secret import Secret
from support.aws_accounts import AwsAccount
from support.databases import Database


@pytest.mark.parametrize(("mode", "role"), [("Repair", Role.RECONCILER), ("Observe", Role.OBSERVER)])
def test_whatever_a_pass_reads_it_commits(database: Database, aws: AwsAccount, mode: str, role: Role) -> None:
    """And so does whoever reads around it, on its connections: at a rollback the driver forgets all that was prepared."""
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
    undone: list[object] = []
    try:
        standing.levels(standing.make_pass(threading.Event()))  # the first sees first whether the database is fit
        event.listen(standing._engine, "rollback", undone.append)
        standing.levels(standing.make_pass(threading.Event()))
    finally:
        standing.close()
    assert undone == []
