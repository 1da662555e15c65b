"""A matter for each test."""

import pytest
from uuid_utils.compat import uuid7

from support.databases import Database
from support.matters import Matter


@pytest.fixture
def matter(database: Database) -> Matter:
    """A matter of a firm of its own."""
    return Matter(database, uuid7(), uuid7())
