"""Builds Helm, where it is not kept and there is Go: ``python -m support.charts.helm``."""

import sys

from support.charts.rendering import HELM
from support.gotools import built, kept


def main() -> None:
    """Build it, or say what goes without it."""
    if not kept("helm", HELM).exists():
        sys.stderr.write(f"building helm {HELM}, once; it takes minutes\n")
    flags = (f"-X helm.sh/helm/v4/internal/version.version=v{HELM}",)
    if built("helm", HELM, package="helm.sh/helm/v4/cmd/helm", flags=flags) is None:
        sys.stderr.write("no Go here to build helm: tests of the chart are skipped\n")


if __name__ == "__main__":
    main()
