"""Who asks, and whether they may: the API server decides both, anew for each question.

Nothing is remembered: a right that is taken away is gone with the next question, and there is no store of tokens. What
cannot be decided is refused. A token is in no log line and no error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from baton.operator.api import Api, ApiAway, ApiError
from baton.operator.reading.paths import Asked
from baton.operator.reading.refusals import Forbidden, Unauthenticated, Unavailable
from baton.operator.vocabulary import AUDIENCE
from baton.settings.secret import Secret

#: RFC 6750's form. Longer ones are no token of an API server.
_BEARER: Final = re.compile(r"[Bb]earer +([A-Za-z0-9._~+/-]+=*)", re.ASCII)
_LONGEST: Final = 16_384
#: For this API alone, or for the API server: the second is what a kubeconfig holds.
_AUDIENCES: Final[tuple[tuple[str, ...], ...]] = ((AUDIENCE,), ())
_NOBODY: Final = "Unauthorized"


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody whom the API server knows."""

    user: str
    uid: str | None
    groups: tuple[str, ...]
    extra: Mapping[str, Any]


def token_of(authorization: str | None) -> Secret:
    """The token of an ``Authorization`` header.

    :raises Unauthenticated: there is none.
    """
    found = None if authorization is None or len(authorization) > _LONGEST else _BEARER.fullmatch(authorization)
    if found is None:
        raise Unauthenticated(_NOBODY, "a bearer token is needed")
    return Secret(found[1])


def authenticated(api: Api, token: Secret) -> Caller:
    """Ask the API server whose token it is.

    :raises Unauthenticated: it knows nobody by it.
    :raises Unavailable: it could not be asked.
    """
    for audiences in _AUDIENCES:
        status = _answered(lambda wanted=audiences: api.review_token(token, audiences=wanted))
        if status.get("authenticated") is not True:
            continue
        # an API server that does not look at audiences does not repeat them
        if audiences and not set(audiences) & set(status.get("audiences") or ()):
            continue
        user = status.get("user") or {}
        if not isinstance(user, dict) or not user.get("username"):
            continue
        return Caller(
            str(user["username"]), user.get("uid"), tuple(user.get("groups") or ()), dict(user.get("extra") or {})
        )
    raise Unauthenticated(_NOBODY, "the API server does not know this token, or no longer")


def authorize(api: Api, caller: Caller, asked: Asked) -> None:
    """Go on only if the caller may ``get`` the subresource that the question is about.

    :raises Forbidden: they may not.
    :raises Unavailable: the API server could not be asked.
    """
    status = _answered(
        lambda: api.review_access(
            asked.namespace,
            name=asked.name,
            subresource=asked.view.value,
            user={
                "user": caller.user,
                "groups": list(caller.groups),
                "extra": dict(caller.extra),
                **({} if caller.uid is None else {"uid": caller.uid}),
            },
        )
    )
    if status.get("allowed") is not True or status.get("denied") is True:
        raise Forbidden("Forbidden", f"needs the right to get registrationreconcilers/{asked.view} here")


def _answered(ask: Any) -> Mapping[str, Any]:
    try:
        status = ask().get("status")
    except ApiAway:
        raise Unavailable("ApiServerAway", "the API server could not be asked who may ask this") from None
    except ApiError:
        raise Unavailable(
            "ReviewsNotAllowed",
            "the operator may not ask the API server who may ask this: see operator/rbac-reading.yaml",
        ) from None
    return status if isinstance(status, dict) else {}
