"""The alerts, by promtool: each fires when it should, stays quiet when it should, and where its metric is not there at all."""

import re
import shutil
import subprocess
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.charts import dashboard
from support.charts.generate import alert_names, alerts
from support.charts.places import ALERTS
from support.parts import needs

pytestmark = [pytest.mark.chart, needs("promtool")]

RESOURCE = 'exported_namespace="law",name="default"'


@dataclass(frozen=True)
class Case:
    """Series, and when the alert is to be asked after."""

    series: dict[str, str]
    at: str
    labels: dict[str, str] = field(default_factory=dict)
    """Those of the alert that fires, beside severity and namespace."""
    step: int = 1
    """Minutes between two values, and between two looks."""


def level(metric: str, value: float, minutes: int, **labels: str) -> dict[str, str]:
    """A level that stays."""
    told = ",".join([f'{name}="{word}"' for name, word in labels.items()])
    return {f'{metric}{{namespace="NAMESPACE"{"," if told else ""}{told}}}': f"{value:g}x{minutes}"}


def grows(metric: str, by: float, minutes: int, **labels: str) -> dict[str, str]:
    """A counter that grows by so much a minute."""
    ((series, _),) = level(metric, 0, minutes, **labels).items()
    return {series: f"0+{by:g}x{minutes}"}


LAW = {"exported_namespace": "law", "name": "default"}
RUNS = "pramaan_agent_runs_settled_total"

FIRES: dict[str, Case] = {
    "BatonDocumentsStuck": Case(
        level("pramaan_reconcile_discrepancy_oldest_seconds", 4000, 60, discrepancy="run_lapsed", **LAW),
        "30m",
        {"discrepancy": "run_lapsed", **LAW},
    ),
    "BatonRegisteringTooLong": Case(level("pramaan_documents_registering_oldest_seconds", 7300, 60, **LAW), "30m", LAW),
    "BatonStateImpossible": Case(
        level("pramaan_reconcile_discrepancies", 2, 60, discrepancy="state_impossible", **LAW), "5m", LAW
    ),
    "BatonRelayLagging": Case(
        level("pramaan_document_ingest_relay_lag_seconds", 301, 60, lane="ingest"), "10m", {"lane": "ingest"}
    ),
    "BatonRelayStalled": Case(
        level("pramaan_document_ingest_relay_stalled", 1, 60, lane="ingest", pod="a")
        | level("pramaan_document_ingest_relay_stalled", 1, 60, lane="ingest", pod="b"),
        "5m",
        {"lane": "ingest"},
    ),
    "BatonTicketsParked": Case(
        level("pramaan_document_ingest_outbox_parked", 3, 60, lane="registrar", **LAW),
        "20m",
        {"lane": "registrar", **LAW},
    ),
    "BatonLaneStalled": Case(
        level("pramaan_lane_stalled", 1, 60, lane="ingest", **LAW), "10m", {"lane": "ingest", **LAW}
    ),
    "BatonDeadLetters": Case(
        level("pramaan_dead_letters", 1, 60, queue="results", **LAW), "15m", {"queue": "results", **LAW}
    ),
    "BatonRunDeadlinesMissed": Case(grows(RUNS, 0.2, 90, state="expired", settler="sweeper"), "60m"),
    "BatonRunsFailing": Case(
        grows(RUNS, 1, 120, state="rejected", settler="results")
        | grows(RUNS, 2, 120, state="delivered", settler="results"),
        "90m",
    ),
    "BatonBreakerOpen": Case(level("pramaan_agent_breaker_state", 1, 60, state="open", **LAW), "10m", LAW),
    "BatonOperatorAbsent": Case(level("pramaan_lane_stalled", 0, 60), "15m"),
    "BatonResourceNotReady": Case(level("pramaan_operator_resource_ready", 0, 60, **LAW), "15m", LAW),
    # promtool's clock begins at 0
    "BatonReconcilerNotPassing": Case(
        level("pramaan_reconcile_last_pass_timestamp_seconds", 60, 60, **LAW), "40m", LAW
    ),
    "BatonScrubOverdue": Case(
        level("pramaan_reconcile_last_scrub_timestamp_seconds", 60, 160, **LAW), "4500m", LAW, step=30
    ),
    "BatonRepairsHeld": Case(level("pramaan_reconcile_repairs_held", 1, 30, **LAW), "810m", LAW, step=30),
    "BatonMigrationPending": Case(level("pramaan_database_migration_pending", 1, 60, pod="a"), "15m"),
}

