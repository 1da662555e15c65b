"""From an invocation's purpose to its effect."""

from collections.abc import Iterable

from baton.agent.rules.briefs import brief_for
from baton.agent.rules.cards import card_for
from baton.agent.rules.reading import read
from baton.agent.rules.sections import sections_for
from baton.agent.rules.turns import turn_for
from baton.contract.artifacts import Effect
from baton.contract.invocations import InvocationContext
from baton.contract.pages import PageText
from baton.contract.purposes import Purpose


def effect_for(purpose: Purpose, *, pages: Iterable[PageText], context: InvocationContext) -> Effect:
    """The effect of a purpose on a text. Pure: the same arguments give the same effect."""
    reading = read(pages)
    match purpose:
        case Purpose.CLASSIFY:
            return turn_for(reading, context=context)
        case Purpose.CARD:
            return card_for(reading, context=context)
        case Purpose.SECTIONS:
            return sections_for(reading)
        case Purpose.BRIEF:
            return brief_for(reading, context=context)
