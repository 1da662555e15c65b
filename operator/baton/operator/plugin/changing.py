"""``suspend``, ``resume``, ``reconcile``: changes of a RegistrationReconciler, which the operator carries out."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import uuid4

import click

from baton.operator.plugin.asking import Body
from baton.operator.plugin.drawing import plain, show, show_json
from baton.operator.plugin.kubectl import RECONCILERS, Kubectl
from baton.operator.plugin.options import RECONCILER, TIMEOUT, reaching
from baton.operator.plugin.waiting import condition, wait_until
from baton.operator.vocabulary import RECONCILE_AT
from baton.settings.exits import Exit

_SPAN: Final = re.compile(r"(?:(\d{1,4})d)?(?:(\d{1,4})h)?(?:(\d{1,6})m)?", re.ASCII)


def _until(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    """A moment with an offset, or a span from now on; as the resource says it."""
    if value is None:
        return None
    found = _SPAN.fullmatch(value)
    if found is not None and any(found.groups()):
        days, hours, minutes = (int(each or 0) for each in found.groups())
        return _written(datetime.now(UTC) + timedelta(days=days, hours=hours, minutes=minutes))
    try:
        at = datetime.fromisoformat(value)
    except ValueError:
        raise click.BadParameter("neither a span such as 2h30m nor a moment such as 2030-01-31T12:00:00Z") from None
    if at.tzinfo is None:
        raise click.BadParameter("a moment has an offset, such as Z")
    return _written(at)


def _written(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@click.command("suspend")
@click.option("--reason", required=True, help="Why; shown to whoever asks what holds repairs back.")
@click.option(
    "--until", callback=_until, metavar="TIME", help="When it ends by itself: a moment, or a span such as 2h30m."
)
@RECONCILER
@reaching
def suspend(*, reason: str, until: str | None, reconciler: str | None, kubectl: Kubectl, as_json: bool) -> int:
    r"""Hold all repairs of a database back, by whomever they are made; passes go on and report.

    Without --until it stands until 'kubectl baton resume'.

    \b
    Examples:
      kubectl baton suspend --reason "the agent is being moved" --until 2h
    """
    told = {"reason": reason, **({} if until is None else {"until": until})}
    # what a former suspension said beside it is not to stay
    found = _patched(kubectl, reconciler, {"spec": {"suspend": {"reason": None, "until": None, **told}}})
    if as_json:
        show_json(found)
    else:
        end = "until it is resumed" if until is None else f"until {until}"
        show(f"{plain(found['metadata']['name'])}: repairs are held back {end}")
    return Exit.OK


@click.command("resume")
@RECONCILER
@reaching
def resume(*, reconciler: str | None, kubectl: Kubectl, as_json: bool) -> int:
    r"""Take a suspension back. A maintenance window that is open still holds repairs back.

    \b
    Examples:
      kubectl baton resume -n law
    """
    found = _patched(kubectl, reconciler, {"spec": {"suspend": None}})
    if as_json:
        show_json(found)
    else:
        show(f"{plain(found['metadata']['name'])}: repairs are no longer suspended")
    return Exit.OK


@click.command("reconcile")
@click.option("--wait", is_flag=True, help="Until the pass has ended; tells what it found.")
@TIMEOUT
@RECONCILER
@reaching
def reconcile(*, wait: bool, timeout: float, reconciler: str | None, kubectl: Kubectl, as_json: bool) -> int:
    r"""Ask for a pass now, whatever the interval is.

    \b
    Examples:
      kubectl baton reconcile --wait
    """
    token = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}-{uuid4().hex[:8]}"
    found = _patched(kubectl, reconciler, {"metadata": {"annotations": {RECONCILE_AT: token}}})
    name = found["metadata"]["name"]
    if wait:
        found = wait_until(
            kubectl, RECONCILERS, name, holds=lambda body: _handled(body) == token, timeout=timeout, seen=found
        )
    if as_json:
        show_json(found)
    elif wait:
        show(f"{plain(name)}: a pass has ended. {plain(condition(found, 'Ready').get('message'))}")
    else:
        show(f"{plain(name)}: a pass is asked for")
    return Exit.OK


def _patched(kubectl: Kubectl, reconciler: str | None, change: Body) -> Body:
    name = kubectl.reconciler(reconciler)["metadata"]["name"]
    found: Body = kubectl.json("patch", RECONCILERS, name, "--type=merge", f"--patch={json.dumps(change)}")
    return found


def _handled(resource: Body) -> object:
    return (resource.get("status") or {}).get("lastHandledReconcileAt")
