"""The resources' definitions agree with the code, and every field is described and bounded."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from baton.db.states import FailureKind, ProcessingStatus, RegistrationStatus
from baton.operator import vocabulary
from baton.operator.specs import Wanted
from baton.operator.vocabulary import ConditionType, Plural, Reason
from baton.reconcilers.aspects import Aspect
from baton.reconcilers.classification import DISCREPANCIES
from baton.settings.model import Settings
from baton.settings.secret import Secret
from baton.settings.stores import Database

REPOSITORY = Path(__file__).parents[3]
CRDS = REPOSITORY / "crds"
URL = Secret("postgresql+psycopg://baton_reconciler@db/baton")


def definition(plural: Plural) -> Any:
    """One definition."""
    return yaml.safe_load((CRDS / f"{plural.value}.yaml").read_text(encoding="utf-8"))


def schema(plural: Plural) -> Any:
    """The schema of its version."""
    (version,) = definition(plural)["spec"]["versions"]
    assert version["name"] == vocabulary.VERSION
    return version["schema"]["openAPIV3Schema"]


def fields(part: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every field below a part of a schema."""
    for name, field in part.get("properties", {}).items():
        yield f"{path}.{name}", field
        yield from fields(field, f"{path}.{name}")
    if "items" in part:
        yield f"{path}[]", part["items"]
        yield from fields(part["items"], f"{path}[]")


def defaulted(part: Any, value: Any) -> Any:
    """The value as the API server completes it."""
    if not isinstance(value, dict):
        return value
    made = dict(value)
    for name, field in part.get("properties", {}).items():
        if name not in made and "default" in field:
            made[name] = field["default"]
        if name in made:
            made[name] = defaulted(field, made[name])
    return made


def wanted(spec: dict[str, Any]) -> Wanted:
    """A resource with the spec, completed."""
    metadata = {"namespace": "legal", "name": "main", "uid": "u", "generation": 3, "resourceVersion": "7"}
    return Wanted.of({"metadata": metadata, "spec": defaulted(schema(Plural.RECONCILERS)["properties"]["spec"], spec)})


def enum(plural: Plural, *path: str) -> list[str]:
    """The words of a closed set."""
    part = schema(plural)["properties"]["spec"]
    for step in path:
        part = part["items"] if step == "[]" else part["properties"][step]
    found: list[str] = part["enum"]
    return found


@pytest.mark.parametrize("plural", Plural)
def test_every_field_is_described(plural: Plural) -> None:
    """`kubectl explain` has a sentence for each; items of a list are described by their list."""
    silent = [
        path
        for path, field in fields(schema(plural))
        if not path.endswith("[]") and path != ".metadata" and not field.get("description", "").strip().endswith(".")
    ]
    assert silent == []


@pytest.mark.parametrize("plural", Plural)
def test_every_list_string_and_number_is_bounded(plural: Plural) -> None:
    """Rules are refused for their cost where what they look at has no bound, and a status must stay small."""
    needed = {"string": ("maxLength", "enum"), "array": ("maxItems",), "integer": ("minimum",)}
    loose = [
        path
        for path, field in fields(schema(plural))
        if path not in (".apiVersion", ".kind")
        and not any(each in field for each in needed.get(field["type"], ("type",)))
    ]
    assert loose == []


@pytest.mark.parametrize("plural", Plural)
def test_every_list_says_how_it_is_merged(plural: Plural) -> None:
    """Two managers of one resource do not overwrite each other's entries unseen."""
    assert [p for p, f in fields(schema(plural)) if f["type"] == "array" and "x-kubernetes-list-type" not in f] == []


@pytest.mark.parametrize("plural", Plural)
def test_names_are_those_of_the_code(plural: Plural) -> None:
    """Group, plural, category, status of its own; a namespace around it."""
    spec = definition(plural)["spec"]
    assert definition(plural)["metadata"]["name"] == f"{plural}.{vocabulary.GROUP}"
    assert (spec["group"], spec["scope"], spec["names"]["plural"]) == (vocabulary.GROUP, "Namespaced", plural)
    assert spec["names"]["categories"] == ["baton"]
    assert spec["versions"][0]["subresources"] == {"status": {}}


def test_closed_sets_are_those_of_the_code() -> None:
    """A discrepancy, status, failure or aspect that the code knows can be named, and no other."""
    redrives = Plural.REDRIVES
    assert enum(Plural.RECONCILERS, "graces", "[]", "discrepancy") == sorted(DISCREPANCIES)
    assert enum(redrives, "selector", "discrepancies", "[]") == sorted(DISCREPANCIES)
    assert enum(redrives, "selector", "processing", "[]") == sorted(ProcessingStatus)
    assert enum(redrives, "selector", "registration", "[]") == sorted(RegistrationStatus)
    assert enum(redrives, "selector", "errors", "[]") == sorted(FailureKind)
    assert enum(redrives, "selector", "aspects", "[]") == sorted(Aspect)


def test_defaults_are_those_of_the_settings() -> None:
    """A resource that says nothing works as a loop without Kubernetes does by default."""
    ambient = Settings()
    made = wanted({"database": {"secretRef": {"name": "s"}}})
    settings = made.settings(database=URL, aws=ambient.aws, ambient=ambient)
    for concern in ("queues", "bucket", "runs", "breaker"):
        assert getattr(settings, concern) == getattr(ambient, concern), concern
    assert settings.database == Database(url=URL)
    named = settings.reconcile
    assert named.resource == "legal/main u"
    assert named == type(named)(resource=named.resource)
    assert made.interval == ambient.reconcile.interval


def test_bounds_of_what_a_status_holds_are_wide_enough() -> None:
    """All discrepancies and all conditions have room."""
    status = schema(Plural.RECONCILERS)["properties"]["status"]["properties"]
    assert status["discrepancies"]["maxItems"] > len(DISCREPANCIES)
    assert status["conditions"]["maxItems"] >= len(ConditionType)
    condition = status["conditions"]["items"]["properties"]
    assert max(map(len, Reason)) <= condition["reason"]["maxLength"]


@pytest.mark.check
def test_the_page_names_every_condition_and_every_failure() -> None:
    """Who meets a reason finds it on the page."""
    page = (REPOSITORY / "docs" / "operator.md").read_text(encoding="utf-8")
    failures = [each for each in Reason if each.needs_somebody]
    missing = [each for each in [*ConditionType, *failures] if f"`{each.value}`" not in page]
    assert missing == []
