"""The version that a process asks for is the one that a migration brings."""

from pathlib import Path

from alembic.config import Config
from alembic.script import ScriptDirectory

import baton.db
from baton.db.revisions import head


def test_the_head_is_the_migrations_own() -> None:
    """Read from file names, it is what the migration tool finds in the files."""
    config = Config()
    config.set_main_option("script_location", str(Path(baton.db.__file__ or "").parent / "migrations"))
    assert head() == ScriptDirectory.from_config(config).get_current_head()
