"""The acts, in order: a stage, a cast, a case file, a second one under blows, mishaps and their healing, the verdicts."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from baton.casefile.exhibits import Exhibit, make_case_file
from baton.db.states import RegistrationStatus
from baton.demo.arrivals import Filed, Firm, open_firm
from baton.demo.blows import Blow, Blows
from baton.demo.cast import Cast, has_recogniser, running_cast
from baton.demo.mishaps import Mishap, Mishaps
from baton.demo.once import count
from baton.demo.sights import Sight, all_at_rest, look
from baton.demo.stage import Stage
from baton.demo.verdicts import Summary, summarise
from baton.demo.views import View

_LOOK: Final = 0.25
#: The second batch is for the blows: without the bundle of 300 pages, and with one scan of the three.
_LONGEST: Final = "Shipment Records.pdf"
_ONCE_IS_ENOUGH: Final = (_LONGEST, "Court Order.pdf", "Affidavit of ")


@dataclass(frozen=True, slots=True)
class Plot:
    """What may be chosen about a demo."""

    seed: int = 1
    """For the names, numbers and dates of the case file."""
    patience: float = 300.0
    """Seconds after which what is not at rest counts as being elsewhere."""
    kill: bool = True
    """Whether processes are killed during the second batch."""


def play(stage: Stage, plot: Plot, view: View, *, began: float) -> Summary:
    """Play everything on a stage.

    :param began: ``time.monotonic()`` when the demo began, for its length.
    :raises EmbeddedError: a process cannot be started.
    """
    with open_firm(stage) as firm, running_cast(stage) as cast:
        view.say("starting relays, extractor, registrar, settler and agent, each with its own database role")
        recogniser = has_recogniser()
        first = make_case_file(stage.papers / "first", seed=plot.seed, ocr=recogniser)
        later = make_case_file(stage.papers / "second", seed=plot.seed + 1, ocr=recogniser)
        third = _for_mishaps(later)
        second = [each for each in later if not each.name.startswith(_ONCE_IS_ENOUGH) and each not in third]
        if not recogniser:
            view.say("tesseract is not installed: scans will end in needs_review")
        acting = _Acting(firm, cast, view, deadline=began + plot.patience)
        acting.upload(first, batch=1)
        finished = acting.watch()
        if finished:
            acting.upload(second, batch=2, blows=Blows(firm, cast) if plot.kill else None)
            finished = acting.watch()
        if finished and plot.kill:
            acting.let_go_wrong(stage, *third)
            finished = acting.watch()
        summary = summarise(
            acting.filed,
            look(firm),
            counts=count(firm),
            blows=acting.struck(),
            mishaps=acting.ended(),
            starts=cast.starts(),
            seconds=time.monotonic() - began,
            recogniser=recogniser,
            finished=finished,
        )
        view.say("stopping")
    return summary


def _for_mishaps(exhibits: Sequence[Exhibit]) -> tuple[Exhibit, Exhibit]:
    """The one that takes longest to be read, and one that takes next to nothing."""
    slow = next(each for each in exhibits if each.name == _LONGEST)
    return slow, next(each for each in exhibits if each.name.endswith(".txt"))


class _Acting:
    """Uploads and watches, until everything rests or time is over."""

    def __init__(self, firm: Firm, cast: Cast, view: View, *, deadline: float) -> None:
        self.filed: list[Filed] = []
        self._firm = firm
        self._cast = cast
        self._view = view
        self._deadline = deadline
        self._blows: Blows | None = None
        self._mishaps: Mishaps | None = None
        self._told = 0
        self._said = 0
        self._starts: Mapping[str, int] = cast.starts()

    def upload(self, exhibits: Sequence[Exhibit], *, batch: int, blows: Blows | None = None) -> None:
        """Upload a batch, and let the blows fall from now on."""
        self._view.say(f"batch {batch}: uploading {len(exhibits)} documents")
        if blows is not None:
            self._blows = blows
            blows.start()
        self.filed.extend(self._firm.upload(exhibits, batch=batch))

    def struck(self) -> tuple[Blow, ...]:
        """The blows that fell."""
        return () if self._blows is None else self._blows.struck

    def let_go_wrong(self, stage: Stage, slow: Exhibit, quick: Exhibit) -> None:
        """Let things be lost, deleted and edited from now on, with the loop that heals them."""
        seen = look(self._firm)
        registered = (each for each in self.filed if seen[each.id].registration is RegistrationStatus.REGISTERED)
        self._mishaps = Mishaps(self._firm, stage, self._cast, edited=next(registered), slow=slow, quick=quick)
        self._mishaps.start()

    def ended(self) -> tuple[Mishap, ...]:
        """What became of what went wrong."""
        return () if self._mishaps is None else self._mishaps.ended

    def watch(self) -> bool:
        """Watch until everything rests and every blow fell; False where time ran out before."""
        pause = threading.Event()
        try:
            while time.monotonic() < self._deadline:
                seen = look(self._firm)
                self._tell(seen)
                if self._over() and seen and all_at_rest(self.filed, seen):
                    return True
                pause.wait(_LOOK)
        finally:
            for each in (self._blows, self._mishaps):
                if each is not None:
                    each.stop()
        return False

    def _over(self) -> bool:
        return all(each is None or each.done for each in (self._blows, self._mishaps))

    def _tell(self, seen: Mapping[UUID, Sight]) -> None:
        blows = () if self._blows is None else self._blows.struck
        for blow in blows[self._told :]:
            self._view.say(f"kill -9 {blow.name} (process {blow.pid}): {blow.doing if blow.at_work else 'it was idle'}")
        self._told = len(blows)
        if self._mishaps is not None:
            self.filed += [each for each in self._mishaps.filed if each not in self.filed]
            lines = self._mishaps.lines
            for line in lines[self._said :]:
                self._view.say(line)
            self._said = len(lines)
        starts = self._cast.starts()
        for name, times in starts.items():
            if times > self._starts.get(name, times):
                self._view.say(f"{name} is started again")
        self._starts = starts
        self._view.show(self.filed, seen, starts=starts)
