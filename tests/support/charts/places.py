"""Where the chart's files are, and what of the repository they repeat."""

from pathlib import Path

REPOSITORY = Path(__file__).parents[3]
CHART = REPOSITORY / "charts" / "baton"
VALUES = CHART / "values.yaml"
SCHEMA = CHART / "values.schema.json"
README = CHART / "README.md"
ALERTS = CHART / "files" / "alerts.yaml"
DASHBOARD = CHART / "files" / "dashboard.json"
RUNBOOKS = REPOSITORY / "docs" / "runbooks"

KINDS = sorted((REPOSITORY / "crds").glob("*.yaml"))
KINDS_PAGE = REPOSITORY / "docs" / "resources.md"

COPIES = {
    **{CHART / "files" / "rbac" / each.name: each for each in sorted((REPOSITORY / "operator").glob("rbac*.yaml"))},
    **{CHART / "files" / "crds" / each.name: each for each in KINDS},
}
"""What the chart ships as it is: its file, and the one it is a copy of."""


def ci_files() -> list[Path]:
    """The values that the chart is tried with."""
    return sorted((CHART / "ci").glob("*.yaml"))
