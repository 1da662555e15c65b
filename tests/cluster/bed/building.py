"""etcd and kube-apiserver, built from their Go modules and kept by version outside the repository."""

import fcntl
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

KUBERNETES = "1.36.3"
_ETCD = "go.etcd.io/etcd/server/v3"
_APISERVER = "k8s.io/kubernetes/cmd/kube-apiserver"
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
    """The programs, built now if need be; None where they are not kept and there is no Go to build them."""
    folder = cache_folder()
    found = Binaries(folder / "etcd", folder / "kube-apiserver")
    if found.etcd.exists() and found.apiserver.exists():
        return found
    go = shutil.which("go") or shutil.which("/usr/local/go/bin/go")
    if go is None:
        return None
    with _alone(folder):
        if not found.apiserver.exists():
            sys.stderr.write(f"building etcd and kube-apiserver {KUBERNETES}, once; it takes minutes\n")
            _build(go, folder)
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


def _build(go: str, folder: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="build-", dir=folder) as scratch:
        module = Path(scratch)
        _write_module(go, module)
        minor = KUBERNETES.split(".")[1]
        package = "k8s.io/component-base/version"
        # without these stamps the server calls itself v0.0.0-master
        stamps = {"gitVersion": f"v{KUBERNETES}", "gitMajor": "1", "gitMinor": minor, "gitTreeState": "archive"}
        flags = "-s -w " + " ".join(f"-X {package}.{name}={value}" for name, value in stamps.items())
        _go(go, module, "build", "-trimpath", "-ldflags", "-s -w", "-o", "etcd", _ETCD)
        tags = "selinux,notest,grpcnotrace"
        _go(go, module, "build", "-trimpath", "-tags", tags, "-ldflags", flags, "-o", "kube-apiserver", _APISERVER)
        # the server last: it is the sign that all is there
        for name in ("etcd", "kube-apiserver"):
            (module / name).replace(folder / name)


def _write_module(go: str, module: Path) -> None:
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
        f"-tool={_ETCD}",
        f"-tool={_APISERVER}",
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