#: For each at least what is closest to firing.
QUIET: dict[str, list[Case]] = {
    "BatonDocumentsStuck": [
        Case(level("pramaan_reconcile_discrepancy_oldest_seconds", 3500, 60, discrepancy="run_lapsed", **LAW), "30m"),
        Case(
            level("pramaan_reconcile_discrepancy_oldest_seconds", 4000, 60, discrepancy="state_impossible", **LAW),
            "30m",
        ),
    ],
    "BatonRegisteringTooLong": [Case(level("pramaan_documents_registering_oldest_seconds", 7100, 60, **LAW), "30m")],
    "BatonStateImpossible": [
        Case(level("pramaan_reconcile_discrepancies", 9, 60, discrepancy="run_lapsed", **LAW), "30m")
    ],
    "BatonRelayLagging": [Case(level("pramaan_document_ingest_relay_lag_seconds", 299, 60, lane="ingest"), "30m")],
    # one of two that fails is made up for by the other
    "BatonRelayStalled": [
        Case(
            level("pramaan_document_ingest_relay_stalled", 1, 60, lane="ingest", pod="a")
            | level("pramaan_document_ingest_relay_stalled", 0, 60, lane="ingest", pod="b"),
            "30m",
        )
    ],
    "BatonTicketsParked": [Case(level("pramaan_document_ingest_outbox_parked", 0, 60, lane="ingest", **LAW), "30m")],
    "BatonLaneStalled": [Case(level("pramaan_lane_stalled", 0, 60, lane="ingest", **LAW), "30m")],
    "BatonDeadLetters": [Case(level("pramaan_dead_letters", 0, 60, queue="results", **LAW), "30m")],
    "BatonRunDeadlinesMissed": [
        Case(grows(RUNS, 0.05, 90, state="expired", settler="sweeper"), "60m"),
        Case(grows(RUNS, 9, 90, state="delivered", settler="results"), "60m"),
    ],
    "BatonRunsFailing": [
        # a tenth fails
        Case(grows(RUNS, 1, 120, state="rejected") | grows(RUNS, 9, 120, state="delivered"), "90m"),
        # it was bad, and is over: the short window is clean
        Case(
            {f'{RUNS}{{namespace="NAMESPACE",state="rejected"}}': "0+2x80 160x40"}
            | grows(RUNS, 2, 120, state="delivered"),
            "100m",
        ),
        # all fail, and they are a handful
        Case(grows(RUNS, 0.1, 120, state="rejected"), "90m"),
    ],
    "BatonBreakerOpen": [
        Case(
            level("pramaan_agent_breaker_state", 0, 60, state="open", **LAW)
            | level("pramaan_agent_breaker_state", 1, 60, state="trial", **LAW),
            "30m",
        )
    ],
    "BatonOperatorAbsent": [Case(grows("pramaan_reconcile_passes_total", 1, 60, outcome="done"), "30m")],
    "BatonResourceNotReady": [Case(level("pramaan_operator_resource_ready", 1, 60, **LAW), "30m")],
    "BatonReconcilerNotPassing": [
        Case({f'pramaan_reconcile_last_pass_timestamp_seconds{{namespace="NAMESPACE",{RESOURCE}}}': "0+60x60"}, "45m"),
        # a replica that worked before shows what it saw then; the one that works now passes
        Case(
            {f'pramaan_reconcile_last_pass_timestamp_seconds{{namespace="NAMESPACE",pod="b",{RESOURCE}}}': "0+60x60"}
            | level("pramaan_reconcile_last_pass_timestamp_seconds", 60, 60, pod="a", **LAW),
            "45m",
        ),
    ],
    "BatonScrubOverdue": [
        Case(level("pramaan_reconcile_last_scrub_timestamp_seconds", 0, 160, **LAW), "4500m", step=30),
        Case(
            {f'pramaan_reconcile_last_scrub_timestamp_seconds{{namespace="NAMESPACE",{RESOURCE}}}': "0+60x5000"},
            "4500m",
        ),
    ],
    "BatonRepairsHeld": [Case(level("pramaan_reconcile_repairs_held", 1, 30, **LAW), "600m", step=30)],
    "BatonMigrationPending": [Case(level("pramaan_database_migration_pending", 0, 60, pod="a"), "30m")],
}

#: Fires where its metric is absent, for that is what it says.
OF_ABSENCE = {"BatonOperatorAbsent"}
RULES = {rule["alert"]: rule for rule in alerts()}


