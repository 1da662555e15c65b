"""``redrive``: a RegistrationRedrive is created, and followed if that is wanted."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

import click

from baton.operator.plugin.asking import Body
from baton.operator.plugin.drawing import plain, show, show_json, show_table, tell
from baton.operator.plugin.kubectl import REDRIVES, Kubectl
from baton.operator.plugin.options import RECONCILER, TIMEOUT, reaching
from baton.operator.plugin.waiting import condition, wait_until
from baton.operator.vocabulary import GROUP, VERSION
from baton.settings.exits import Exit

#: Statuses of the registration's axis; all others are of the text's.
REGISTRATION: Final = frozenset({"not_requested", "queued", "registering", "registered"})
#: Why something was left alone that can be asked for all the same.
_LEFT_UNDER_WAY: Final = "left: under way"
_ENDS: Final = frozenset({"Finished", "Refused"})


@click.command("redrive")
@click.argument("documents", metavar="[DOCUMENT]...", nargs=-1, type=click.UUID)
@click.option("--reason", required=True, help="Why; the ledger keeps it.")
@click.option("--firm", type=click.UUID, metavar="UUID", help="Documents of this firm.")
@click.option("--matter", type=click.UUID, metavar="UUID", help="Documents of this matter of the firm.")
@click.option("--discrepancy", "discrepancies", multiple=True, metavar="NAME", help="Documents with one of these.")
@click.option("--status", "statuses", multiple=True, metavar="STATUS", help="Of either axis.")
@click.option("--error", "errors", multiple=True, metavar="KIND", help="Documents that failed in one of these ways.")
@click.option("--aspect", "aspects", multiple=True, metavar="ASPECT", help="Only these.")
@click.option("--older-than", metavar="SPAN", help="Both statuses have stood for as long, such as 30m.")
@click.option(
    "--under-way",
    is_flag=True,
    help="Also what is on its way, or was lost and is not yet known to be; its ticket is written anew.",
)
@click.option("--per-minute", type=click.IntRange(min=1), metavar="N", help="Documents a minute.")
@click.option("--requested-by", metavar="WHO", help="Left out, your name in the cluster.")
@click.option("--dry-run", is_flag=True, help="The operator plans and counts; nothing is redriven.")
@click.option("--wait", is_flag=True, help="Until it has finished, or was refused.")
@TIMEOUT
@RECONCILER
@reaching
def redrive(
    *,
    reason: str,
    per_minute: int | None,
    requested_by: str | None,
    dry_run: bool,
    wait: bool,
    timeout: float,
    reconciler: str | None,
    kubectl: Kubectl,
    as_json: bool,
    **chosen: Any,
) -> int:
    r"""Ask again for chosen documents, once, with a reason: creates a RegistrationRedrive.

    What is named must all hold; of several values of one kind, one. The API server refuses a selector that would
    choose everything, and the operator does the rest: it may be stopped at any time, and nothing is redriven twice.

    \b
    Examples:
      kubectl baton redrive --status registration_failed --reason "the agent is mended" --dry-run --wait
      kubectl baton redrive 0198c0de-0000-7000-8000-000000000001 --reason "asked for by counsel" --wait
    """
    meant = kubectl.reconciler(reconciler)["metadata"]["name"]
    spec = {
        "reconcilerRef": {"name": meant},
        "selector": _selector(**chosen),
        "reason": reason,
        "requestedBy": requested_by or _myself(kubectl),
        "dryRun": dry_run,
        **({} if per_minute is None else {"perMinute": per_minute}),
    }
    made: Body = kubectl.json(
        "create",
        "--filename=-",
        given={
            "apiVersion": f"{GROUP}/{VERSION}",
            "kind": "RegistrationRedrive",
            "metadata": {"generateName": f"{meant[:50].rstrip('.-')}-"},
            "spec": spec,
        },
    )
    name = made["metadata"]["name"]
    if not wait:
        if as_json:
            show_json(made)
        else:
            show(f"{plain(name)}: {'a rehearsal' if dry_run else 'a redrive'} is asked for")
        return Exit.OK
    tell(f"{plain(name)} is asked for; it goes on if this command is stopped")
    found = wait_until(kubectl, REDRIVES, name, holds=_at_its_end, timeout=timeout, seen=made)
    if as_json:
        show_json(found)
    else:
        _draw(found)
    done = found["status"]
    return Exit.FAILED if done["state"] == "Refused" or done.get("failed") else Exit.OK


def _selector(
    *,
    documents: tuple[UUID, ...],
    firm: UUID | None,
    matter: UUID | None,
    discrepancies: tuple[str, ...],
    statuses: tuple[str, ...],
    errors: tuple[str, ...],
    aspects: tuple[str, ...],
    older_than: str | None,
    under_way: bool,
) -> Body:
    """What was said, as the resource says it; what was not said is left out."""
    registration = [each for each in statuses if each in REGISTRATION or each.startswith("registration_")]
    said: Body = {
        "documents": [str(each) for each in documents],
        "firm": None if firm is None else str(firm),
        "matter": None if matter is None else str(matter),
        "discrepancies": list(discrepancies),
        "registration": registration,
        "processing": [each for each in statuses if each not in registration],
        "errors": list(errors),
        "aspects": list(aspects),
        "olderThan": older_than,
        "underWay": under_way,
    }
    return {name: value for name, value in said.items() if value}


def _myself(kubectl: Kubectl) -> str:
    """The caller's name as the API server knows it."""
    return str(kubectl.json("auth", "whoami")["status"]["userInfo"]["username"])[:200]


def _at_its_end(resource: Body) -> bool:
    return (resource.get("status") or {}).get("state") in _ENDS


def _draw(found: Body) -> None:
    told = found["status"]
    ready = condition(found, "Ready")
    show(f"{plain(found['metadata']['name'])}: {told['state'].lower()}. {plain(ready.get('message'))}")
    counts = (("EXAMINED", "examined"), ("REDRIVEN", "redriven"), ("FAILED", "failed"))
    show()
    show_table([title for title, _ in counts], [[told.get(key, 0) for _, key in counts]])
    for title, key, name in ((_planned(found), "plan", "action"), ("LEFT ALONE", "refused", "reason")):
        rows = [(each[name], each["count"]) for each in told.get(key) or ()]
        if rows:
            show()
            show_table((title, "COUNT"), rows)
    left = {each["reason"] for each in told.get("refused") or ()}
    if _LEFT_UNDER_WAY in left and not found["spec"]["selector"].get("underWay"):
        show()
        show("What is under way is redriven, too, with --under-way, unless the agent has it.")


def _planned(found: Body) -> str:
    """What the plan, which was counted before anything was done, has become."""
    if found["spec"].get("dryRun"):
        return "WOULD BE DONE"
    told = found["status"]
    whole = sum(each["count"] for each in told.get("plan") or ()) == told.get("redriven", 0)
    return "DONE" if whole else "WAS TO BE DONE"
