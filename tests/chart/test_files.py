"""The chart's own files: what it repeats is the same, what is generated is current, and its values are all described."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from baton.settings.fields import declared
from baton.settings.model import concerns
from baton.telemetry import instruments, metrics
from support.charts import dashboard
from support.charts.generate import alert_names, generated, settable
from support.charts.places import ALERTS, CHART, COPIES, REPOSITORY, SCHEMA, ci_files
from support.charts.values import values

pytestmark = pytest.mark.check

VALUES = values()
GENERATED = generated()
ROOT: dict[str, Any] = json.loads(SCHEMA.read_text(encoding="utf-8"))


@pytest.mark.parametrize("copy", COPIES, ids=lambda path: path.name)
def test_what_the_chart_ships_is_what_the_repository_holds(copy: Path) -> None:
    """Definitions and rights byte for byte; `make generated` copies them."""
    assert copy.read_bytes() == COPIES[copy].read_bytes()


@pytest.mark.parametrize("path", GENERATED, ids=lambda path: path.name)
def test_what_is_generated_is_current(path: Path) -> None:
    """`make generated` would change nothing."""
    assert path.read_text(encoding="utf-8") == GENERATED[path]


def test_every_value_is_described() -> None:
    """By a comment of its own, or by that of the same value in `defaults`."""
    described = {each.path for each in VALUES if each.comment}
    bare = [
        each.path
        for each in VALUES
        if not each.block and each.path not in described and f"defaults.{each.path.partition('.')[2]}" not in described
    ]
    assert bare == []


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema with what it refers to."""
    name = schema.get("$ref", "").rpartition("/")[2]
    found: dict[str, Any] = ROOT["$defs"][name] if name else schema
    return found


def test_every_value_stands_in_the_schema_and_the_other_way_round() -> None:
    """Whoever adds a value says what it may be, and whoever takes one away takes its schema away."""

    def places(schema: dict[str, Any], prefix: str = "") -> set[str]:
        found = set()
        for name, inner in schema.get("properties", {}).items():
            found |= {prefix + name} | places(resolved(inner), f"{prefix}{name}.")
        return found

    known = places(ROOT)
    assert {each.path for each in VALUES} - known == set()
    own = {f"{name}." for name in ("operator", "ingestRelay", "registrarRelay", "extractor", "registrar", "settler")}
    there = {each.path for each in VALUES}
    leaves = {
        path
        for path in known
        if not path.startswith((*own, "referenceAgent."))
        and not any(path.startswith(f"{each.path}.") for each in VALUES if not each.block)
    }
    assert leaves - there - {"global"} == set()


def test_no_object_of_the_schema_lets_a_typo_through() -> None:
    """Each that names its values takes no others."""

    def open_ones(schema: Any, path: str) -> list[str]:
        if not isinstance(schema, dict):
            return []
        found = (
            [path]
            if "properties" in schema
            and schema.get("type") == "object"
            and schema.get("additionalProperties") is not False
            else []
        )
        for name, inner in schema.items():
            if name not in ("if", "then"):
                found += open_ones(inner, f"{path}/{name}")
        return found

    assert open_ones(ROOT, "") == []


def test_every_variable_that_the_templates_set_is_a_setting() -> None:
    """A variable that no program reads would be a promise that nobody keeps."""
    known = {each.variable for concern in concerns().values() for each in declared(concern).values()}
    text = "".join(each.read_text(encoding="utf-8") for each in sorted((CHART / "templates").rglob("*.*")))
    text += "".join(each.read_text(encoding="utf-8") for each in ci_files())
    named = set(re.findall(r"\b(?:BATON|AWS|OTEL)_[A-Z0-9_]+[A-Z0-9]\b", text)) | {"DATABASE_URL"}
    assert named - known == set()
    assert set(settable()) <= known


def test_every_metric_that_an_alert_names_is_there() -> None:
    """With labels that it carries."""
    known = {each.name: each for each in instruments.declared()}
    assert metrics.LAST_PASS.name in known
    rules = [rule for group in yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["groups"] for rule in group["rules"]]
    for rule in rules:
        named = re.findall(r"(pramaan_\w+)\{([^}]*)\}", rule["expr"])
        assert len(named) == len(re.findall("pramaan_", rule["expr"])), f"{rule['alert']}: a metric of every namespace"
        for name, matchers in named:
            assert name in known, f"{rule['alert']}: {name}"
            labels = dict(re.findall(r"(\w+)[=!]~?\"([^\"]*)\"", matchers))
            assert labels.pop("namespace") == "NAMESPACE"
            for label, wanted in labels.items():
                allowed = {str(value) for value in known[name].labels[label]}
                assert set(wanted.split("|")) <= allowed, f"{rule['alert']}: {label}={wanted}"


def test_an_alert_speaks_of_labels_that_it_has() -> None:
    """What Prometheus does not know it leaves blank, and nobody would notice the gap."""
    for group in yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["groups"]:
        for rule in group["rules"]:
            kept = set(re.findall(r"\w+", " ".join(re.findall(r"by \(([^)]*)\)", rule["expr"]))))
            if rule["expr"].startswith("absent("):
                kept = {"namespace"}
            told = set(re.findall(r"\$labels\.(\w+)", " ".join(rule["annotations"].values())))
            assert told <= kept, rule["alert"]


def test_every_alert_says_what_it_is_and_where_to_read_on() -> None:
    """Severity, summary, description with a number or a name, and a runbook of its own that exists."""
    for group in yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["groups"]:
        for rule in group["rules"]:
            name = rule["alert"]
            assert rule["labels"]["severity"] in {"warning", "critical"}, name
            assert rule["for"], name
            assert rule["annotations"]["summary"].endswith("."), name
            assert "{{ $labels.namespace }}" in rule["annotations"]["description"] or "absent(" in rule["expr"], name
            assert rule["annotations"]["runbook_url"] == f"RUNBOOKS/{name}.md"


def test_every_alert_has_its_runbook_and_the_other_way_round() -> None:
    """One page each, in the same order of headings."""
    pages = {each.stem: each for each in (REPOSITORY / "docs" / "runbooks").glob("Baton*.md")}
    assert set(pages) == set(alert_names())
    for name, page in pages.items():
        heads = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
        assert heads == [name, "What it means", "What users feel", "Look here", "Do this", "It is over when"], name


def test_every_panel_asks_for_metrics_that_are_there() -> None:
    """Of the chosen namespace, and with what it means written beside it."""
    known = {each.name for each in instruments.declared()}
    for panel in dashboard.panels():
        assert panel.meaning.endswith("."), panel.title
        for query in panel.queries:
            named = re.findall(r"(pramaan_\w+?)(?:_bucket)?\{namespace=\"\$namespace\"", query.expression)
            assert named, panel.title
            assert set(named) <= known
