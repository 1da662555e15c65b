"""The programs of a cluster, built from their Go modules and kept by version outside the repository."""

import fcntl
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

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


def cache_folder() -> Path:
    """Where built programs are kept, by version."""
    root = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(root) / "baton-tests" / f"kubernetes-{KUBERNETES}-{platform.machine()}"


def find_or_build() -> Binaries | None:
    """The programs of an API server, built now if need be; None where there is no Go to build them."""
    found = find_or_build_programs(SERVERS)
    return None if found is None else Binaries(found["etcd"], found["kube-apiserver"])


def find_or_build_programs(names: Sequence[str]) -> Mapping[str, Path] | None:
    """Programs of Kubernetes, built now if need be; None where they are not kept and there is no Go to build them."""
    folder = cache_folder()
    found = {name: folder / name for name in names}
    if all(each.exists() for each in found.values()):
        return found
    go = shutil.which("go") or shutil.which("/usr/local/go/bin/go")
    if go is None:
        return None
    with _alone(folder):
        missing = [name for name, each in found.items() if not each.exists()]
        if missing:
            sys.stderr.write(f"building {', '.join(missing)} {KUBERNETES}, once; it takes minutes\n")
            _build(go, folder, missing)
    return found


def main() -> int:
    """Have them built before any test waits for them; 1 where that cannot be."""
    if find_or_build() is not None:
        return 0
    sys.stderr.write("there is no Go here to build a Kubernetes API server with\n")
    return 1


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One builder at a time, whatever number of workers asks."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _build(go: str, folder: Path, names: Sequence[str]) -> None:
    with tempfile.TemporaryDirectory(prefix="build-", dir=folder) as scratch:
        module = Path(scratch)
        _write_module(go, module, [_package(name) for name in names])
        minor = KUBERNETES.split(".")[1]
        package = "k8s.io/component-base/version"
        # without these stamps the server calls itself v0.0.0-master
        stamps = {"gitVersion": f"v{KUBERNETES}", "gitMajor": "1", "gitMinor": minor, "gitTreeState": "archive"}
        flags = "-s -w " + " ".join(f"-X {package}.{name}={value}" for name, value in stamps.items())
        tags = "selinux,notest,grpcnotrace"
        for name in names:
            options = ("-ldflags", "-s -w") if name == "etcd" else ("-tags", tags, "-ldflags", flags)
            _go(go, module, "build", "-trimpath", *options, "-o", name, _package(name))
        for name in names:
            (module / name).replace(folder / name)


def _package(name: str) -> str:
    return _ETCD if name == "etcd" else f"k8s.io/kubernetes/cmd/{name}"


def _write_module(go: str, module: Path, tools: Sequence[str]) -> None:
    """A module of tools. Kubernetes' own replaces point into its repository, so its parts are pinned here."""
    downloaded = json.loads(_go(go, module, "mod", "download", "-json", f"k8s.io/kubernetes@v{KUBERNETES}"))
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
    _go(go, module, "mod", "init", "baton.test/kubernetes")
    _go(go, module, "mod", "edit", *edits)
    _go(go, module, "mod", "tidy")


def _go(go: str, folder: Path, *arguments: str) -> str:
    """Run the Go command behind everything else that runs."""
    environ = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": ""}
    command = ("nice", "-n", "15", go, *arguments)
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"go {arguments[0]} failed\n{done.stderr[-2000:]}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
