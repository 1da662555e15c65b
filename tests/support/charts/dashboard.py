"""The dashboard: one page of Grafana that says whether anything is stuck, since when, why, whether it heals, what it costs.

Panels name metrics by their instruments, so that none can be asked for that is not there.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from baton.telemetry import metrics
from baton.telemetry.instruments import Histogram, Instrument

_SOURCE = {"type": "prometheus", "uid": "${source}"}
_GRID = 24


@dataclass(frozen=True)
class Query:
    """One question to Prometheus, and what its lines are called."""

    expression: str
    legend: str = ""


@dataclass(frozen=True)
class Panel:
    """One panel of a row."""

    title: str
    meaning: str
    queries: tuple[Query, ...]
    unit: str = "short"
    kind: str = "timeseries"
    width: int = 8
    alarm: float | None = None
    """The value from which it is red; ``None``: never."""
    words: tuple[tuple[str, str], ...] = ()
    """What 0 and 1 are called."""


def level(instrument: Instrument, *by: str, where: str = "") -> str:
    """The highest level over the pods."""
    return f"max by ({', '.join(by)}) ({selected(instrument, where)})" if by else f"max({selected(instrument, where)})"


def rate(instrument: Instrument, *by: str, where: str = "") -> str:
    """Events a second, over the pods."""
    inner = f"rate({selected(instrument, where)}[$__rate_interval])"
    return f"sum by ({', '.join(by)}) ({inner})" if by else f"sum({inner})"


def grown(instrument: Instrument, *by: str, where: str = "") -> str:
    """Events within the time shown."""
    inner = f"increase({selected(instrument, where)}[$__range])"
    return f"sum by ({', '.join(by)}) ({inner})" if by else f"sum({inner})"


def quantile(instrument: Histogram, share: float, *by: str) -> str:
    """A quantile over the pods."""
    groups = ", ".join(("le", *by))
    return (
        f"histogram_quantile({share}, sum by ({groups}) (rate({instrument.name}_bucket{_scope()}[$__rate_interval])))"
    )


def since(instrument: Instrument) -> str:
    """Seconds since a moment."""
    return f"time() - ({level(instrument)} > 0)"


def selected(instrument: Instrument, where: str = "") -> str:
    """An instrument's series of the namespace."""
    return f"{instrument.name}{_scope(where)}"


def _scope(where: str = "") -> str:
    return "{" + ",".join(filter(None, ('namespace="$namespace"', where))) + "}"


