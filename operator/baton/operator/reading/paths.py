"""What a path asks for. A path is matched whole; whatever does not match is not looked into any further."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final
from uuid import UUID

_NAME: Final = r"[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?"
_LABEL: Final = r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?"
_UUID: Final = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_PATH: Final = re.compile(
    rf"/v1/namespaces/(?P<namespace>{_LABEL})/registrationreconcilers/(?P<name>{_NAME})"
    rf"/(?:(?P<view>status|plan|report)|explain/(?P<document>{_UUID}))",
    re.ASCII,
)


class View(StrEnum):
    """What may be looked at; each is a subresource of its own in a Role."""

    STATUS = "status"
    PLAN = "plan"
    REPORT = "report"
    EXPLAIN = "explain"


@dataclass(frozen=True, slots=True)
class Asked:
    """One question."""

    view: View
    namespace: str
    name: str
    document: UUID | None = None


def asked(path: str) -> Asked | None:
    """Read a path that has been decoded; ``None``: it is none of ours.

    Who may ask is decided by what was read here, so that it does not matter how the path was written.
    """
    found = _PATH.fullmatch(path)
    if found is None:
        return None
    document = found["document"]
    view = View.EXPLAIN if found["view"] is None else View(found["view"])
    return Asked(view, found["namespace"], found["name"], None if document is None else UUID(document))
