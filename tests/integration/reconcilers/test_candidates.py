"""Pages of candidates hide nobody, and graces are a deployment's. What the questions touch is in `test_plans`."""

from datetime import timedelta

import pytest

from baton.db import clock
from baton.db.access import Role
from baton.db.states import Lane
from baton.reconcilers.aspects import Aspect
from baton.reconcilers.classification import DISCREPANCIES, classify
from baton.reconcilers.graces import graces
from baton.reconcilers.lanes import LaneState
from baton.settings.errors import SettingsError
from support.databases import Database
from support.situations import Axis, Combination, Writer, lanes, write


def test_exempt_rows_hide_nobody(database: Database) -> None:
    """Three hundred that an index shows and the condition does not, and one behind them: it is found in one pass."""
    with database.preparer.begin() as connection:
        now = clock.now(connection)
        writer = Writer(now)
        exempt = [Combination(status="queued", axis=Axis(ticket="undispatched", ticket_mark=False))] * 300
        write(connection, writer, exempt)
        (stuck,) = write(connection, writer, [Combination(status="queued", axis=Axis(ticket_mark=False))])
    row = DISCREPANCIES["request_ticket_missing"]
    known: dict[Lane, LaneState] = dict(lanes(now, "polled"))
    found = set()
    with database.engine(Role.OBSERVER).connect() as connection:
        for candidates in row.candidates:
            for page in candidates.pages(connection, now=now, grace=row.grace, lanes=known, size=50):
                judged = classify(connection, page, lanes=known, graces=graces(), now=now)
                found |= {each for each in page if judged[each][Aspect.REGISTRATION].name == row.name}
    assert found == {stuck.id}


def test_a_grace_is_the_deployments_to_set(database: Database) -> None:
    """The same document under a longer grace is settling, and due when that is over."""
    with database.preparer.begin() as connection:
        now = clock.now(connection)
        (one,) = write(connection, Writer(now), [Combination()])
    with database.engine(Role.OBSERVER).connect() as connection:
        known = lanes(now, "polled")
        plain = classify(connection, [one.id], lanes=known, graces=graces(), now=now)[one.id][Aspect.REGISTRATION]
        longer = graces({"request_missing": timedelta(days=30)})
        patient = classify(connection, [one.id], lanes=known, graces=longer, now=now)[one.id][Aspect.REGISTRATION]
    assert plain.name == "request_missing"
    assert patient.settling is not None
    assert patient.settling.name == "request_missing"
    assert patient.due is not None
    assert patient.due > now
    with pytest.raises(SettingsError, match="no_such_thing"):
        graces({"no_such_thing": timedelta(0)})
