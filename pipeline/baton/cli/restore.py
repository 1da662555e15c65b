"""``baton restore``."""

from __future__ import annotations

from uuid import UUID

import click

from baton.cli.decisions import decide
from baton.cli.desks import FIRM, JSON, documents_argument
from baton.documents.doors import restore


@click.command("restore")
@documents_argument
@FIRM
@JSON
def command(*, documents: tuple[UUID, ...], firm: str | None, as_json: bool) -> int:
    r"""Bring deleted documents back, and ask for whatever they are missing.

    \b
    Example:
        baton restore 0198c0de-0000-7000-8000-000000000001
    """
    return decide(
        documents,
        lambda connection, document, actor: restore(connection, document_id=document, actor=actor),
        firm=firm,
        done="restored",
        as_json=as_json,
    )