def promtool(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run it."""
    program = shutil.which("promtool") or "promtool"
    return subprocess.run((program, *arguments), cwd=folder, capture_output=True, text=True, timeout=60, check=False)


def fault(folder: Path, tests: list[dict[str, Any]], *, step: int = 1) -> str | None:
    """What promtool says against the tests, or None.

    :param step: minutes between two looks.
    """
    shutil.copy(ALERTS, folder / "alerts.yaml")
    text = {"rule_files": ["alerts.yaml"], "evaluation_interval": f"{step}m", "tests": tests}
    (folder / "tests.yaml").write_text(yaml.safe_dump(text), encoding="utf-8")
    done = promtool("test", "rules", "tests.yaml", folder=folder)
    return None if done.returncode == 0 else done.stdout + done.stderr


def asked(name: str, case: Case, wanted: list[dict[str, Any]]) -> dict[str, Any]:
    """One test of promtool's."""
    return {
        "interval": f"{case.step}m",
        "input_series": [{"series": series, "values": values} for series, values in case.series.items()],
        "alert_rule_test": [{"eval_time": case.at, "alertname": name, "exp_alerts": wanted}],
    }


def firing(folder: Path, name: str, case: Case) -> list[dict[str, Any]]:
    """The alerts of that name that fire, with labels and texts, read out of promtool's complaint."""
    told = fault(folder, [asked(name, case, [{"exp_labels": {"nothing": "such"}}])], step=case.step)
    assert told is not None
    got = told.partition("got:")[2]
    return [
        {
            "labels": dict(re.findall(r'(\w+)="([^"]*)"', found[0])),
            "texts": dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', found[1])),
        }
        for found in re.findall(r"Labels:\{(.*?)\}\s+Annotations:\{(.*?)\}", got, re.DOTALL)
    ]


def test_the_rules_are_rules(tmp_path: Path) -> None:
    """By promtool's own check, linting included."""
    done = promtool("check", "rules", "--lint=all", "--lint-fatal", str(ALERTS), folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_panels_of_the_dashboard_are_questions(tmp_path: Path) -> None:
    """Each in Prometheus' own language, once Grafana has put in what is chosen."""
    asked_for = [query.expression for panel in dashboard.panels() for query in panel.queries]
    rules = [
        {
            "record": f"panel:{number}",
            "expr": each.replace("$__rate_interval", "5m").replace("$__range", "6h").replace("$namespace", "baton"),
        }
        for number, each in enumerate(asked_for)
    ]
    text = yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]})
    (tmp_path / "panels.yaml").write_text(text, encoding="utf-8")
    done = promtool("check", "rules", "panels.yaml", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(rules) > 20


def test_every_alert_is_tried() -> None:
    """Firing and not firing."""
    assert list(FIRES) == alert_names()
    assert list(QUIET) == alert_names()


@pytest.mark.parametrize("name", alert_names())
def test_it_fires_and_says_what_it_is(tmp_path: Path, name: str) -> None:
    """With its labels, and with every placeholder of its texts filled in."""
    (found,) = firing(tmp_path, name, FIRES[name])
    severity = RULES[name]["labels"]["severity"]
    assert found["labels"] == {"alertname": name, "namespace": "NAMESPACE", "severity": severity, **FIRES[name].labels}
    assert found["texts"].keys() == {"summary", "description", "runbook_url"}
    for text in found["texts"].values():
        assert text
        assert "{{" not in text
        assert "<no value>" not in text
        assert "NaN" not in text


@pytest.mark.parametrize("name", alert_names())
def test_it_stays_quiet_short_of_it(tmp_path: Path, name: str) -> None:
    """Where the value is just below, another series is bad, or it is over."""
    cases = QUIET[name]
    assert fault(tmp_path, [asked(name, case, []) for case in cases], step=cases[0].step) is None


@pytest.mark.parametrize("name", alert_names())
def test_it_does_not_fire_before_its_time(tmp_path: Path, name: str) -> None:
    """A moment is no trouble: it is pending first."""
    case, length = FIRES[name], RULES[name]["for"]
    minutes = {"m": 1, "h": 60}[length[-1]] * int(length[:-1])
    early = replace(case, at=f"{max(minutes - case.step, 0)}m")
    assert fault(tmp_path, [asked(name, early, [])], step=case.step) is None


def test_where_no_metric_is_there_only_the_absence_is_told(tmp_path: Path) -> None:
    """Neither a start nor a Prometheus that sees nothing wakes anybody for documents."""
    nothing = Case({"up": "1x30"}, "810m", step=30)
    quiet = [asked(name, nothing, []) for name in alert_names() if name not in OF_ABSENCE]
    assert fault(tmp_path, quiet, step=30) is None
    for name in OF_ABSENCE:
        assert len(firing(tmp_path, name, nothing)) == 1


def test_another_namespaces_troubles_are_its_own(tmp_path: Path) -> None:
    """Two releases do not tell each other's alerts."""

    def elsewhere(case: Case) -> Case:
        inside = {
            name.replace('namespace="NAMESPACE"', 'namespace="other"'): each for name, each in case.series.items()
        }
        return replace(case, series=inside)

    for step in (1, 30):
        names = [name for name, case in FIRES.items() if case.step == step and name not in OF_ABSENCE]
        assert fault(tmp_path, [asked(name, elsewhere(FIRES[name]), []) for name in names], step=step) is None
