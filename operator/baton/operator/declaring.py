"""The RegistrationReconciler that an installation asks for: made when the operator starts, and brought to what is asked.

It cannot be an object of the release that brings its definition: Helm asks for both kinds before it makes either. What
somebody set in it since is left as it is, and one that was deleted comes back with the next start alone.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Self

from baton.consumers.backoff import Backoff, Failures
from baton.operator.api import Api, ApiConflict, ApiError
from baton.operator.vocabulary import Plural
from baton.settings.errors import SettingsError
from baton.telemetry import fields

_log = logging.getLogger(__name__)

_VARIABLE: Final = "BATON_OPERATOR_DEFAULT_RECONCILER"
_MANAGER: Final = "baton-operator-default"
#: Seconds; the longest wait before it is tried again, and between two beats.
_WAIT: Final = 20.0


@dataclass(frozen=True, slots=True)
class Declared:
    """The resource as it was asked for."""

    name: str
    spec: dict[str, Any]

    @classmethod
    def of(cls, text: str) -> Self:
        """Read it.

        :raises SettingsError: it is no JSON object with a name and a spec, and nothing else.
        """
        try:
            told = json.loads(text)
        except ValueError:
            told = None
        if not isinstance(told, dict) or told.keys() != {"name", "spec"}:
            raise SettingsError([f"{_VARIABLE}: is no JSON object with name and spec"])
        name, spec = told["name"], told["spec"]
        if not isinstance(name, str) or not name or not isinstance(spec, dict):
            raise SettingsError([f"{_VARIABLE}: its name is a word, and its spec an object"])
        return cls(name, spec)


def declare(declared: Declared, *, api: Api, namespace: str, stop: threading.Event, beat: Callable[[], None]) -> None:
    """Have the resource be as it was asked for, then do nothing more until ``stop`` is set."""
    failures = Failures(Backoff(initial=1.0, maximum=_WAIT))
    said = fields.of(namespace=namespace, name=declared.name)
    done = False
    while not stop.is_set():
        beat()
        if not done:
            done = _tried(declared, api=api, namespace=namespace, said=said)
        stop.wait(_WAIT if done else failures.failed())


def _tried(declared: Declared, *, api: Api, namespace: str, said: dict[str, Any]) -> bool:
    try:
        api.apply(
            Plural.RECONCILERS,
            namespace,
            declared.name,
            kind="RegistrationReconciler",
            spec=declared.spec,
            manager=_MANAGER,
        )
    except ApiConflict:
        _log.warning("somebody set other values of the default resource, and they stay", extra=said)
        return True
    except ApiError as error:  # the kind is not served yet, say, or the right is missing
        _log.warning("the default resource could not be made", exc_info=error, extra=said)
        return False
    _log.info("the default resource is as it was asked for", extra=said)
    return True
