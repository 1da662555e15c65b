"""Each workload logs in as a role of its own, and needs the rights of that role alone."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from baton.db.access import Role
from e2e.bed.releases import Release, is_ready
from support.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

#: A workload, its role, one right of that role, and another workload, which must not need it.
ROUNDS = (
    ("ingest-relay", Role.RELAY, "SELECT ON ops.document_ingest_outbox", "extractor"),
    ("extractor", Role.EXTRACTOR, "INSERT ON document_page", "registrar"),
    ("registrar", Role.REGISTRAR, "INSERT ON agents.agent_run", "settler"),
    ("settler", Role.SETTLER, "INSERT ON agents.agent_effect", "ingest-relay"),
)


@pytest.mark.parametrize(("component", "role", "right", "other"), ROUNDS, ids=[each[0] for each in ROUNDS])
def test_a_workload_misses_its_own_right_and_nobody_elses(
    release: Release, component: str, role: Role, right: str, other: str
) -> None:
    """Without a right of its role it says which; another workload starts as before."""
    with without(release, role, right):
        for each in (component, other):
            restart(release, each)
        release.wait(other)
        table = right.rpartition(" ")[2]
        wait_until(lambda: table in release.said(component), 120, interval=0.5, what="the reason")
        assert not is_ready(release.pods(component))
    restart(release, component)
    release.wait(component)


def test_the_operator_says_what_its_role_lacks(release: Release) -> None:
    """On the resource, and it goes on once the right is there again."""
    with without(release, Role.RECONCILER, "INSERT ON ops.registration_repair"):
        restart(release, "operator")
        told = "--output=jsonpath={.status.conditions[?(@.type=='Ready')].message}"

        def said() -> str:
            return release.kubernetes.kubectl("get", "regrec", "default", told)

        wait_until(lambda: "ops.registration_repair" in said(), 120, interval=0.5, what="the reason")
    release.wait("operator")
    release.kubernetes.kubectl("wait", "--for=condition=Ready", "regrec/default", "--timeout=55s")


def test_everybody_logs_in_as_themselves(release: Release) -> None:
    """By the name of the application, and by a password: nobody as a superuser or as the keeper."""
    statement = (
        "SELECT DISTINCT split_part(application_name, '/', 1), usename FROM pg_stat_activity"
        " WHERE datname = current_database() AND client_addr <> '127.0.0.1' AND application_name LIKE 'baton-%%'"
    )
    wanted = {
        ("baton-relay-ingest", Role.RELAY.value),
        ("baton-relay-registrar", Role.RELAY.value),
        ("baton-extractor", Role.EXTRACTOR.value),
        ("baton-registrar", Role.REGISTRAR.value),
        ("baton-settler", Role.SETTLER.value),
        ("baton-operator", Role.RECONCILER.value),
    }
    found: set[tuple[str, str]] = set()

    def seen() -> bool:
        with release.grounds.database.preparer.connect() as connection:
            found.update((row[0], row[1]) for row in connection.exec_driver_sql(statement))
        return wanted <= found

    try:
        wait_until(seen, 60, interval=0.1, what="every login")
    finally:
        print(sorted(found))  # noqa: T201
    assert found == wanted


@contextmanager
def without(release: Release, role: Role, right: str) -> Iterator[None]:
    """A role has one right less for the length of a block."""
    say(release, f"REVOKE {right} FROM {role}")
    try:
        yield
    finally:
        say(release, f"GRANT {right} TO {role}")


def say(release: Release, statement: str) -> None:
    """Say something to the database as its owner would."""
    with release.grounds.database.preparer.begin() as connection:
        connection.exec_driver_sql(statement)


def restart(release: Release, component: str) -> None:
    """Have a workload's pods made anew."""
    old = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in release.pods(component)}
    release.kubernetes.kubectl("delete", "pod", *old, "--wait=false")
    wait_until(
        lambda: {pod["metadata"]["uid"] for pod in release.pods(component)} - set(old.values()),
        60,
        interval=0.2,
        what="another pod",
    )
