"""The kinds that the chart's neighbours bring: those of the Prometheus operator and of KEDA, out of their Go modules."""

from pathlib import Path

from support.gotools import module_folder
from support.parts import without

#: Module, version, and where in it the definitions are.
_NEIGHBOURS = (
    (
        "github.com/prometheus-operator/prometheus-operator",
        "0.90.1",
        "example/prometheus-operator-crd",
        ("servicemonitors", "podmonitors", "prometheusrules"),
    ),
    ("github.com/kedacore/keda/v2", "2.19.0", "config/crd/bases", ("scaledobjects", "triggerauthentications")),
)


def definitions() -> list[Path]:
    """A file for each kind; without Go the running test is skipped."""
    files: list[Path] = []
    for module, version, folder, kinds in _NEIGHBOURS:
        source = module_folder(module, version)
        if source is None:
            without("needs Go, to fetch the definitions of the neighbours")
        files += [each for kind in kinds for each in sorted((source / folder).glob(f"*_{kind}.yaml"))]
    assert len(files) == 5
    return files
