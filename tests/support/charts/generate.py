"""Writes what is generated of the chart: ``python -m support.charts.generate``."""

import json
import re
from pathlib import Path
from typing import Any

import yaml

from baton.settings.fields import declared
from baton.settings.model import concerns
from baton.settings.reference import rewritten
from support.charts.dashboard import dashboard
from support.charts.kinds import kinds_page
from support.charts.places import ALERTS, COPIES, DASHBOARD, KINDS_PAGE, README, RUNBOOKS, SCHEMA
from support.charts.values import shown, values

#: Variables that the chart itself sets, or that are nobody's to set in a pod.
_OWN = re.compile(
    "DATABASE_URL|BATON_DATABASE_DIRECT_URL|AWS_.*|BATON_(INGEST|REGISTRAR|RESULTS)_QUEUE|BATON_CREATE_QUEUES|BATON_BUCKET"
    "|BATON_HEALTH_.*|BATON_AGENT_(URL|TOKEN)|BATON_REFERENCE_AGENT_(HOST|PORT)|BATON_OPERATOR_(LEASE|DEFAULT_RECONCILER|CLUSTER_WIDE|READING_PORT)"
    "|BATON_PRESIGN_ENDPOINT_URL|OTEL_SERVICE_NAME|KUBE.*|BATON_FIRM|BATON_ACTOR"
)


def settable() -> list[str]:
    """The variables that `settings` of the values may name: no secrets, and none that other values are for."""
    return sorted(
        each.variable
        for concern in concerns().values()
        for each in declared(concern).values()
        if not each.secret and not _OWN.fullmatch(each.variable)
    )


def alerts() -> list[dict[str, Any]]:
    """The alerting rules, in their order."""
    groups = yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def alert_names() -> list[str]:
    """The alerts, in their order."""
    return [rule["alert"] for rule in alerts()]


def alert_table() -> str:
    """A line for each alert."""
    lines = []
    for rule in alerts():
        short = re.sub(r"\{\{ \$labels\.(\w+) \}\}", r"*\1*", rule["annotations"]["summary"])
        lines.append(f"| [{rule['alert']}]({rule['alert']}.md) | {rule['labels']['severity']} | {short} |\n")
    return "".join(lines)


def schema() -> str:
    """The schema of the values, with its closed lists."""
    found = json.loads(SCHEMA.read_text(encoding="utf-8"))
    found["$defs"]["settings"]["propertyNames"]["enum"] = settable()
    rules = found["properties"]["metrics"]["properties"]["rules"]["properties"]
    rules["disabled"]["items"]["enum"] = alert_names()
    return json.dumps(found, indent=2, ensure_ascii=False) + "\n"


def tables() -> str:
    """Every value with its default and its meaning, a table for each top-level block."""
    parts: list[str] = []
    open_table = ""
    for each in values():
        top = each.path.partition(".")[0]
        if each.block and "." not in each.path:
            parts.append(f"\n### `{top}`\n\n" + (f"{each.comment}\n\n" if each.comment else ""))
        elif not each.block and "." not in each.path and open_table != "general":
            parts.append("\n### General\n\n" if not parts else "\n")
        wanted = top if "." in each.path else ("general" if not each.block else top)
        if wanted != open_table:
            parts.append("| value | default | meaning |\n|---|---|---|\n")
            open_table = wanted
        if not each.block:
            meaning = each.comment or f"As in `defaults.{each.path.partition('.')[2]}`."
            parts.append(f"| `{each.path}` | {shown(each.default)} | {meaning} |\n")
        elif "." in each.path and each.comment:
            parts.append(f"| `{each.path}` |  | {each.comment} |\n")
    return "".join(parts).lstrip("\n")


def generated() -> dict[Path, str]:
    """Every generated file with what it should hold."""
    return {
        **{copy: original.read_text(encoding="utf-8") for copy, original in COPIES.items()},
        SCHEMA: schema(),
        KINDS_PAGE: kinds_page(),
        DASHBOARD: json.dumps(dashboard(), indent=2, ensure_ascii=False) + "\n",
        README: rewritten(README.read_text(encoding="utf-8"), block="values", body=f"\n{tables()}\n"),
        RUNBOOKS / "README.md": rewritten(
            (RUNBOOKS / "README.md").read_text(encoding="utf-8"),
            block="alerts",
            body="\n| alert | severity | in short |\n|---|---|---|\n" + alert_table() + "\n",
        ),
    }


def main() -> None:
    """Write them."""
    for path, text in generated().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
