"""The scenes: small stories that together make every worker do everything that it can be asked for."""

from collections.abc import Callable
from dataclasses import dataclass

from baton.agent.misbehaviour import Misbehaviour, Rule
from baton.contract.purposes import Purpose
from support.crashing.play import Play

_CONTRACT = """CARRIAGE AGREEMENT
This agreement is made on 3 March 2024 between Harbour Lines Limited (the "Carrier") and
Aster Trading GmbH (the "Shipper").
1. Carriage
The Carrier shall carry the goods to Piraeus by 30 June 2024.
2. Termination
This agreement ends on 31 December 2024.
"""
_PRIVILEGED = """PRIVILEGED AND CONFIDENTIAL
Advice of counsel on the claim of Aster Trading GmbH, dated 4 April 2024.
"""


@dataclass(frozen=True, slots=True)
class Scene:
    """What persons do, how the agent behaves, and what must be exactly so at the end besides the usual."""

    name: str
    act: Callable[[Play], object]
    rules: tuple[Rule, ...] = ()
    once: bool = False
    """The agent goes wrong once. Where the one who asked dies before it writes that down, it asks again and is answered
    well: the end is the same, the way to it another."""


def _registered(play: Play) -> None:
    play.upload("Carriage Agreement.txt", _CONTRACT)
    play.quiet()


def _reviewed(play: Play) -> None:
    play.upload("Advice.txt", _PRIVILEGED)
    play.quiet()


def _broken(play: Play) -> None:
    play.upload("Broken.txt", "broken")
    play.quiet()


def _tried_again(play: Play) -> None:
    document = play.upload("Advice.txt", _PRIVILEGED)
    play.quiet()
    play.retry(document)
    play.quiet()


def _read_again(play: Play) -> None:
    document = play.upload("Advice.txt", _PRIVILEGED)
    play.until(document, "registration_status", "registering")
    play.re_extract(document)
    play.quiet()


def _deleted_early(play: Play) -> None:
    _deleted(play, "processing_status", "indexed")


def _deleted_late(play: Play) -> None:
    _deleted(play, "registration_status", "registering")


def _deleted(play: Play, axis: str, status: str) -> None:
    document = play.upload("Advice.txt", _PRIVILEGED)
    play.until(document, axis, status)
    play.delete(document)
    play.quiet()
    play.restore(document)
    play.quiet()


SCENES = (
    Scene("registered", _registered),
    Scene("reviewed", _reviewed),
    Scene("broken", _broken),
    Scene("refused", _tried_again, (Rule(act=Misbehaviour.REFUSE, status=422, times=1),), once=True),
    Scene("away", _reviewed, (Rule(act=Misbehaviour.REFUSE, status=503, times=1),), once=True),
    Scene("doubtful", _reviewed, (Rule(act=Misbehaviour.DROP_CONNECTION, times=1),), once=True),
    Scene("silent", _tried_again, (Rule(act=Misbehaviour.NEVER, purpose=Purpose.CLASSIFY, times=1),), once=True),
    Scene("false", _tried_again, (Rule(act=Misbehaviour.WRONG_DIGEST, purpose=Purpose.CLASSIFY, times=1),), once=True),
    Scene("read-again", _read_again),
    Scene("deleted-early", _deleted_early),
    Scene("deleted-late", _deleted_late),
)
