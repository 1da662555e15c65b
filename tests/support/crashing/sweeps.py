"""Which deaths are died, each in a run of its own, and what is told of them."""

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from support.crashing.bench import Bench
from support.crashing.ends import End, differences, end_of
from support.crashing.play import Play
from support.crashing.points import Death, Kind, Point, Tracer
from support.crashing.scenes import Scene

#: Findings after which a sweep ends: whoever reads them has enough to do.
ENOUGH = 40


@dataclass(frozen=True, slots=True)
class Ran:
    """One run of a scene."""

    end: End
    seen: tuple[Point, ...]
    died: tuple[Death, ...]


@dataclass(frozen=True, slots=True)
class Counted:
    """A scene without any death: what is compared with."""

    scene: Scene
    end: End
    points: tuple[Point, ...]

    def deaths(self) -> Iterator[Death]:
        """Every death that can be died in it."""
        for point in self.points:
            for kind in point.kinds:
                yield Death(point, kind)


@dataclass
class Sweep:
    """Runs, and what was found by them."""

    bench: Bench
    doubling: bool = False
    """Whether the relays' messages come twice and out of order."""
    ran: int = 0
    died: list[tuple[str, Death]] = field(default_factory=list)
    amiss: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    """Deaths whose point was not come by, though it was when counted."""

    def run(self, scene: Scene, *deaths: Death) -> Ran:
        """Play a scene, with these deaths."""
        with self.bench.run(scene.rules):
            tracer = Tracer(*deaths)
            play = Play(self.bench, tracer, doubling=self.doubling)
            try:
                scene.act(play)
                return Ran(end_of(play, deaths=len(deaths)), tuple(tracer.seen), tuple(tracer.died))
            finally:
                play.close()

    def count(self, scene: Scene) -> Counted:
        """Play a scene undisturbed."""
        ran = self.run(scene)
        assert not ran.end.amiss, (scene.name, ran.end.amiss)
        return Counted(scene, ran.end, ran.seen)

    def die(self, counted: Counted, *deaths: Death) -> None:
        """Play it once more with deaths, and note what differs."""
        if len(self.amiss) >= ENOUGH:
            return
        name = f"{counted.scene.name}:{'+'.join(death.name for death in deaths)}"
        self.ran += 1
        try:
            ran = self.run(counted.scene, *deaths)
        except (Exception, BaseExceptionGroup) as error:  # noqa: BLE001 - said with the others
            self.amiss.append(f"{name}: {type(error).__name__}: {str(error)[:300]}")
            return
        self.died += [(counted.scene.name, death) for death in ran.died]
        self.missed += [f"{counted.scene.name}:{death.name}" for death in deaths[:1] if death not in ran.died]
        told = [f"{point.told}" for point in (death.point for death in deaths)]
        self.amiss += [
            f"{name}: {what} [{'; '.join(told)}]"
            for what in differences(counted.end, ran.end, ways=not counted.scene.once)
        ]


def distinct(counted: Iterable[Counted]) -> list[tuple[Counted, Death]]:
    """One death of each kind for each statement and call of each worker, in the shortest scene that has it."""
    chosen: dict[tuple[str, str, Kind], tuple[Counted, Death]] = {}
    for each in sorted(counted, key=lambda one: len(one.points)):
        for death in each.deaths():
            chosen.setdefault((death.point.stage, death.point.label, death.kind), (each, death))
    return list(chosen.values())


def pairs(counted: Counted, *, number: int, seed: int) -> Sequence[tuple[Death, Death]]:
    """Deaths by chance, two in one run, the second of them anywhere."""
    rng = random.Random(seed)
    deaths = list(counted.deaths())
    return [(rng.choice(deaths), rng.choice(deaths)) for _ in range(number)]
