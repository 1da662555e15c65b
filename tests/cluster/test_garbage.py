"""What makes no sense, in annotations, statuses and secrets: it is put right or said, and nothing else suffers by it."""

import base64
from functools import partial
from itertools import chain, count

import pytest

from baton.db.access import Role
from baton.operator.vocabulary import ConditionType
from cluster.bed.replicas import PATIENCE, Cluster
from cluster.resources import RECONCILERS
from support.waiting import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

#: As the API server takes it.
STATUS = {
    "observedGeneration": 10**15,
    "found": 10**15,
    "oldestSince": "0000-01-01T00:00:00Z",
    "discrepancies": [{"name": "\u202egnihtyna", "count": 3, "oldestSince": "2001-01-31t12:00:00x9z"}],
    "held": [{"guard": " ", "count": 1}],
    "lastHandledReconcileAt": "\ud7ff",
    "lastPass": {"endedAt": "9999-12-31T23:59:59+99:99", "repaired": 10**15},
    "conditions": [
        {
            "type": kind,
            "status": "True",
            "reason": "Nonsense",
            "message": "\n\u2028",
            "lastTransitionTime": "2001-01-31t12:00:00z",
        }
        for kind in ("Ready", "Stalled", "Nobody-s", " ")
    ],
}
#: Of the secret's key, each with what is said of it.
SECRETS = (
    (b"\xff\xfe\x00", "SecretInvalid"),
    (b"", "SecretKeyMissing"),
    (b" \n\t", "SecretInvalid"),
    (b"postgresql://u:hunter2@h:1/d\nDATABASE_URL=x", "SecretInvalid"),
    (b"postgresql://u:hunter2@127.0.0.1:9/d?autocommit=1", "SecretInvalid"),
    (b"postgresql://u:hunter2@[::1/d", "SecretInvalid"),
    (b"postgresql://" + b"u" * 500_000, "SecretInvalid"),
)
NOWHERE = (b"postgresql://u:hunter2@127.0.0.1:9/" + b"d" * 1000, "DatabaseUnreachable")
_marks = count()


def ask(world: Cluster, mark: str) -> None:
    """Ask for a pass."""
    change = {"metadata": {"annotations": {"baton.pramaan.dev/reconcile-at": mark}}}
    world.kubernetes.patch(RECONCILERS, "main", change).raise_for_status()


def handled(world: Cluster, mark: str) -> bool:
    """Whether it was made."""
    return bool(world.status().get("lastHandledReconcileAt") == mark)


def test_a_status_of_somebody_else_s_is_put_right_with_the_next_pass(world: Cluster) -> None:
    """Whatever the API server takes for a status; and whatever stands in an annotation is a token."""
    world.secrets(Role.OBSERVER)
    world.declare(interval="1h")
    with world.replica() as replica:
        world.wait_for("Ready", "True", "InOrder")
        for token in ("x" * 200_000, "\u202e\U0001f4a5\n\t", "{{7*7}}$(id)"):
            answer = world.kubernetes.patch(RECONCILERS, "main", {"status": STATUS}, part="status")
            assert answer.status_code == 200, answer.text
            ask(world, token)
            wait_until(partial(handled, world, token[:256]), PATIENCE, what="the pass that was asked for")
            found = world.status()
            assert [each["type"] for each in found["conditions"]] == list(ConditionType)
            assert world.condition("Ready") == ("True", "InOrder")
            assert (found["found"], found["discrepancies"], found["held"]) == (0, [], [])
            assert "oldestSince" not in found
            assert found["observedGeneration"] == 1
            assert found["lastPass"]["endedAt"].startswith("20")
        assert "ended by itself" not in replica.told()
        assert replica.end() == 0


def test_a_secret_that_makes_no_sense_is_said_and_stops_no_other_resource(world: Cluster) -> None:
    """One kind of nonsense after the other, and then a right one."""
    world.secrets(Role.OBSERVER)
    path = f"/api/v1/namespaces/{world.kubernetes.namespace}/secrets/garbage"
    world.kubernetes.secret("garbage", {"DATABASE_URL": "x"})
    world.declare("beside")
    world.declare(database={"secretRef": {"name": "garbage"}})
    with world.replica() as replica:
        world.wait_for("Ready", "False", "SecretInvalid")
        right = (world.database.url(Role.OBSERVER).encode(), "InOrder")
        # between any two a third, so that each is seen to be read
        for value, reason in (right, *chain.from_iterable((each, NOWHERE) for each in SECRETS), right):
            body = {
                "metadata": {"name": "garbage", "labels": {"baton.pramaan.dev/use": "true"}},
                "data": {"DATABASE_URL": base64.b64encode(value).decode()},
            }
            world.kubernetes.http.put(path, json=body).raise_for_status()
            ask(world, f"now-{next(_marks)}")
            world.wait_for("Ready", "True" if reason == "InOrder" else "False", reason)
        world.wait_for("Ready", "True", "InOrder", name="beside")
        assert "hunter2" not in replica.told() + str(world.kubernetes.read(RECONCILERS, "main"))
        assert replica.end() == 0
