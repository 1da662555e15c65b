"""``baton resegment``."""

from __future__ import annotations

from uuid import UUID

import click
from uuid_utils.compat import uuid7

from baton.cli.decisions import decide
from baton.cli.desks import FIRM, JSON, documents_argument
from baton.documents.doors import resegment


@click.command("resegment")
@documents_argument
@click.option(
    "--request-id",
    type=click.UUID,
    help="Of this request, for one document: repeated with the same id, it is asked once.",
)
@FIRM
@JSON
def command(*, documents: tuple[UUID, ...], request_id: UUID | None, firm: str | None, as_json: bool) -> int:
    r"""Ask for the sections of registered documents anew; those that stand are shown until the new ones come.

    \b
    Example:
        baton resegment 0198c0de-0000-7000-8000-000000000001
    """
    if request_id is not None and len(set(documents)) > 1:
        raise click.UsageError("--request-id is of one request: name one document")
    return decide(
        documents,
        lambda connection, document, actor: resegment(
            connection, document_id=document, request_id=request_id or uuid7(), actor=actor
        ),
        firm=firm,
        done="sections asked for",
        as_json=as_json,
    )
