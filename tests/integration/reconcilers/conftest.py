"""A loop for each test."""

import pytest
from uuid_utils.compat import uuid7

from support.databases import Database
from support.matters import Matter
from support.reconciling import Loop


@pytest.fixture
def loop(database: Database) -> Loop:
    """Passes over a matter; nothing of AWS is there."""
    return Loop(Matter(database, uuid7(), uuid7()))
