"""``baton migrate``."""

from __future__ import annotations

import click
from sqlalchemy.exc import OperationalError

from baton.cli.failures import CommandFailed
from baton.db.errors import MigrationFailed
from baton.db.migrate import migrate
from baton.db.revisions import head
from baton.settings.exits import Exit
from baton.settings.loading import load


@click.command("migrate")
@click.option("--revision", default="head", show_default=True, help="Version to bring the database to.")
def command(revision: str) -> int:
    r"""Bring the database to the version that this program needs; safe to run again.

    \b
    DATABASE_URL is of an administrator: a superuser, or a role that may create roles and owns the
    database. One migrator works at a time, a second one waits.

    \b
    Example:
        DATABASE_URL=postgresql://postgres@db/baton baton migrate
    """
    settings = load(required=("DATABASE_URL",))
    url = settings.database.url
    if url is not None:
        click.echo(f"this program needs version {head()}", err=True)
        try:
            migrate(url.reveal(), revision=revision, progress=lambda line: click.echo(line, err=True))
        except MigrationFailed as failed:
            cause = failed.__cause__
            # Without a code of the server's it was the connection: the same as for every other command.
            if isinstance(cause, OperationalError) and getattr(cause.orig, "sqlstate", None) is None:
                raise CommandFailed(str(failed), code=Exit.UNAVAILABLE) from failed
            raise
    return Exit.OK
