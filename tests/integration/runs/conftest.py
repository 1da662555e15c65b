"""A desk for each test."""

import pytest
from uuid_utils.compat import uuid7

from support.aws_accounts import AwsAccount
from support.databases import Database
from support.dispatching import Desk
from support.matters import Matter


@pytest.fixture
def desk(database: Database, aws: AwsAccount) -> Desk:
    """A matter with a store, limits and helpers."""
    return Desk(Matter(database, uuid7(), uuid7()), aws)
