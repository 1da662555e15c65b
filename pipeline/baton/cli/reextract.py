"""``baton reextract``."""

from __future__ import annotations

from uuid import UUID

import click

from baton.cli.decisions import decide
from baton.cli.desks import FIRM, JSON, documents_argument
from baton.documents.doors import re_extract


@click.command("reextract")
@documents_argument
@FIRM
@JSON
def command(*, documents: tuple[UUID, ...], firm: str | None, as_json: bool) -> int:
    r"""Read documents again from their files, and register them anew.

    What ran for the earlier reading can change nothing any more; what the Record says stands until the new answer.

    \b
    Example:
        baton reextract 0198c0de-0000-7000-8000-000000000001
    """
    return decide(
        documents,
        lambda connection, document, actor: re_extract(connection, document_id=document, actor=actor),
        firm=firm,
        done="to be read again",
        as_json=as_json,
    )
