"""``status``, ``explain``, ``plan``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final
from uuid import UUID

import click

from baton.operator.plugin.asking import Body, Way, ask
from baton.operator.plugin.drawing import moment, plain, show, show_json, show_table, tell
from baton.operator.plugin.failures import Failed
from baton.operator.plugin.kubectl import Kubectl
from baton.operator.plugin.options import RECONCILER, asking, reaching
from baton.settings.exits import Exit

_COLUMNS: Final = ("NAME", "MODE", "READY", "REASON", "STUCK", "OLDEST (UTC)", "SUSPENDED", "LAST PASS (UTC)")
#: Events of a document that are shown unless all are asked for.
_NEWEST: Final = 20


@click.command("status")
@click.argument("name", required=False)
@reaching
@asking
def status(*, name: str | None, kubectl: Kubectl, way: Way, as_json: bool) -> int:
    r"""Say of each RegistrationReconciler, or of NAME, whether it works and how much is stuck.

    Resources are read from the API server; which replica works is asked of the operator, and where it does not
    answer, the rest is shown all the same.

    \b
    Examples:
      kubectl baton status -n law
      kubectl baton status main -o json
    """
    resources = kubectl.reconcilers(name)
    operator, failure = _operator(kubectl, way, resources)
    if as_json:
        show_json({"resources": [_told(each) for each in resources], "operator": operator})
    else:
        _draw_status(resources, operator, single=name is not None)
    if failure is None:
        return Exit.OK
    tell(f"kubectl baton: {failure}")
    return failure.code


def _operator(kubectl: Kubectl, way: Way, resources: list[Body]) -> tuple[Body | None, Failed | None]:
    if not resources:
        return None, None
    try:
        replica: Body = ask(kubectl, way, resources[0], "status")["replica"]
    except Failed as failure:
        return None, failure
    return replica, None


def _told(resource: Body) -> Body:
    metadata = resource["metadata"]
    kept = {name: metadata.get(name) for name in ("name", "namespace", "uid", "generation", "creationTimestamp")}
    return {**kept, "spec": resource.get("spec") or {}, "status": resource.get("status") or {}}


def _draw_status(resources: list[Body], operator: Body | None, *, single: bool) -> None:
    if not resources:
        show("There is no RegistrationReconciler in this namespace.")
        return
    show_table(_COLUMNS, [_row(each) for each in resources])
    if single:
        for resource in resources:
            _draw_single(resource.get("status") or {})
    if operator is not None:
        leads = "leads" if operator["leads"] else "does not lead"
        show()
        show(f"Answered by {plain(operator['identity'])}, which {leads}; version {plain(operator['version'])}.")


def _row(resource: Body) -> tuple[object, ...]:
    found = resource.get("status") or {}
    ready, suspended = (_condition(found, kind) for kind in ("Ready", "Suspended"))
    return (
        resource["metadata"]["name"],
        (resource.get("spec") or {}).get("mode"),
        ready.get("status"),
        ready.get("reason"),
        found.get("found"),
        moment(found.get("oldestSince")),
        suspended.get("status"),
        moment((found.get("lastPass") or {}).get("endedAt")),
    )


def _draw_single(found: Body) -> None:
    conditions = found.get("conditions") or ()
    show()
    rows = [
        (each["type"], each["status"], each["reason"], moment(each["lastTransitionTime"]), each["message"])
        for each in conditions
    ]
    show_table(("CONDITION", "STATUS", "REASON", "SINCE (UTC)", "MESSAGE"), rows)
    for title, key, name in (("DISCREPANCY", "discrepancies", "name"), ("HELD BACK BY", "held", "guard")):
        counts = [(each[name], each["count"], moment(each.get("oldestSince"))) for each in found.get(key) or ()]
        if counts:
            show()
            show_table((title, "COUNT", "OLDEST (UTC)"), counts)


def _condition(found: Body, kind: str) -> Mapping[str, Any]:
    return next((each for each in found.get("conditions") or () if each["type"] == kind), {})


@click.command("explain")
@click.argument("document", type=click.UUID)
@click.option("--all", "everything", is_flag=True, help="Every row that was asked, and the whole timeline.")
@RECONCILER
@reaching
@asking
def explain(
    *, document: UUID, everything: bool, reconciler: str | None, kubectl: Kubectl, way: Way, as_json: bool
) -> int:
    r"""Say of one document what disagrees, why, what happens next, by when, and what holds it back.

    Ids, states and times are shown, never its name or content. Needs the right to get
    registrationreconcilers/explain.

    \b
    Examples:
      kubectl baton explain 0198c0de-0000-7000-8000-000000000001
      kubectl baton explain 0198c0de-0000-7000-8000-000000000001 -o json | jq '.explanation.aspects[].verdict'
    """
    found = ask(kubectl, way, kubectl.reconciler(reconciler), f"explain/{document}")
    if as_json:
        show_json(found)
    else:
        _draw_explanation(found["explanation"], everything=everything)
    return Exit.OK


def _draw_explanation(found: Body, *, everything: bool) -> None:
    document = found["document"]
    show(
        f"Document {plain(document['id'])} of firm {plain(document['firm_id'])}, matter {plain(document['matter_id'])}"
    )
    for axis in ("processing", "registration"):
        since = moment(document[f"{axis}_status_since"])
        show(f"  {axis:13} {plain(document[f'{axis}_status'])} since {since} UTC")
    if document["deleted_at"]:
        show(f"  {'deleted':13} {moment(document['deleted_at'])} UTC")
    show()
    columns = ("ASPECT", "VERDICT", "DISAGREES", "NEXT IS", "BY (UTC)", "REPAIR", "HELD BACK BY")
    show_table(columns, [_aspect(each) for each in found["aspects"]])
    for aspect in found["aspects"]:
        _draw_sooner(aspect, document["id"])
    for aspect in found["aspects"]:
        rows = _rows(aspect, everything=everything)
        if rows:
            show()
            show(f"{plain(aspect['aspect'])}: {plain(aspect['meaning'])}")
            show_table(("ROW", "HOLDS", "CLAUSE", "COMPARED"), rows, indent="  ")
    events = found["timeline"] if everything else found["timeline"][-_NEWEST:]
    show()
    show_table(("AT (UTC)", "WHAT", "BY"), [(moment(each["at"]), each["what"], each["by"]) for each in events])
    if len(events) < len(found["timeline"]):
        show(f"There is more of it, and older: --all shows {'more' if found['timeline_cut'] else 'all'} of it.")
    elif found["timeline_cut"]:
        show("There is more of it, and older.")


def _draw_sooner(aspect: Body, document: object) -> None:
    """The retention's end is the very last; an operator who reads it alone would wait for days."""
    empty = aspect.get("lost_if_empty_for_seconds")  # an operator of an earlier version does not say it
    if empty is not None:
        show()
        show(
            f"{plain(aspect['aspect'])}: it counts as lost sooner if its queue is seen empty for {empty / 60:g} minutes"
            " after it was sent, while a consumer polls."
        )
        show(f"  Not to wait: kubectl baton redrive {plain(document)} --under-way --reason …")


