"""Replicas of the operator, as processes of their own."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from baton.operator.vocabulary import Plural
from cluster.bed.asking import Kubernetes
from cluster.resources import RECONCILERS, reconciler
from support.aws_accounts import AwsAccount
from support.databases import Database
from support.matters import Matter
from support.waiting import wait_until

#: Seconds; a machine may be slow, and nothing here is about speed.
PATIENCE = 120.0


@dataclass
class Replica:
    """One replica."""

    process: subprocess.Popen[bytes]
    log: Path

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self.process.send_signal(number)

    def end(self, *, within: float = 30.0) -> int:
        """Ask it to end, and wait; its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(within)

    def told(self) -> str:
        """Its log."""
        return self.log.read_text(encoding="utf-8")


@dataclass
class Namespace:
    """One namespace of a cluster, and the operator's replicas for it."""

    kubernetes: Kubernetes
    folder: Path
    """Where logs are written."""

    @property
    def bucket(self) -> str:
        """A name of its own: buckets have theirs over all accounts."""
        return f"papers-{self.kubernetes.namespace}"

    def declare(self, name: str = "main", **spec: Any) -> None:
        """Make a resource whose loop hurries."""
        quick = {
            "interval": "1s",
            "aws": {"region": "us-east-1", "secretRef": {"name": "queues"}},
            "bucket": self.bucket,
        }
        body = reconciler(name, **{**quick, **spec})
        self.kubernetes.create(RECONCILERS, body).raise_for_status()

    def change(self, spec: Mapping[str, Any], name: str = "main") -> None:
        """Change its spec."""
        self.kubernetes.patch(RECONCILERS, name, {"spec": spec}).raise_for_status()

    def status(self, name: str = "main") -> dict[str, Any]:
        """Its status."""
        found: dict[str, Any] = (self.kubernetes.read(RECONCILERS, name) or {}).get("status", {})
        return found

    def is_seen(self, name: str = "main") -> bool:
        """Whether a pass was made, or has failed, for its spec as it stands."""
        found = self.kubernetes.read(RECONCILERS, name)
        return bool(found["metadata"]["generation"] == found.get("status", {}).get("observedGeneration"))

    def condition(self, kind: str, name: str = "main") -> tuple[str, str]:
        """Status and reason of one of its conditions."""
        for each in self.status(name).get("conditions", ()):
            if each["type"] == kind:
                return each["status"], each["reason"]
        return "", ""

    def wait_for(self, kind: str, status: str, reason: str, *, name: str = "main") -> None:
        """Wait until a condition is so."""
        wanted = (status, reason)
        self.until(lambda: self.condition(kind, name) == wanted, what=f"{kind} of {name}: {wanted}", interval=0.1)

    def until(self, holds: Callable[[], object], *, what: str, interval: float = 0.02) -> None:
        """Wait until something holds; where it never does, what the resources and the replicas say goes with it."""
        try:
            wait_until(holds, PATIENCE, interval=interval, what=what)
        except AssertionError as error:
            resources = self.kubernetes.kubectl("get", "regrec,redrive", "--output", "yaml", code=None)
            logs = [f"{each.name}: {each.read_text()[-3000:]}" for each in sorted(self.folder.glob("*.log"))]
            raise AssertionError("\n".join([str(error), resources, *logs])) from None

    @contextmanager
    def replica(self, identity: str = "one", *, by: Sequence[str] = (), **environ: str) -> Iterator[Replica]:
        """A replica that hurries to take over; killed in the end if it still runs.

        :param by: the command that runs it in its place.
        """
        log = self.folder / f"{identity}.log"
        variables = {
            "PATH": os.environ["PATH"],
            "KUBECONFIG": str(self.kubernetes.kubeconfig),
            "BATON_OPERATOR_NAMESPACE": self.kubernetes.namespace,
            "BATON_OPERATOR_IDENTITY": identity,
            "BATON_OPERATOR_LEASE_DURATION": "3s",
            **environ,
        }
        with log.open("ab") as output:
            process = subprocess.Popen(
                [*by, sys.executable, "-m", "baton.operator"], env=variables, stdout=output, stderr=output
            )
        try:
            yield Replica(process, log)
        finally:
            process.kill()
            process.wait()


@dataclass
class Cluster(Namespace):
    """The same, with a database and an AWS account that a resource may speak of."""

    database: Database
    account: AwsAccount
    matter: Matter

    @property
    def bucket(self) -> str:
        """The account's own; names of buckets are everybody's."""
        return f"baton-{self.account.account}"

    def declare(self, name: str = "main", **spec: Any) -> None:
        """Make a resource whose loop hurries."""
        super().declare(name, **{"bucket": self.bucket, **spec})

    def secrets(self, role: str) -> None:
        """Write the secrets `database` and `queues`."""
        self.kubernetes.secret("database", {"DATABASE_URL": self.database.url(role)})
        wanted = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL_SQS", "AWS_ENDPOINT_URL_S3")
        self.kubernetes.secret("queues", {name: self.account.environ[name] for name in wanted})

    @contextmanager
    def beside(self) -> Iterator[Self]:
        """Another namespace, whose resources may speak of the same database and queues."""
        name, http = f"{self.kubernetes.namespace}-b", self.kubernetes.http
        http.post("/api/v1/namespaces", json={"metadata": {"name": name}}).raise_for_status()
        there = replace(self, kubernetes=self.kubernetes.inside(name))
        try:
            yield there
        finally:
            for plural in Plural:
                http.delete(there.kubernetes.path(plural)).raise_for_status()
            http.delete(f"/api/v1/namespaces/{name}").raise_for_status()
