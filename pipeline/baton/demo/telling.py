"""The summary for people."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from baton.demo.verdicts import Summary, Verdict


def tell(summary: Summary, console: Console) -> None:
    """Print it; lines are not wrapped, so that they can be searched."""
    for line in _lines(summary):
        console.print(line, soft_wrap=True, highlight=False)


def _lines(summary: Summary) -> Iterator[Text]:
    yield Text()
    width = max((len(each.filed.exhibit.name) for each in summary.verdicts), default=0)
    for batch in sorted({each.filed.batch for each in summary.verdicts}):
        yield Text(f"Batch {batch}", style="bold")
        for each in summary.verdicts:
            if each.filed.batch == batch:
                yield _document(each, width)
                if each.sight.message:
                    yield Text(f"{'':5}{'':{width}}  {each.sight.message}", style="dim")
    if summary.blows:
        yield Text("Killed with kill -9", style="bold")
        for blow in summary.blows:
            why = blow.doing if blow.at_work else "it was idle"
            yield Text(f"     {blow.name} (process {blow.pid}), while {why}; started again")
    if summary.mishaps:
        yield Text("Gone wrong, found and healed; or left alone", style="bold")
        for mishap in summary.mishaps:
            words = f"{mishap.what}: {mishap.found}"
            yield Text(f"ok   {words}") if mishap.ok else Text(f"NO   {words}", style="bold red")
    yield Text("Each effect once", style="bold")
    for count in summary.counts:
        words = f"{count.rows:6} {count.what}"
        yield Text(f"ok {words}") if count.once else Text(f"NO {words}, {count.too_many} too many", style="bold red")
    yield Text()
    if not summary.recogniser:
        yield Text(
            "tesseract is not installed: scanned pages cannot be read here, so scans end with a person (needs_review)."
        )
    yield _end(summary)


def _document(verdict: Verdict, width: int) -> Text:
    exhibit, sight = verdict.filed.exhibit, verdict.sight
    where = f"{sight.processing}, {sight.registration}"
    did = f"{sight.runs} runs, {sight.applied} effects" if sight.runs else ""
    if verdict.right:
        return Text(f"ok   {exhibit.name:{width}}  {where:37}{did}").append(f"  ({exhibit.why})", style="dim")
    expected = f"{exhibit.expected_processing}, {exhibit.expected_registration}"
    left = f"; {sight.open_tickets} tickets open" if sight.open_tickets else ""
    failed = f"; {sight.parts_failed} parts failed" if sight.parts_failed else ""
    return Text(f"NO   {exhibit.name:{width}}  {where}: expected {expected}{left}{failed}", style="bold red")


def _end(summary: Summary) -> Text:
    took = f"{summary.seconds:.0f} s"
    if summary.right:
        return Text(
            f"{len(summary.verdicts)} documents, each at the verdict that was written down for it beforehand,"
            f" each effect once, in {took}.",
            style="bold green",
        )
    wrong = [f"{len(summary.elsewhere)} of {len(summary.verdicts)} documents are not where they must be"]
    wrong += [f"{each.what}: {each.too_many} too many" for each in summary.counts if not each.once]
    wrong += [f"not healed: {each.what}" for each in summary.mishaps if not each.ok]
    if not summary.finished:
        wrong.append("time ran out before everything had come to rest")
    return Text(f"Not as it must be, after {took}: {'; '.join(wrong)}.", style="bold red")
