"""The chart as Helm makes objects of it."""

import json
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from support.charts.places import CHART
from support.gotools import kept
from support.parts import without

HELM = "4.3.1"
NAMESPACE = "baton-system"

Object = dict[str, Any]


class Refused(Exception):
    """Helm would not render; the message is its own."""


@dataclass(frozen=True)
class Helm:
    """The program."""

    program: Path

    def __call__(self, *arguments: str, given: str | None = None, within: float = 60) -> str:
        """What it prints.

        :param within: seconds that it may take.
        :raises Refused: it ended otherwise than with 0.
        """
        done = subprocess.run(
            (str(self.program), *arguments), input=given, capture_output=True, text=True, timeout=within, check=False
        )
        if done.returncode != 0:
            raise Refused(done.stderr)
        return done.stdout

    def render(
        self,
        *files: Path,
        values: Mapping[str, Any] | None = None,
        release: str = "baton",
        version: str = "1.37.0",
        options: Iterable[str] = (),
    ) -> list[Object]:
        """The objects of a release, hooks and tests included.

        :param values: on top of the files.
        :param version: of the Kubernetes that is meant.
        """
        chosen = [f"--values={file}" for file in files]
        given = json.dumps(values or {})
        told = self(
            "template",
            release,
            str(CHART),
            f"--namespace={NAMESPACE}",
            f"--kube-version={version}",
            *chosen,
            "--values=-",
            *options,
            given=given,
        )
        return [each for each in yaml.load_all(told, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)) if each]


def helm() -> Helm:
    """Helm, as ``python -m support.charts.helm`` built it: that takes longer than any test may."""
    program = kept("helm", HELM)
    if not program.exists():
        without("needs helm, which make chart builds where there is Go")
    return Helm(program)


def of_kind(objects: Iterable[Object], *kinds: str) -> list[Object]:
    """Those of these kinds."""
    return [each for each in objects if each["kind"] in kinds]


def named(objects: Iterable[Object], kind: str, name: str) -> Object:
    """The one of this kind and name."""
    (found,) = (each for each in objects if each["kind"] == kind and each["metadata"]["name"] == name)
    return found


def pods(objects: Iterable[Object]) -> dict[str, Object]:
    """Every pod's spec by the name of what makes it."""
    found = {}
    for each in objects:
        if each["kind"] in ("Deployment", "Job"):
            found[each["metadata"]["name"]] = each["spec"]["template"]["spec"]
        elif each["kind"] == "Pod":
            found[each["metadata"]["name"]] = each["spec"]
    return found


def variables(pod: Object) -> dict[str, Any]:
    """The variables of its one container: a value, or where it comes from."""
    (container,) = pod["containers"]
    return {each["name"]: each.get("value", each.get("valueFrom")) for each in container["env"]}
