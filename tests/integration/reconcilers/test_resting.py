"""The scrub's first question leaves out what is healthy in every aspect, and nothing else."""

import random
from itertools import islice

import pytest

from baton.db import clock
from baton.db.access import Role
from baton.reconcilers import resting
from baton.reconcilers.classification import classify
from baton.reconcilers.graces import graces
from support.databases import Database
from support.situations import KINDS, Axis, Combination, PartOf, Writer, any_of, combinations, lanes, write

SOME = 1500
READY = dict.fromkeys(("card", "sections", "brief"), PartOf("ready"))


def _sample(seed: int) -> list[Combination]:
    """Every hundredth of the systematic ones, and as many at random."""
    systematic = islice(combinations(seed, mixed=0), 0, None, 100)
    draw = random.Random(seed)
    given = [*islice(systematic, SOME), *(any_of(draw) for _ in range(SOME))]
    return [each for each in given if each.refused() is None]


def test_what_is_left_out_is_healthy(database: Database, request: pytest.FixtureRequest) -> None:
    """Thousands of situations, in every state of the lanes: whatever disagrees is among those that are looked at closer."""
    seed = request.config.getoption("--seed") or random.randrange(1 << 30)
    with database.preparer.begin() as connection:
        now = clock.now(connection)
        ids = [each.id for each in write(connection, Writer(now), _sample(seed))]
    with database.engine(Role.OBSERVER).connect() as connection:
        for kind in KINDS:
            known = lanes(now, kind)
            closer = set(resting.unsettled(connection, ids, lanes=known, graces=graces(), now=now))
            judged = classify(connection, ids, lanes=known, graces=graces(), now=now)
            sick = {each for each, verdicts in judged.items() if not all(v.healthy for v in verdicts.values())}
            assert sick <= closer, f"{kind}; again with --seed {seed}"
            assert len(closer) < len(ids), "everything is looked at closer, so nothing is gained"


def test_a_table_at_rest_needs_no_closer_look(database: Database) -> None:
    """Registered with its parts, failed for good, waiting for a person, unreadable: none is looked at again."""
    at_rest = [
        Combination(status="registered", parts=READY),
        Combination(status="registration_failed"),
        Combination(status="registration_needs_review"),
        Combination(processing="failed", has_pass=False),
    ]
    with database.preparer.begin() as connection:
        now = clock.now(connection)
        resting_ids = [each.id for each in write(connection, Writer(now), at_rest)]
        writer = Writer(now)
        writer.begin_after(1000)
        edited = [
            Combination(status="registered", parts={**READY, "brief": PartOf()}),
            Combination(status="registered", parts=READY, status_pass="other"),
            Combination(status="registered", parts={**READY, "card": PartOf("failed", Axis(next_attempt="now"))}),
        ]
        edited_ids = [each.id for each in write(connection, writer, edited)]
    with database.engine(Role.OBSERVER).connect() as connection:
        found = resting.unsettled(
            connection, [*resting_ids, *edited_ids], lanes=lanes(now, "polled"), graces=graces(), now=now
        )
    assert set(found) == set(edited_ids)
