"""How long each disagreement may stand before it counts; a deployment may say otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from baton.reconcilers.classification import DISCREPANCIES
from baton.settings.errors import SettingsError


def graces(overrides: Mapping[str, timedelta] | None = None) -> Mapping[str, timedelta]:
    """The grace of each discrepancy by name.

    :raises SettingsError: an override names no discrepancy.
    """
    given = overrides or {}
    unknown = sorted(given.keys() - DISCREPANCIES.keys())
    if unknown:
        known = ", ".join(sorted(DISCREPANCIES))
        raise SettingsError(
            [f"BATON_RECONCILE_GRACES: there is no discrepancy {each}; there are {known}" for each in unknown]
        )
    return {name: given.get(name, each.grace) for name, each in DISCREPANCIES.items()}


def parameters(values: Mapping[str, timedelta]) -> Mapping[str, timedelta]:
    """The values of :func:`baton.reconcilers.situation.grace`."""
    return {f"grace_{name}": value for name, value in values.items()}
