"""The Lease, step by step, on a server of a few lines that keeps versions as the real one does."""

import threading
from collections.abc import Callable
from typing import Any, cast

import pytest

from baton.operator import leases
from baton.operator.api import Api, ApiAway, ApiConflict, ApiMissing
from baton.operator.leases import Election

LENGTH = 30.0


class Server:
    """One Lease; a write onto an old version is refused."""

    def __init__(self) -> None:
        self.kept: dict[str, Any] | None = None
        self.version = 0
        self.away = False
        self.between: Callable[[], object] | None = None
        """Done once, between somebody's read and their write."""

    @property
    def holder(self) -> str:
        """Who has it."""
        return "" if self.kept is None else str(self.kept["spec"]["holderIdentity"])

    def lease(self, namespace: str, name: str) -> dict[str, Any]:
        """Read it."""
        self._answer()
        if self.kept is None:
            raise ApiMissing("none")
        return {**self.kept, "metadata": {"name": name, "namespace": namespace, "resourceVersion": str(self.version)}}

    def create_lease(self, namespace: str, body: dict[str, Any]) -> object:
        """Make it."""
        self._interfere()
        if self.kept is not None:
            raise ApiConflict("there")
        return self._write(body)

    def replace_lease(self, namespace: str, name: str, body: dict[str, Any]) -> object:
        """Write it."""
        self._interfere()
        if body["metadata"]["resourceVersion"] != str(self.version):
            raise ApiConflict("changed")
        return self._write(body)

    def _write(self, body: dict[str, Any]) -> object:
        self._answer()
        self.version += 1
        self.kept = body
        return body

    def _answer(self) -> None:
        if self.away:
            raise ApiAway("away")

    def _interfere(self) -> None:
        self._answer()
        if self.between is not None:
            act, self.between = self.between, None
            act()


class Clock:
    """Seconds, as told."""

    now = 0.0

    def __call__(self) -> float:
        """Read it."""
        return self.now


@pytest.fixture
def server() -> Server:
    """No Lease yet."""
    return Server()


@pytest.fixture
def clock() -> Clock:
    """At nought."""
    return Clock()


def candidate(server: Server, clock: Clock, name: str) -> Election:
    """One replica."""
    return Election(cast("Api", server), namespace="n", name="l", identity=name, duration=LENGTH, clock=clock)


def test_the_first_takes_it_and_the_second_waits(server: Server, clock: Clock) -> None:
    """For as long as the first renews it, however old it is."""
    one, two = candidate(server, clock, "one"), candidate(server, clock, "two")
    assert one.step()
    for _ in range(20):
        clock.now += one.every
        assert one.step()
        assert not two.step()


def test_of_two_who_make_it_at_once_one_has_it(server: Server, clock: Clock) -> None:
    """The other sees so at its next step."""
    one, two = candidate(server, clock, "one"), candidate(server, clock, "two")
    server.between = two.step
    assert not one.step()
    assert two.leads
    assert not one.step()


def test_it_is_taken_over_once_it_was_seen_unchanged_for_its_length(server: Server, clock: Clock) -> None:
    """By one's own clock, from one's own first look: clocks are not compared."""
    one, two = candidate(server, clock, "one"), candidate(server, clock, "two")
    one.step()
    clock.now = 1000.0
    assert not two.step()
    clock.now += LENGTH - 0.1
    assert not two.step()
    clock.now += 0.1
    assert two.step()
    assert server.holder == "two"
    assert server.kept is not None
    assert server.kept["spec"]["leaseTransitions"] == 2


def test_a_leader_goes_on_while_the_server_is_away(server: Server, clock: Clock) -> None:
    """Nobody could take over either."""
    one = candidate(server, clock, "one")
    one.step()
    server.away = True
    clock.now += 10 * LENGTH
    with pytest.raises(ApiAway):
        one.step()
    assert one.leads


def test_what_wakes_up_sees_the_other_and_gives_up(server: Server, clock: Clock) -> None:
    """And does not write over it, even when its read was of before."""
    one, two = candidate(server, clock, "one"), candidate(server, clock, "two")
    one.step()
    two.step()
    clock.now += LENGTH
    server.between = two.step
    one.step()
    assert server.holder == "two"
    assert not one.step()
    assert not one.leads


def test_it_is_let_go_at_the_end(server: Server, clock: Clock) -> None:
    """The next one need not wait; one who does not lead lets nothing go."""
    one, two = candidate(server, clock, "one"), candidate(server, clock, "two")
    one.step()
    two.release()
    assert server.holder == "one"
    one.release()
    assert two.step()


def test_turns_are_told_once(server: Server, clock: Clock) -> None:
    """Not at each step; and the end lets go."""
    one = candidate(server, clock, "one")
    stop = threading.Event()
    told: list[bool] = []

    def turned(leads: bool) -> None:
        told.append(leads)
        stop.set()

    leases.keep(one, stop=stop, beat=lambda: None, turned=turned)
    assert told == [True]
    assert server.holder == ""
