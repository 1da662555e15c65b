"""What a node consists of, built by Go and kept by version: ``python -m e2e.bed.programs``."""

import sys
from dataclasses import dataclass
from pathlib import Path

from cluster.bed.building import NODE, SERVERS, Binaries, find_or_build_programs
from support.gotools import built

_DNS = ("coredns", "1.14.7", "github.com/coredns/coredns")
_POLICIES = ("kube-router", "2.1.0", "github.com/cloudnativelabs/kube-router/v2/cmd/kube-router")


@dataclass(frozen=True)
class Programs:
    """Where the programs are."""

    servers: Binaries
    manager: Path
    scheduler: Path
    kubelet: Path
    proxy: Path
    dns: Path
    policies: Path
    """Enforces NetworkPolicies."""


def find_or_build_all() -> Programs | None:
    """All of them, built now if need be; None where they are not kept and there is no Go to build them."""
    # at once: one module, and what they share is looked up once
    kubernetes = find_or_build_programs((*SERVERS, *NODE))
    others = [built(name, version, package=package) for name, version, package in (_DNS, _POLICIES)]
    dns, policies = others
    if kubernetes is None or dns is None or policies is None:
        return None
    manager, scheduler, kubelet, proxy = (kubernetes[name] for name in NODE)
    servers = Binaries(*(kubernetes[name] for name in SERVERS))
    return Programs(servers, manager, scheduler, kubelet, proxy, dns, policies)


def main() -> int:
    """Have them built before any test waits for them; 1 where that cannot be."""
    if find_or_build_all() is not None:
        return 0
    sys.stderr.write("there is no Go here to build a Kubernetes node with\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
