"""``baton retry``."""

from __future__ import annotations

from uuid import UUID

import click

from baton.cli.decisions import decide
from baton.cli.desks import FIRM, JSON, documents_argument
from baton.documents.doors import retry_registration


@click.command("retry")
@documents_argument
@FIRM
@JSON
def command(*, documents: tuple[UUID, ...], firm: str | None, as_json: bool) -> int:
    r"""Register documents again whose registration failed or waits for a person.

    It is a person's decision: nothing does this by itself for a document that a person must look at. A file that could
    not be read is read again by 'baton reextract'.

    \b
    Example:
        baton retry 0198c0de-0000-7000-8000-000000000001
    """
    return decide(
        documents,
        lambda connection, document, actor: retry_registration(connection, document_id=document, actor=actor),
        firm=firm,
        done="to be registered again",
        as_json=as_json,
    )
