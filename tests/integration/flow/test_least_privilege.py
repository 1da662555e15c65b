"""Each process really does what is documented for it, and nothing else."""

import pytest

from baton.aws.permissions import WORK, Action, Place, Workload
from baton.db import access
from baton.db.access import Role
from baton.demo.cast import AGENT, PARTS, RELAY_INGEST, RELAY_REGISTRAR, SETTLER
from baton.settings.secret import Secret
from integration.flow.conftest import Flow
from support.aws_calls import beyond

RELAYS = {RELAY_INGEST, RELAY_REGISTRAR}


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
def test_a_process_asks_of_aws_what_is_documented(flow: Flow, part: object) -> None:
    """No call beyond the matrix of docs/security.md."""
    name = part.name  # type: ignore[attr-defined]
    assert beyond(Workload(name), flow.calls[name]) == []


@pytest.mark.parametrize("workload", [Workload(part.name) for part in PARTS if part.queues and not part.later])
def test_what_is_documented_is_used(flow: Flow, workload: Workload) -> None:
    """Day by day nothing is allowed that the flow does not need; the reconciler's rights are for days that go wrong."""
    rarely = {Action.LIST, Action.EXTEND, Action.READ_QUEUE}
    unused = {
        f"{place}: {action}"
        for place, actions in WORK[workload].items()
        for action in actions - flow.calls[workload.value].get(place, set()) - rarely
    }
    assert unused == set()


def test_only_relays_send(flow: Flow) -> None:
    """And each to its own lane."""
    senders = {name for name, places in flow.calls.items() for used in places.values() if Action.SEND in used}
    assert senders == RELAYS
    assert Action.SEND not in flow.calls[RELAY_INGEST].get(Place.REGISTRAR, set())
    assert Action.SEND not in flow.calls[RELAY_REGISTRAR].get(Place.INGEST, set())


def test_the_settler_never_sends_nor_touches_a_document(flow: Flow) -> None:
    """Its tickets are written, and a relay carries them."""
    assert not any(Action.SEND in used for used in flow.calls[SETTLER].values())
    assert Place.DOCUMENTS not in flow.calls[SETTLER]
    assert access.DOCUMENTS not in flow.used.tables(Role.SETTLER)
    assert flow.used.tables(Role.SETTLER, "insert", "update") >= {access.RUN, access.EFFECT, access.OUTBOX}


@pytest.mark.parametrize("role", [Role.MEMBER, Role.RELAY, Role.EXTRACTOR, Role.REGISTRAR, Role.SETTLER])
def test_a_role_uses_the_tables_that_are_documented(flow: Flow, role: Role) -> None:
    """Read from the server's own log; a role that used nothing would mean that the log says nothing."""
    assert flow.used.beyond(role) == []
    assert flow.used.tables(role)


def test_entries_of_the_record_are_written_as_the_firms_member(flow: Flow) -> None:
    """The registrar becomes the member for it; it has no grant of its own."""
    assert access.ASSERTION in flow.used.tables(Role.MEMBER, "insert")
    assert access.ASSERTION not in flow.used.tables(Role.REGISTRAR, "insert", "update")


def test_no_process_logs_in_as_somebody_else(flow: Flow) -> None:
    """The log knows the roles of the cast and of the one who prepared the database, nobody more."""
    roles = {part.role for part in PARTS if part.role is not None} | {Role.MEMBER}
    used = {role for role, tables in flow.used.verbs.items() if tables}
    assert used - {"postgres"} == {role.value for role in roles}


def test_no_process_holds_anothers_secrets(flow: Flow) -> None:
    """As the kernel shows what each was started with: one database address each, the agent's token where it is used."""
    for part in PARTS:
        environ = flow.environs[part.name]
        logins = {role for role in Role if any(f"//{role}@" in value for value in environ.values())}
        assert logins == ({part.role} if part.role is not None else set())
        assert ("BATON_AGENT_TOKEN" in environ) == (part.calls_agent or part.name == AGENT)
        assert ("AWS_SECRET_ACCESS_KEY" in environ) == part.queues
    assert "secret" not in repr(Secret("secret"))
