"""``baton delete``."""

from __future__ import annotations

from uuid import UUID

import click

from baton.cli.decisions import decide
from baton.cli.desks import FIRM, JSON, documents_argument
from baton.documents.doors import delete


@click.command("delete")
@documents_argument
@click.option("--yes", is_flag=True, help="Do not ask.")
@FIRM
@JSON
def command(*, documents: tuple[UUID, ...], yes: bool, firm: str | None, as_json: bool) -> int:
    r"""Delete documents: they are found no more, and nothing more is done for them.

    File and history stay; 'baton restore' brings them back.

    \b
    Example:
        baton delete --yes 0198c0de-0000-7000-8000-000000000001
    """
    if not yes:
        number = len(set(documents))
        click.confirm(f"Delete {number} document{'' if number == 1 else 's'}?", abort=True, err=True)
    return decide(
        documents,
        lambda connection, document, actor: delete(connection, document_id=document, actor=actor),
        firm=firm,
        done="deleted",
        as_json=as_json,
    )
