"""``baton upload``."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from uuid import UUID

import click
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from baton.cli.desks import FIRM, JSON, Desk, open_desk
from baton.cli.failures import CommandFailed
from baton.cli.files import LocalFile, collect
from baton.cli.following import follow
from baton.cli.identities import matter_id
from baton.cli.printing import console, print_json, printable
from baton.cli.sights import Sight, all_at_rest
from baton.cli.status import print_sights
from baton.cli.uploading import Result, Uploaded, Uploader
from baton.settings.exits import Exit
from baton.settings.options import Number

#: What a store takes for one (RFC 9110, 8.3), with parameters.
_TYPE: Final = re.compile(r"(?=.{3,255}$)[!#$%&'*+.^_`|~\w-]+/[!#$%&'*+.^_`|~\w-]+( *;[ -~]*)?", re.ASCII)
_MARKS: Final = {Result.UPLOADED: "uploaded", Result.ALREADY_THERE: "was there", Result.FAILED: "FAILED"}


def _content_type(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    if value is not None and not _TYPE.fullmatch(value):
        raise click.BadParameter(f"{value!r} is no content type, such as application/pdf", ctx=ctx, param=param)
    return value


@click.command("upload")
@click.argument("paths", metavar="FILE…", nargs=-1, required=True, type=click.Path(path_type=Path))
@FIRM
@click.option("--matter", metavar="MATTER", required=True, help="Id of the matter, or a name that stands for one.")
@click.option(
    "--content-type", metavar="TYPE", callback=_content_type, help="Of every file, instead of each by its name."
)
@click.option("--parallel", type=click.IntRange(1, 32), default=4, show_default=True, help="Files uploaded at once.")
@click.option("--wait", "waits", is_flag=True, help="Follow the documents until nobody but a person will move them.")
@click.option(
    "--patience",
    type=Number(min=0),
    default=3600.0,
    show_default=True,
    help="With --wait: seconds after which a document that still moves is left to itself (exit code 75).",
)
@JSON
def command(
    *,
    paths: tuple[Path, ...],
    firm: str | None,
    matter: str,
    content_type: str | None,
    parallel: int,
    waits: bool,
    patience: float,
    as_json: bool,
) -> int:
    r"""Upload files, and folders with all that is in them, into a matter.

    Run it again when it was interrupted or a file failed: what is there already stays as it is, what is missing is
    added. A file is the same when its content, its name, its time of change and the matter are.

    \b
    Examples:
        baton upload --firm "Doe & Partners" --matter "Harbour lease" letter.pdf annexes/
        baton upload --matter "Harbour lease" --wait case-file/
        baton upload --matter 0198c0de-0000-7000-8000-000000000001 --json *.pdf

    \b
    Exit codes: 0 all is there, 1 a file failed (with --wait: or a document did), 69 database or store
    do not answer, 75 with --wait: documents still move.
    """
    files = list(collect(paths))
    if not files:
        raise CommandFailed("there are no files in what was named")
    with open_desk(firm, connections=parallel) as desk:
        chosen = matter_id(matter, firm=desk.firm)
        results = _upload(desk, chosen, files, content_type=content_type, parallel=parallel, silent=as_json)
        ids = list(dict.fromkeys(each.document for each in results if each.document is not None))
        seen = follow(desk, ids, patience=patience) if waits and ids else ()
    if as_json:
        print_json(_as_json(desk.firm, chosen, results, seen, waited=waits))
    elif waits:
        print_sights(seen)
    return _code(results, seen)


def _upload(
    desk: Desk, matter: UUID, files: Sequence[LocalFile], *, content_type: str | None, parallel: int, silent: bool
) -> list[Uploaded]:
    results = []
    with desk.store() as store, _progress() as progress:
        task = progress.add_task("files", total=sum(_size(each) for each in files), done=0, files=len(files))
        uploader = Uploader(
            desk=desk,
            store=store,
            matter=matter,
            content_type=content_type,
            tell=lambda size: progress.advance(task, size),
        )
        for each in uploader.upload(files, parallel=parallel):
            results.append(each)
            progress.update(task, done=len(results))
            if each.result is Result.FAILED:
                progress.console.out(_line(each), highlight=False)
            elif not silent:
                _tell(_line(each), progress)
    order = {id(file): position for position, file in enumerate(files)}
    return sorted(results, key=lambda each: order[id(each.file)])


def _progress() -> Progress:
    """Bars on a terminal; nothing but lines elsewhere. All of it on standard error."""
    screen = console(stderr=True)
    return Progress(
        TextColumn("{task.fields[done]} of {task.fields[files]} files"),
        BarColumn(),
        DownloadColumn(binary_units=True),
        TimeRemainingColumn(),
        console=screen,
        transient=True,
        disable=not screen.is_terminal,
    )


def _tell(line: str, progress: Progress) -> None:
    """A result: on standard output, and above the bars where both are on one screen. Who stops listening stops nothing."""
    if not progress.disable and sys.stdout.isatty():
        progress.console.out(line, highlight=False)
        return
    try:
        click.echo(line)
    except BrokenPipeError:
        with Path(os.devnull).open("wb") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())


def _line(each: Uploaded) -> str:
    words = printable(f"{each.file.path}")
    if each.result is Result.FAILED:
        return f"{_MARKS[each.result]:9} {words}: {each.error}"
    return f"{_MARKS[each.result]:9} {each.document} {words}"


def _as_json(
    firm: UUID, matter: UUID, results: Sequence[Uploaded], seen: Sequence[Sight], *, waited: bool
) -> dict[str, object]:
    sights = {each.id: each for each in seen}
    documents = []
    for each in results:
        sight = None if each.document is None else sights.get(each.document)
        documents.append({**each.as_json(), **({} if sight is None else {"now": sight.as_json()})})
    answer: dict[str, object] = {"firm": firm, "matter": matter, "documents": documents}
    return {**answer, "at_rest": all_at_rest(seen)} if waited else answer


def _code(results: Sequence[Uploaded], seen: Sequence[Sight]) -> Exit:
    codes = {each.code for each in results if each.result is Result.FAILED}
    if codes:
        return codes.pop() if len(codes) == 1 else Exit.FAILED
    if not all_at_rest(seen):
        return Exit.TEMPORARY
    return Exit.FAILED if any(each.failed for each in seen) else Exit.OK


def _size(file: LocalFile) -> int:
    try:
        return file.path.stat().st_size
    except OSError:
        return 0