ROWS: tuple[tuple[str, tuple[Panel, ...]], ...] = (
    (
        "Is anything stuck?",
        (
            Panel(
                "Disagreements",
                "Aspects of documents that disagree with the outcome they should have.",
                (Query(f"sum({level(metrics.DISCREPANCIES, 'discrepancy')})"),),
                kind="stat",
                width=4,
                alarm=1,
            ),
            Panel(
                "The oldest",
                "For how long the oldest of them has stood.",
                (Query(level(metrics.DISCREPANCY_OLDEST)),),
                unit="s",
                kind="stat",
                width=4,
                alarm=3600,
            ),
            Panel(
                "Impossible states",
                "Documents in a state that no rule leads to; nobody touches them.",
                (Query(level(metrics.DISCREPANCIES, where='discrepancy="state_impossible"')),),
                kind="stat",
                width=4,
                alarm=1,
            ),
            Panel(
                "Last pass",
                "How long ago a whole pass ended.",
                (Query(since(metrics.LAST_PASS)),),
                unit="s",
                kind="stat",
                width=4,
                alarm=900,
            ),
            Panel(
                "Breaker",
                "Whether agent runs are held back.",
                (Query(level(metrics.BREAKER_OPEN)),),
                kind="stat",
                width=4,
                alarm=1,
                words=(("0", "closed"), ("1", "open")),
            ),
            Panel(
                "Repairs",
                "Whether a suspension or a window holds them back.",
                (Query(level(metrics.REPAIRS_HELD)),),
                kind="stat",
                width=4,
                alarm=1,
                words=(("0", "go on"), ("1", "held")),
            ),
        ),
    ),
    (
        "Since when, and why",
        (
            Panel(
                "Disagreements, by kind",
                "What the last whole pass found.",
                (Query(f"{level(metrics.DISCREPANCIES, 'discrepancy')} > 0", "{{discrepancy}}"),),
            ),
            Panel(
                "Age of the oldest, by kind",
                "What grows here is not being healed.",
                (Query(f"{level(metrics.DISCREPANCY_OLDEST, 'discrepancy')} > 0", "{{discrepancy}}"),),
                unit="s",
            ),
            Panel(
                "Documents under way",
                "By registration status; counts above 10,000 are shown as 10,001.",
                (Query(level(metrics.DOCUMENTS, "status", where='status=~"queued|registering"'), "{{status}}"),),
            ),
            Panel(
                "Outbox lag",
                "Age of the oldest ticket that should have been sent.",
                (Query(level(metrics.RELAY_LAG, "lane"), "{{lane}}"),),
                unit="s",
            ),
            Panel(
                "Tickets sent and not handled",
                "By lane; what nobody consumes grows.",
                (Query(level(metrics.LANE_OPEN, "lane"), "{{lane}}"),),
            ),
            Panel(
                "Parked tickets and dead letters",
                "What needs a person.",
                (
                    Query(level(metrics.TICKETS_PARKED, "lane"), "parked, {{lane}}"),
                    Query(level(metrics.DEAD_LETTERS, "queue"), "dead letters, {{queue}}"),
                ),
            ),
        ),
    ),
    (
        "Is it being healed?",
        (
            Panel(
                "Repairs",
                "By discrepancy and result, a second.",
                (Query(f"{rate(metrics.REPAIRS, 'discrepancy', 'result')} > 0", "{{discrepancy}}, {{result}}"),),
                unit="ops",
            ),
            Panel(
                "Repairs held back",
                "By what holds them, a second.",
                (Query(f"{rate(metrics.REPAIRS_REFUSED, 'guard')} > 0", "{{guard}}"),),
                unit="ops",
            ),
            Panel(
                "Length of a pass",
                "The median and the longest twentieth.",
                (
                    Query(quantile(metrics.PASS_DURATION, 0.5), "median"),
                    Query(quantile(metrics.PASS_DURATION, 0.95), "95 %"),
                ),
                unit="s",
            ),
        ),
    ),
    (
        "The way of a document",
        (
            Panel(
                "Documents read",
                "By verdict, a second.",
                (Query(rate(metrics.EXTRACTIONS, "verdict"), "{{verdict}}"),),
                unit="ops",
            ),
            Panel(
                "Messages let go of",
                "By queue and outcome, a second.",
                (Query(f"{rate(metrics.CONSUMER_HANDLED, 'queue', 'outcome')} > 0", "{{queue}}, {{outcome}}"),),
                unit="ops",
            ),
            Panel(
                "Wait in the outbox",
                "From being due to being sent, the longest twentieth.",
                (Query(quantile(metrics.RELAY_WAIT, 0.95, "lane"), "{{lane}}"),),
                unit="s",
            ),
        ),
    ),
    (
        "What does it cost?",
        (
            Panel(
                "Agent runs within the time shown",
                "How they ended: each was paid for.",
                (Query(f"{grown(metrics.RUNS_SETTLED, 'state')} > 0", "{{state}}"),),
                kind="bargauge",
            ),
            Panel(
                "Agent runs",
                "By how they ended, a second.",
                (Query(f"{rate(metrics.RUNS_SETTLED, 'state')} > 0", "{{state}}"),),
                unit="ops",
            ),
            Panel(
                "Length of a run",
                "The median and the longest twentieth.",
                (
                    Query(quantile(metrics.RUN_DURATION, 0.5), "median"),
                    Query(quantile(metrics.RUN_DURATION, 0.95), "95 %"),
                ),
                unit="s",
            ),
        ),
    ),
)


def dashboard() -> dict[str, Any]:
    """The dashboard as Grafana imports it."""
    return {
        "uid": "baton",
        "title": "Baton",
        "description": "Is anything stuck, since when, why, is it being healed, what does it cost?",
        "tags": ["baton"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {
            "list": [
                {"name": "source", "type": "datasource", "query": "prometheus", "label": "Prometheus"},
                {
                    "name": "namespace",
                    "type": "query",
                    "label": "Namespace",
                    "datasource": _SOURCE,
                    "query": f"label_values({metrics.PASSES.name}, namespace)",
                    "refresh": 2,
                },
            ]
        },
        "panels": list(_panels()),
    }


def panels() -> list[Panel]:
    """Every panel."""
    return [panel for _, row in ROWS for panel in row]


def _panels() -> Iterator[dict[str, Any]]:
    number, top = 0, 0
    for title, row in ROWS:
        number += 1
        yield {"id": number, "type": "row", "title": title, "gridPos": {"x": 0, "y": top, "w": _GRID, "h": 1}}
        left, top = 0, top + 1
        height = 4 if all(panel.kind == "stat" for panel in row) else 8
        for panel in row:
            if left + panel.width > _GRID:
                left, top = 0, top + height
            number += 1
            place = {"x": left, "y": top, "w": panel.width, "h": height}
            yield {"id": number, "gridPos": place, **_panel(panel)}
            left += panel.width
        top += height


def _panel(panel: Panel) -> dict[str, Any]:
    steps: list[dict[str, Any]] = [{"color": "green", "value": None}]
    if panel.alarm is not None:
        steps.append({"color": "red", "value": panel.alarm})
    defaults: dict[str, Any] = {"unit": panel.unit, "min": 0, "thresholds": {"mode": "absolute", "steps": steps}}
    if panel.words:
        options = {value: {"text": text} for value, text in panel.words}
        defaults["mappings"] = [{"type": "value", "options": options}]
    return {
        "type": panel.kind,
        "title": panel.title,
        "description": panel.meaning,
        "datasource": _SOURCE,
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "targets": [
            {
                "refId": chr(ord("A") + index),
                "expr": query.expression,
                "legendFormat": query.legend,
                "datasource": _SOURCE,
            }
            for index, query in enumerate(panel.queries)
        ],
    }
