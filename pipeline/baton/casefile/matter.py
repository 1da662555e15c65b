"""The facts of the invented matter, drawn from a seed, and what its documents say of them."""

import random
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

CLIENT: Final = "Kestrel Textiles Private Limited"
OPPONENT: Final = "Harbourline Freight Limited"
OUR_SIDE: Final = (CLIENT,)
"""Whom the firm acts for in this matter."""
MATTER_NAME: Final = f"{CLIENT} v. {OPPONENT}"
COUNSEL: Final = "Rowan & Pike LLP"
WITNESS: Final = "Anita Deshmukh"
MASTER: Final = "Captain Jonas Lindqvist"

_VESSELS: Final = ("MV Calliope", "MV Northern Heron", "MV Saint Brendan", "MV Larkspur")
_PORTS: Final = ("Piraeus", "Rotterdam", "Valletta", "Mombasa", "Genoa")
_FINDINGS: Final = (
    "The seals of the container were found broken on arrival.",
    "The reefer log shows a loss of power lasting eleven hours.",
    "Water marks were seen on the lower tiers of the bales.",
    "The tally of the terminal differs from the bill of lading by four bales.",
    "No exception was noted by the master when the cargo was received.",
    "The damage was reported to the carrier's agent on the day of discharge.",
    "The surveyor recommends that samples be kept for laboratory analysis.",
    "Demurrage was charged although the berth was free.",
)


@dataclass(frozen=True, slots=True)
class Matter:
    """Names, numbers and dates that all documents of one case file share."""

    rng: random.Random
    suit: str
    agreement: str
    invoice: str
    vessel: str
    port: str
    signed: date
    loss: date
    filed: date
    heard: date
    amount: int
    """Claimed, in whole dollars."""

    def finding(self) -> str:
        """A sentence of the kind that surveyors write."""
        return self.rng.choice(_FINDINGS)


def draw(seed: int) -> Matter:
    """The matter of a seed: the same seed gives the same facts."""
    rng = random.Random(seed)  # noqa: S311 - invented facts, no secrets
    signed = date(2022, 1, 10) + timedelta(days=rng.randrange(200))
    loss = signed + timedelta(days=rng.randrange(250, 400))
    filed = loss + timedelta(days=rng.randrange(60, 120))
    return Matter(
        rng=rng,
        suit=f"CS-{filed.year}-{rng.randrange(1000, 9999)}",
        agreement=f"CA-{signed.year}-{rng.randrange(100, 999)}",
        invoice=f"INV-{rng.randrange(10000, 99999)}",
        vessel=rng.choice(_VESSELS),
        port=rng.choice(_PORTS),
        signed=signed,
        loss=loss,
        filed=filed,
        heard=filed + timedelta(days=rng.randrange(40, 90)),
        amount=rng.randrange(180, 940) * 1000,
    )


def written(day: date) -> str:
    """A date as documents write it: 7 March 2023."""
    return f"{day.day} {day:%B %Y}"


def caption(matter: Matter) -> list[str]:
    """The head of a paper that is filed in court."""
    return [
        "IN THE HIGH COURT OF JUSTICE",
        "COMMERCIAL DIVISION",
        f"Suit No. {matter.suit}",
        "",
        f"{CLIENT}, Plaintiff",
        "v.",
        f"{OPPONENT}, Defendant",
        "",
    ]
