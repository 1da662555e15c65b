"""The programs of a cluster, built from their Go modules and kept by version outside the repository."""

import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from support.gotools import building, go, kept_folder, run

KUBERNETES = "1.36.3"
SERVERS = ("etcd", "kube-apiserver")
"""What an API server consists of."""
NODE = ("kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy")
"""What runs pods besides."""
_ETCD = "go.etcd.io/etcd/server/v3"
_STAGED = re.compile(r"^\s*(k8s\.io/[a-z0-9-]+)(?: => \./staging| v0\.0\.0(?:\s|$))", re.MULTILINE)


@dataclass(frozen=True)
class Binaries:
    """Where the programs are."""

    etcd: Path
    apiserver: Path


def find_or_build() -> Binaries | None:
    """The programs of an API server, built now if need be; None where there is no Go to build them."""
    found = find_or_build_programs(SERVERS)
    return None if found is None else Binaries(found["etcd"], found["kube-apiserver"])


def find_or_build_programs(names: Sequence[str]) -> Mapping[str, Path] | None:
    """Programs of Kubernetes, built now if need be; None where they are not kept and there is no Go to build them."""
    folder = kept_folder("kubernetes", KUBERNETES)
    found = {name: folder / name for name in names}
    if all(each.exists() for each in found.values()):
        return found
    command = go()
    if command is None:
        return None
    with building(folder) as module:
        missing = [name for name, each in found.items() if not each.exists()]
        if missing:
            sys.stderr.write(f"building {', '.join(missing)} {KUBERNETES}, once; it takes minutes\n")
            _build(command, module, missing)
            for name in missing:
                (module / name).replace(found[name])
    return found


def main() -> int:
    """Have them built before any test waits for them; 1 where that cannot be."""
    if find_or_build() is not None:
        return 0
    sys.stderr.write("there is no Go here to build a Kubernetes API server with\n")
    return 1


def _build(command: str, module: Path, names: Sequence[str]) -> None:
    _write_module(command, module, [_package(name) for name in names])
    minor = KUBERNETES.split(".")[1]
    package = "k8s.io/component-base/version"
    # without these stamps the server calls itself v0.0.0-master
    stamps = {"gitVersion": f"v{KUBERNETES}", "gitMajor": "1", "gitMinor": minor, "gitTreeState": "archive"}
    flags = "-s -w " + " ".join(f"-X {package}.{name}={value}" for name, value in stamps.items())
    tags = "selinux,notest,grpcnotrace"
    for name in names:
        options = ("-ldflags", "-s -w") if name == "etcd" else ("-tags", tags, "-ldflags", flags)
        run(command, module, "build", "-trimpath", *options, "-o", name, _package(name))


def _package(name: str) -> str:
    return _ETCD if name == "etcd" else f"k8s.io/kubernetes/cmd/{name}"


def _write_module(command: str, module: Path, tools: Sequence[str]) -> None:
    """A module of tools. Kubernetes' own replaces point into its repository, so its parts are pinned here."""
    downloaded = json.loads(run(command, module, "mod", "download", "-json", f"k8s.io/kubernetes@v{KUBERNETES}"))
    requirements = Path(downloaded["GoMod"]).read_text()
    language = re.search(r"^go (\S+)$", requirements, re.MULTILINE)
    etcd = re.search(r"go\.etcd\.io/etcd/(?:server|client)/v3 (\S+)", requirements)
    assert language is not None
    assert etcd is not None
    parts = "v0" + KUBERNETES.removeprefix("1")
    edits = [
        f"-go={language[1]}",
        f"-require=k8s.io/kubernetes@v{KUBERNETES}",
        f"-require={_ETCD}@{etcd[1]}",
        *(f"-tool={tool}" for tool in tools),
        *(f"-replace={name}={name}@{parts}" for name in sorted(set(_STAGED.findall(requirements)))),
    ]
    run(command, module, "mod", "init", "baton.test/kubernetes")
    run(command, module, "mod", "edit", *edits)
    run(command, module, "mod", "tidy")


if __name__ == "__main__":
    sys.exit(main())
