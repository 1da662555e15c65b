"""From the environment to ``Settings``: every fault at once, never just the first."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from baton.settings import checks
from baton.settings.errors import SettingsError
from baton.settings.fields import Setting, declared
from baton.settings.model import Settings, concerns
from baton.settings.secret import Secret

_SERVICE_LINK: Final = re.compile(r"_(SERVICE_HOST|SERVICE_PORT|PORT)(_|$)")


def load(
    environ: Mapping[str, str] | None = None,
    *,
    required: Collection[str] = (),
    unless_set: Mapping[str, str] | None = None,
) -> Settings:
    """Read, convert and cross-check the settings.

    Args:
        environ: the variables; ``None`` takes the environment of this process. A variable that is
            set to nothing (or blanks) counts as not set.
        required: variables that this program cannot do without, though they have no default.
        unless_set: values of this program's own in the place of defaults.

    Raises:
        SettingsError: with one line for every variable that is wrong or missing.
    """
    source = os.environ if environ is None else environ
    if unless_set is not None:
        source = {**unless_set, **{name: value for name, value in source.items() if value.strip()}}
    faults: list[str] = []
    made: dict[str, Any] = {}
    for name, concern in concerns().items():
        made[name] = concern(**_values(concern, source, faults))
    known = {each.variable: each for each in every_setting()}
    for variable in required:
        if variable not in known:
            raise KeyError(variable)
        if not source.get(variable, "").strip():
            faults.append(f"{variable}: not set; {_lower_first(known[variable].meaning)}")
    settings = Settings(**made)
    if not faults:  # a cross-check on a default that stands in for a wrong value would mislead
        faults.extend(checks.faults(settings))
    if faults:
        raise SettingsError(faults)
    return settings


def near_misses(environ: Mapping[str, str] | None = None) -> tuple[tuple[str, str], ...]:
    """Variables that look like a misspelt setting, each with the name it resembles.

    They are no faults: a release that was rolled back may find a setting of its successor, and
    Kubernetes adds variables of its own for every Service.
    """
    source = os.environ if environ is None else environ
    known = {each.variable for each in every_setting()}
    found = []
    for name in sorted(source):
        if not name.startswith("BATON_") or name in known or _SERVICE_LINK.search(name):
            continue
        match = difflib.get_close_matches(name, known, n=1, cutoff=0.85)
        if match:
            found.append((name, match[0]))
    return tuple(found)


def environment(settings: Settings) -> dict[str, str]:
    """The variables that make ``load`` give these settings again; secrets are in the clear.

    For starting child processes. What stands at its default is left out.
    """
    written: dict[str, str] = {}
    for name, concern in concerns().items():
        values = getattr(settings, name)
        for field, each in declared(concern).items():
            value = getattr(values, field)
            if value != each.default and value is not None:
                written[each.variable] = _written(value)
    return written


def every_setting() -> Iterator[Setting]:
    """Every variable that Baton reads, concern by concern."""
    for concern in concerns().values():
        yield from declared(concern).values()


def _values(concern: type[object], source: Mapping[str, str], faults: list[str]) -> dict[str, object]:
    values: dict[str, object] = {}
    for field, each in declared(concern).items():
        raw = source.get(each.variable, "").strip()
        if not raw:
            continue
        try:
            values[field] = each.parse(raw)
        except ValueError as fault:
            faults.append(f"{each.variable}: {fault}")
    return values


def _written(value: object) -> str:
    if isinstance(value, Secret):
        return value.reveal()
    if isinstance(value, tuple):
        return ",".join(f"{name}={seconds}" for name, seconds in value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _lower_first(sentence: str) -> str:
    head, rest = sentence[:2], sentence[2:]
    return (head if head.isupper() else head.lower()) + rest.rstrip(".")
