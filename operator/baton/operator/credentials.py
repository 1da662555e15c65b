"""Secrets by reference: of the resource's own namespace, with the label that allows it, read anew for each use.

What is wrong with one is said by the names of secret and key. No value is in any message, log line or status.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from sqlalchemy.engine import make_url

from baton.operator.api import Api, ApiMissing, ApiRefused
from baton.operator.specs import Wanted
from baton.operator.vocabulary import USE_LABEL, Reason
from baton.settings import parsers
from baton.settings.secret import Secret
from baton.settings.stores import Aws

_DATABASE_KEY: Final = "DATABASE_URL"


class SecretRefused(Exception):
    """A secret cannot be used."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a loop logs in with; shows only stars."""

    database: Secret
    aws: Aws

    def same_database(self, other: Credentials) -> bool:
        """Whether both lead to one database, whoever logs in there."""
        mine, theirs = (make_url(each.database.reveal()) for each in (self, other))
        return (mine.host, mine.port, mine.database) == (theirs.host, theirs.port, theirs.database)


def read(api: Api, wanted: Wanted, *, ambient: Aws) -> Credentials:
    """Read what the spec refers to.

    :param ambient: how AWS is reached where the spec names no secret.
    :raises SecretRefused: a secret is missing, not allowed, or not what it should be.
    :raises ApiAway: the API server does not answer.
    """
    return Credentials(database(api, wanted), _aws(api, wanted, ambient))


def database(api: Api, wanted: Wanted) -> Secret:
    """Read the database's URL alone.

    :raises SecretRefused: the secret is missing, not allowed, or not what it should be.
    :raises ApiAway: the API server does not answer.
    """
    told = (wanted.spec.get("database") or {}).get("secretRef") or {}
    name, key = str(told.get("name", "")), str(told.get("key", _DATABASE_KEY))
    found: Secret = _parsed(_values(api, wanted.key.namespace, name), name, key, parsers.postgres_url)
    return found


def _aws(api: Api, wanted: Wanted, ambient: Aws) -> Aws:
    told = wanted.spec.get("aws") or {}
    found = ambient if told.get("region") is None else replace(ambient, region=str(told["region"]))
    if not told.get("secretRef"):
        return found
    name = str(told["secretRef"].get("name", ""))
    values = _values(api, wanted.key.namespace, name)
    return replace(
        found,
        access_key_id=_parsed(values, name, "AWS_ACCESS_KEY_ID", parsers.text),
        secret_access_key=_parsed(values, name, "AWS_SECRET_ACCESS_KEY", parsers.secret),
        session_token=_optional(values, name, "AWS_SESSION_TOKEN", parsers.secret),
        sqs_endpoint=_optional(values, name, "AWS_ENDPOINT_URL_SQS", parsers.http_url),
        s3_endpoint=_optional(values, name, "AWS_ENDPOINT_URL_S3", parsers.http_url),
        presign_endpoint=None,
        presign_access_key_id=None,
        presign_secret_access_key=None,
    )


def _values(api: Api, namespace: str, name: str) -> Mapping[str, str]:
    try:
        body = api.secret(namespace, name)
    except ApiMissing:
        raise SecretRefused(Reason.SECRET_MISSING, f"There is no secret {name} in this namespace.") from None
    except ApiRefused:
        raise SecretRefused(Reason.SECRET_NOT_ALLOWED, f"The operator may not read the secret {name}.") from None
    if (body["metadata"].get("labels") or {}).get(USE_LABEL) != "true":
        raise SecretRefused(Reason.SECRET_NOT_ALLOWED, f'The secret {name} lacks the label {USE_LABEL}: "true".')
    values: Mapping[str, str] = body.get("data") or {}
    return values


def _parsed(values: Mapping[str, str], name: str, key: str, parse: Any) -> Any:
    if not values.get(key):
        raise SecretRefused(Reason.SECRET_KEY_MISSING, f"The secret {name} has no key {key}.")
    try:
        return parse(base64.b64decode(values[key], validate=True).decode("utf-8").strip())
    except (binascii.Error, UnicodeDecodeError):
        raise SecretRefused(Reason.SECRET_INVALID, f"{key} in the secret {name} is no text.") from None
    except ValueError:  # its text may repeat the value
        raise SecretRefused(Reason.SECRET_INVALID, f"{key} in the secret {name} is not what it should be.") from None


def _optional(values: Mapping[str, str], name: str, key: str, parse: Any) -> Any:
    return _parsed(values, name, key, parse) if values.get(key) else None
