"""Programs that Go builds from their modules, kept by version outside the repository."""

import fcntl
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path


def kept(name: str, version: str) -> Path:
    """Where a program of this version is kept."""
    root = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(root) / "baton-tests" / f"{name}-{version}-{platform.machine()}" / name


def go() -> str | None:
    """The Go command, where there is one."""
    return shutil.which("go") or shutil.which("/usr/local/go/bin/go")


def built(name: str, version: str, *, package: str, flags: Sequence[str] = ()) -> Path | None:
    """The program, built now if need be; None where it is not kept and there is no Go to build it.

    :param package: the program's, in its module of that version.
    :param flags: for the linker.
    """
    place = kept(name, version)
    if place.exists():
        return place
    command = go()
    if command is None:
        return None
    place.parent.mkdir(parents=True, exist_ok=True)
    with (place.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one builder at a time, whatever number of workers asks
        if not place.exists():
            with tempfile.TemporaryDirectory(prefix="build-", dir=place.parent) as scratch:
                _run(command, scratch, "mod", "init", "baton.test/tool")
                _run(command, scratch, "get", "-tool", f"{package}@v{version}")
                made = Path(scratch) / name
                linked = " ".join(("-s", "-w", *flags))
                _run(command, scratch, "build", "-trimpath", "-ldflags", linked, "-o", str(made), package)
                made.replace(place)
    return place


def module_folder(module: str, version: str) -> Path | None:
    """The source of a module, fetched now if need be; None where there is no Go to fetch it."""
    command = go()
    if command is None:
        return None
    with tempfile.TemporaryDirectory() as scratch:
        _run(command, scratch, "mod", "download", f"{module}@v{version}")
        cache = _run(command, scratch, "env", "GOMODCACHE").strip()
    return Path(cache) / f"{module}@v{version}"


def _run(command: str, folder: str, *arguments: str) -> str:
    environ = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=mod"}
    done = subprocess.run(
        ("nice", "-n", "5", command, *arguments), cwd=folder, env=environ, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"go {arguments[0]} failed\n{done.stderr[-2000:]}")
    return done.stdout
