"""What a resource left in a database that was deleted while no operator ran: its ownership, and what it held back.

A name alone proves nothing: another cluster may have a resource of the same name on the same database. So the database
remembers which installation, known by the uid of its Lease, wrote as which resource; and only what this very installation
wrote is taken back, once the API server itself says that the resource is not there.
"""

from __future__ import annotations

import re
from typing import Final

from sqlalchemy import Connection

from baton.operator.api import Api, ApiMissing
from baton.operator.vocabulary import Plural
from baton.reconcilers import owner, windows
from baton.reconcilers.memory import Shared

_NAME: Final = "owners"
_MOST: Final = 20
_RESOURCE: Final = re.compile(r"([^/ ]+)/([^/ ]+) ([^ ]+)")
_memory: Final = Shared()


def remember(connection: Connection, resource: str, *, installation: str) -> None:
    """Write down that this installation works here as ``resource``."""
    known = _known(connection)
    if known.pop(resource, None) == installation:
        return
    kept = dict(list(known.items())[-_MOST + 1 :])
    _memory.keep(connection, _NAME, {**kept, resource: installation})


def suspects(connection: Connection, *, besides: str, installation: str) -> list[str]:
    """Resources that this installation wrote as, and that may be gone."""
    return [each for each, whose in _known(connection).items() if whose == installation and each != besides]


def is_gone(api: Api, resource: str) -> bool:
    """Whether the API server says that there is no such resource.

    :raises ApiError: it does not say.
    """
    parts = _RESOURCE.fullmatch(resource)
    if parts is None:
        return False
    try:
        found = api.resource(Plural.RECONCILERS, parts[1], parts[2])
    except ApiMissing:
        return True
    return bool(found["metadata"]["uid"] != parts[3])


def lay(connection: Connection, resource: str) -> None:
    """Take back what it left."""
    windows.declare(connection, (), set_by=resource)
    owner.release(connection, resource)
    known = _known(connection)
    if known.pop(resource, None) is not None:
        _memory.keep(connection, _NAME, known)


def _known(connection: Connection) -> dict[str, str]:
    found = _memory.recall(connection, _NAME) or {}
    return {str(name): str(whose) for name, whose in found.items()}
