"""Programs that Go builds from their modules, kept by version outside the repository."""

import fcntl
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path


def kept_folder(name: str, version: str) -> Path:
    """Where programs of this version are kept."""
    root = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(root) / "baton-tests" / f"{name}-{version}-{platform.machine()}"


def kept(name: str, version: str) -> Path:
    """Where a program of this version is kept, by itself."""
    return kept_folder(name, version) / name


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
    with building(place.parent) as scratch:
        if not place.exists():
            run(command, scratch, "mod", "init", "baton.test/tool")
            run(command, scratch, "get", "-tool", f"{package}@v{version}")
            linked = " ".join(("-s", "-w", *flags))
            run(command, scratch, "build", "-trimpath", "-ldflags", linked, "-o", name, package)
            (scratch / name).replace(place)
    return place


@contextmanager
def building(folder: Path) -> Iterator[Path]:
    """A place to build in, below where it is kept; one builder at a time, whatever number of workers asks."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with tempfile.TemporaryDirectory(prefix="build-", dir=folder) as scratch:
            yield Path(scratch)


def module_folder(module: str, version: str) -> Path | None:
    """The source of a module, fetched now if need be; None where there is no Go to fetch it."""
    command = go()
    if command is None:
        return None
    with tempfile.TemporaryDirectory() as scratch:
        run(command, Path(scratch), "mod", "download", f"{module}@v{version}")
        cache = run(command, Path(scratch), "env", "GOMODCACHE").strip()
    return Path(cache) / f"{module}@v{version}"


def run(command: str, folder: Path, *arguments: str) -> str:
    """Run the Go command behind everything else that runs; what it prints."""
    environ = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=mod"}
    done = subprocess.run(
        ("nice", "-n", "15", command, *arguments), cwd=folder, env=environ, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"go {arguments[0]} failed\n{done.stderr[-2000:]}")
    return done.stdout
