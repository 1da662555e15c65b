"""``report``: one file for somebody who helps from afar, to be read before it is sent.

No secret, log or environment is read for it, and nothing of a document's content. What could not be read is said in its
place, for that is often the finding.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import click

from baton.operator.plugin.asking import Body, Way, ask
from baton.operator.plugin.drawing import show, show_json, tell
from baton.operator.plugin.failures import Failed
from baton.operator.plugin.kubectl import REDRIVES, Kubectl
from baton.operator.plugin.options import RECONCILER, asking, reaching
from baton.operator.vocabulary import OPERATOR_LABELS
from baton.settings.exits import Exit

_NEWEST: Final = 100
_OURS: Final = frozenset({"RegistrationReconciler", "RegistrationRedrive"})


@click.command("report")
@click.option(
    "--file", type=click.Path(path_type=Path, dir_okay=False), help="Where it is written; '-' is standard output."
)
@RECONCILER
@reaching
@asking
def report(*, file: Path | None, reconciler: str | None, kubectl: Kubectl, way: Way, as_json: bool) -> int:
    r"""Write a support bundle: resource, redrives, events, the operator's pods, its examination and plan.

    One JSON file without secrets, logs, or anything of a document's content. Needs the right to get
    registrationreconcilers/report; what you may not read is left out, and says so.

    \b
    Examples:
      kubectl baton report -n law --file report.json
    """
    resource = kubectl.reconciler(reconciler)
    made, failed = _made(kubectl, way, resource)
    if as_json or file == Path("-"):
        show_json(made)
    else:
        _write(
            file or Path(f"baton-report-{resource['metadata']['name']}-{made['made_at'].replace(':', '')}.json"), made
        )
    for name, told in failed.items():
        tell(f"kubectl baton: {name} is missing in the report: {told}")
    return Exit.FAILED if failed else Exit.OK


def _made(kubectl: Kubectl, way: Way, resource: Body) -> tuple[Body, dict[str, str]]:
    namespace = way.namespace or resource["metadata"]["namespace"]
    parts: dict[str, Callable[[], Any]] = {
        "cluster": lambda: kubectl.json("version").get("serverVersion", {}).get("gitVersion"),
        "operator": lambda: ask(kubectl, way, resource, "report"),
        "redrives": lambda: [_redrive(each) for each in kubectl.json("get", REDRIVES)["items"][-_NEWEST:]],
        "events": lambda: _events(kubectl),
        "pods": lambda: _pods(kubectl, namespace),
    }
    metadata = resource["metadata"]
    made: Body = {
        "made_at": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        "plugin": version("baton"),
        "resource": {
            **{name: metadata.get(name) for name in ("name", "namespace", "uid", "generation", "creationTimestamp")},
            "spec": resource.get("spec"),
            "status": resource.get("status"),
        },
    }
    failed: dict[str, str] = {}
    for name, read in parts.items():
        try:
            made[name] = read()
        except Failed as failure:
            failed[name] = str(failure)
            made[name] = {"missing": str(failure)}
    return made, failed


def _redrive(body: Body) -> Body:
    kept = {name: body["metadata"].get(name) for name in ("name", "uid", "creationTimestamp")}
    return {**kept, "spec": body.get("spec"), "status": body.get("status")}


def _events(kubectl: Kubectl) -> list[Body]:
    """Of our resources, the newest."""
    wanted = ("type", "reason", "message", "count", "firstTimestamp", "lastTimestamp", "eventTime")
    found = [each for each in kubectl.json("get", "events")["items"] if each["involvedObject"].get("kind") in _OURS]
    return [
        {"of": each["involvedObject"].get("name"), **{name: each.get(name) for name in wanted}}
        for each in found[-_NEWEST:]
    ]


def _pods(kubectl: Kubectl, namespace: str) -> list[Body]:
    """How the operator's pods are; nothing of their environment."""
    found = kubectl.json("get", "pods", f"--selector={OPERATOR_LABELS}", namespace=namespace)["items"]
    return [_pod(each) for each in found]


def _pod(body: Body) -> Body:
    status = body.get("status") or {}
    return {
        "name": body["metadata"]["name"],
        "phase": status.get("phase"),
        "startTime": status.get("startTime"),
        "containers": [_container(each) for each in status.get("containerStatuses") or ()],
    }


def _container(status: Body) -> Body:
    last = (status.get("lastState") or {}).get("terminated") or {}
    return {
        "image": status.get("image"),
        "ready": status.get("ready"),
        "restarts": status.get("restartCount"),
        "lastEnd": {name: last.get(name) for name in ("reason", "exitCode", "finishedAt")},
    }


def _write(file: Path, made: Body) -> None:
    """For its owner's eyes, and never over another file."""
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise Failed(f"{file}: {error.strerror}") from None
    with os.fdopen(descriptor, "w", encoding="utf-8") as out:
        json.dump(made, out, indent=2)
        out.write("\n")
    show(f"{file}: read it before you send it")