def _aspect(each: Body) -> tuple[object, ...]:
    disagrees = not each["healthy"] or each["disagrees"] is not None
    return (
        each["aspect"],
        each["verdict"],
        disagrees,
        each["owner"],
        moment(each["due"]),
        each["action"],
        ", ".join(each["held_back_by"] or ()),
    )


def _rows(aspect: Body, *, everything: bool) -> list[tuple[object, ...]]:
    """The row that is the answer, where something disagrees; or all that were asked."""
    chosen = aspect["rows"] if everything else aspect["rows"][-1:]
    if not everything and aspect["healthy"] and aspect["disagrees"] is None:
        return []
    return [line for row in chosen for line in _clauses(row)]


def _clauses(row: Body) -> Iterator[tuple[object, ...]]:
    for clause in row["clauses"]:
        compared = ", ".join(f"{name}={_value(value)}" for name, value in clause["compared"].items())
        yield row["row"], clause["holds"], clause["text"], compared


def _value(value: object) -> str:
    text = plain(value)
    return moment(text) if isinstance(value, str) and "T" in value and value.endswith("Z") else text


@click.command("plan")
@click.option("--limit", type=click.IntRange(0, 200), default=20, show_default=True, help="Documents listed.")
@RECONCILER
@reaching
@asking
def plan(*, limit: int, reconciler: str | None, kubectl: Kubectl, way: Way, as_json: bool) -> int:
    r"""Say what a pass would repair just now, and what holds the rest back.

    It is made anew for this question, by the operator, and changes nothing. Needs the right to get
    registrationreconcilers/plan.

    \b
    Examples:
      kubectl baton plan -n law
      kubectl baton plan -o json | jq '.plan.found'
    """
    found = ask(kubectl, way, kubectl.reconciler(reconciler), "plan")
    if as_json:
        show_json(found)
    else:
        _draw_plan(found["plan"], limit=limit)
    return Exit.OK if found["plan"]["finished"] and not found["plan"]["failures"] else Exit.FAILED


def _draw_plan(found: Body, *, limit: int) -> None:
    if not found["finished"]:
        show("The pass was cut: there was not enough time to look at everything.")
    for name in found["failures"]:
        show(f"could not be asked: {plain(name)}")
    for lane in found["stalled_lanes"]:
        show(f"the {plain(lane)} lane is stalled: nobody consumes it, so nothing of it counts as lost")
    if not found["found"]:
        show(f"Nothing disagrees, {found['judged']} documents judged.")
        return
    by_count = sorted(found["found"].items(), key=lambda each: (-each[1], each[0]))
    show_table(
        ("DISCREPANCY", "FOUND", "OLDEST (UTC)"),
        [(name, count, moment(found["oldest"].get(name))) for name, count in by_count],
    )
    if found["refused"]:
        show()
        show_table(("HELD BACK BY", "COUNT"), sorted(found["refused"].items()))
    _draw_documents(found["plans"][:limit], more=found["plans_cut"] or len(found["plans"]) > limit)


def _draw_documents(plans: Iterable[Body], *, more: bool) -> None:
    rows = [(each["document"], each["aspect"], each["discrepancy"], _then(each)) for each in plans]
    if rows:
        show()
        show_table(("DOCUMENT", "ASPECT", "DISCREPANCY", "THEN"), rows)
    if more:
        show("There are more.")


def _then(each: Body) -> str:
    if each["action"] is None:
        return "reported: a person decides"
    if each["held_back_by"] is None:
        return str(each["action"]) + (" (the last attempt: it fails visibly)" if each["last_attempt"] else "")
    until = f" until {moment(each['held_back_until'])}" if each["held_back_until"] else ""
    return f"held back by {each['held_back_by']}{until}"
