"""``baton redrive``."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, Final, TypeVar
from uuid import UUID

import click
from uuid_utils.compat import uuid7

from baton.cli import letters
from baton.cli.desks import JSON
from baton.cli.failures import CommandFailed
from baton.cli.identities import firm_id, matter_id
from baton.cli.printing import console, plain, print_json, table
from baton.cli.processes import stop_on_signals
from baton.cli.stations import Station, open_station
from baton.db.states import FailureKind, ProcessingStatus, RegistrationStatus
from baton.reconcilers import redrive, rehearsal
from baton.reconcilers.aspects import Aspect
from baton.reconcilers.choosing import Choice
from baton.reconcilers.explain import ground_of
from baton.reconcilers.redrive import Progress, RedriveRefused, Request, State
from baton.reconcilers.selection import Selector, SelectorRefused
from baton.reconcilers.tallies import Counts
from baton.settings.exits import Exit
from baton.settings.options import Number

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

_STATUSES: Final = tuple(dict.fromkeys([each.value for each in (*ProcessingStatus, *RegistrationStatus)]))
_AGE: Final = re.compile(r"(\d+)([smhd])")
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
#: Rows of documents that a dry run looks at.
_LOOKED_AT: Final = 100_000


def _age(ctx: click.Context, param: click.Parameter, value: str | None) -> timedelta | None:
    match = None if value is None else _AGE.fullmatch(value)
    if value is None:
        return None
    if match is None:
        raise click.BadParameter(f"{value!r} is no length of time; write 90s, 15m, 2h or 3d", ctx=ctx, param=param)
    try:
        return timedelta(**{_UNITS[match[2]]: int(match[1])})
    except OverflowError as error:
        raise click.BadParameter(f"{value!r} is longer than time goes", ctx=ctx, param=param) from error


def _chosen(command: Decorated) -> Decorated:
    """What may be said about the documents."""
    for option in (
        click.argument("documents", metavar="[DOCUMENT]…", nargs=-1, type=click.UUID),
        click.option("--firm", metavar="FIRM", help="Only this firm: its id, or its name."),
        click.option("--matter", metavar="MATTER", help="Only this matter of the firm: its id, or its name."),
        click.option(
            "--discrepancy", "discrepancies", multiple=True, metavar="NAME", help="What 'baton plan' calls it."
        ),
        click.option("--status", "statuses", multiple=True, type=click.Choice(_STATUSES), help="Of either axis."),
        click.option(
            "--error",
            "errors",
            multiple=True,
            type=click.Choice([each.value for each in FailureKind]),
            help="Why it failed.",
        ),
        click.option("--aspect", "aspects", multiple=True, type=click.Choice([each.value for each in Aspect])),
        click.option(
            "--older-than", callback=_age, metavar="AGE", help="Only what has stood for this long: 90s, 15m, 2h, 3d."
        ),
        click.option(
            "--under-way",
            is_flag=True,
            help="Also what is on its way, or was lost and is not yet known to be; its ticket is written anew.",
        ),
    )[::-1]:
        command = option(command)
    return command


@click.command("redrive")
@_chosen
@click.option("--dead-letters", is_flag=True, help="The messages on the dead-letter queues instead.")
@click.option("--queue", type=click.Choice(["ingest", "registrar", "results"]), help="Only this queue's dead letters.")
@click.option("--letter", "numbers", multiple=True, type=int, metavar="NUMBER", help="Only these dead letters.")
@click.option("--keep", is_flag=True, help="Keep the dead letters as they are, for the reason; send nothing.")
@click.option("--reason", metavar="WORDS", help="Why; it is written into the ledger. Required, but for a dry run.")
@click.option("--dry-run", is_flag=True, help="Count what would be redriven, by firm; write nothing.")
@click.option(
    "--rate",
    type=Number(0.1, 1_000_000),
    default=600.0,
    show_default=True,
    metavar="NUMBER",
    help="Documents a minute.",
)
@click.option("--request-id", type=click.UUID, metavar="ID", help="Of this request; with one id nothing is done twice.")
@click.option("--resume", type=click.UUID, metavar="ID", help="Go on with a request that was interrupted.")
@JSON
def command(
    *,
    dead_letters: bool,
    queue: str | None,
    numbers: tuple[int, ...],
    keep: bool,
    reason: str | None,
    dry_run: bool,
    rate: float,
    request_id: UUID | None,
    resume: UUID | None,
    as_json: bool,
    **chosen: Any,
) -> int:
    r"""Ask again for what is stuck, failed, parked or dead-lettered, with a reason.

    Everything goes through the services that the pipeline itself uses: a new generation of the ticket, which no queue
    takes for the old one. What is healthy and on its way is left alone, and so is what waits for a person, unless it is
    named. Connects as baton_reconciler; a dry run may connect as baton_observer. Interrupted, it says how to go on.

    \b
    Examples:
        baton redrive --discrepancy ticket_parked --dry-run
        baton redrive --discrepancy ticket_parked --reason "queue policy mended"
        baton redrive --firm "Doe & Partners" --status registration_failed --error run_expired --reason "agent is back"
        baton redrive --dead-letters --reason "fixed in 1.4.2"
        baton redrive --resume 0198c0de-0000-7000-8000-000000000001
    """
    if dead_letters or queue or numbers or keep:
        _refuse_chosen(request_id=request_id, resume=resume, **chosen)
        wanted = letters.Wanted(queue=queue, numbers=numbers, keep=keep, reason=reason, dry_run=dry_run, rate=rate)
        return letters.redrive(wanted, as_json=as_json)
    if dry_run:
        return _preview(_selector(**chosen), as_json=as_json)
    with open_station(writes=True) as station:
        try:
            progress = _begun(station, request_id, resume, reason, chosen)
            return _carry_out(station, progress, rate=rate, as_json=as_json)
        except (SelectorRefused, RedriveRefused) as error:
            raise click.UsageError(str(error)) from error


def _refuse_chosen(**chosen: object) -> None:
    """Dead letters are chosen by queue and number: what chooses documents would narrow nothing, though it says it does."""
    if _says_something(chosen):
        raise click.UsageError("dead letters are chosen by --queue and --letter, and by nothing that chooses documents")


def _says_something(chosen: dict[str, Any]) -> bool:
    return any(value not in (None, (), False) for value in chosen.values())


def _begun(
    station: Station, request_id: UUID | None, resume: UUID | None, reason: str | None, chosen: dict[str, Any]
) -> Progress:
    if resume is not None:
        found = redrive.find(station.engine, resume)
        if found is not None and _says_something(chosen) and found.request.selector != _selector(**chosen):
            raise RedriveRefused(f"{resume} is another request: its documents differ")
        return redrive.resume(station.engine, resume)
    request = Request(
        id=request_id or uuid7(), selector=_selector(**chosen), reason=reason or "", requested_by=station.actor
    )
    return redrive.begin(station.engine, request)


def _carry_out(station: Station, progress: Progress, *, rate: float, as_json: bool) -> int:
    redriver = redrive.Redriver(
        engine=station.engine,
        settings=station.settings,
        ground_of=partial(ground_of, settings=station.settings),
        per_minute=rate,
    )
    request = progress.request
    if not as_json:
        click.echo(f"redrive {request.id}", err=True)
    screen = console(stderr=True)
    with screen.status("reading") as line:
        done = redriver.run(
            request,
            stop=stop_on_signals(),
            tell=lambda counts: line.update(f"{counts.redriven} redriven, {counts.examined} documents looked at"),
        )
    if as_json:
        print_json({"redrive": request.id, "state": done.state, **_as_json(done.counts)})
    else:
        _print(done.counts, verb="redriven", selector=request.selector)
    if done.state is not State.FINISHED:
        raise CommandFailed(f"interrupted; go on with: baton redrive --resume {request.id}", code=Exit.TEMPORARY)
    return Exit.FAILED if done.counts.failed else Exit.OK


def _preview(selector: Selector, *, as_json: bool) -> int:
    with open_station(connections=1) as station:
        try:
            selector.checked()
        except SelectorRefused as error:
            raise click.UsageError(str(error)) from error
        counts, complete = rehearsal.preview(
            station.engine, selector, ground_of=partial(ground_of, settings=station.settings), most=_LOOKED_AT
        )
    if as_json:
        print_json({"dry_run": True, "complete": complete, **_as_json(counts)})
        return Exit.OK
    _print(counts, verb="would be redriven", selector=selector)
    if not complete:
        click.echo(f"only {counts.examined} documents were looked at; there are more")
    return Exit.OK


def _selector(
    *,
    documents: tuple[UUID, ...],
    firm: str | None,
    matter: str | None,
    discrepancies: tuple[str, ...],
    statuses: tuple[str, ...],
    errors: tuple[str, ...],
    aspects: tuple[str, ...],
    older_than: timedelta | None,
    under_way: bool,
) -> Selector:
    whose = None if firm is None else firm_id(firm)
    if matter is not None and whose is None:
        raise click.UsageError("a matter is looked for within its firm: name the firm, too")
    return Selector(
        documents=tuple(dict.fromkeys(documents)),
        firm=whose,
        matter=None if matter is None or whose is None else matter_id(matter, firm=whose),
        discrepancies=discrepancies,
        processing=tuple(each for each in ProcessingStatus if each.value in statuses),
        registration=tuple(each for each in RegistrationStatus if each.value in statuses),
        errors=tuple(FailureKind(each) for each in errors),
        aspects=tuple(Aspect(each) for each in aspects),
        older_than=older_than,
        under_way=under_way,
    )


def _as_json(counts: Counts) -> dict[str, object]:
    return {
        "redriven": counts.redriven,
        "failed": counts.failed,
        "examined": counts.examined,
        "firms": {name: dict(found) for name, found in counts.firms.items()},
    }


def _print(counts: Counts, *, verb: str, selector: Selector) -> None:
    out = console()
    out.print(f"{counts.redriven} {verb}, {counts.examined} documents looked at")
    titles: Sequence[str] = sorted(counts.totals)
    if not titles:
        return
    grid = table("firm", *titles)
    for column in grid.columns[1:]:
        column.justify = "right"
    for name, found in sorted(counts.firms.items(), key=lambda each: -each[1].total()):
        grid.add_row(plain(name), *(str(found[title] or "") for title in titles))
    out.print(grid)
    if Choice.LEFT_UNDER_WAY in titles and not selector.under_way:
        out.print("what is under way is redriven, too, with --under-way, unless the agent has it")
