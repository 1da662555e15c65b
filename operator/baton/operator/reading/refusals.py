"""How a question is turned away.

Refused
├── Unauthenticated    401: no token, or none that the API server knows
├── Forbidden          403: known, and not allowed
├── Missing            404: no such path, resource or document
├── Unfit              409: somebody has to do something first: a secret, a grant
├── Unavailable        503: cannot be said now; ask again later
└── Broken             500: a fault of Baton's own

The words are for whoever asks. Nothing of what they sent is in them.
"""

from __future__ import annotations

from http import HTTPStatus


class Refused(Exception):
    """A question that is not answered."""

    status = HTTPStatus.INTERNAL_SERVER_ERROR

    def __init__(self, reason: str, message: str) -> None:
        """:param reason: one word for programs."""
        super().__init__(message)
        self.reason = reason


class Unauthenticated(Refused):
    """Nobody knows who asks."""

    status = HTTPStatus.UNAUTHORIZED


class Forbidden(Refused):
    """Whoever asks may not."""

    status = HTTPStatus.FORBIDDEN


class Missing(Refused):
    """There is no such thing."""

    status = HTTPStatus.NOT_FOUND


class Unfit(Refused):
    """Somebody has to do something first."""

    status = HTTPStatus.CONFLICT


class Unavailable(Refused):
    """It cannot be said now."""

    status = HTTPStatus.SERVICE_UNAVAILABLE


class Broken(Refused):
    """A fault of Baton's own."""
