"""A Postgres server of this process's own, or a setting's in its place.

The embedded server listens on the loopback address only and has no socket file. It trusts whoever
connects, as local demonstrations and tests do: it is not for data that matters on a machine shared
with people one does not trust.
"""

import contextlib
import os
import shutil
import signal
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self
from urllib.parse import quote

import psycopg
from sqlalchemy.engine import URL, make_url

from baton.embedded.accounts import may_enter, unprivileged
from baton.embedded.binaries import PostgresBinaries, find_binaries, reachable
from baton.embedded.children import Child, Program, run
from baton.embedded.errors import EmbeddedError, FolderUnreachable, NotOurs, StartFailed, StateMismatch, Unreachable
from baton.embedded.ports import LOOPBACK, free_port
from baton.embedded.waiting import poll

SUPERUSER = "postgres"
_DRIVER = "postgresql+psycopg"
_FAST = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
_PORT_TRIES = 5


class PostgresServer(Protocol):
    """What a Postgres is to its user, whoever runs it."""

    @property
    def administrator(self) -> str:
        """The user who may make databases and roles."""

    @property
    def maintenance(self) -> str:
        """The database from which an administrator makes others."""

    def start(self) -> None:
        """Make sure that it answers; raises EmbeddedError."""

    def stop(self) -> None:
        """End it in order, when it is ours."""

    def kill(self) -> None:
        """End it as a power cut would; raises NotOurs when it is not ours."""

    def url(self, user: str, database: str) -> str:
        """A SQLAlchemy URL for one user and database."""


class EmbeddedPostgres:
    """A Postgres child process, its cluster in a folder that survives it.

    The same object, or a later one on the same folder, starts the same cluster again. `durable`
    False gives up safety against a crash of the machine, not of the server, for speed. `port` 0
    takes a free one, and keeps it over restarts of the same object.
    """

    def __init__(
        self,
        state_dir: Path,
        *,
        binaries: PostgresBinaries | None = None,
        durable: bool = True,
        port: int = 0,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self._folder = Path(state_dir).absolute()
        self._data = self._folder / "data"
        self._log = self._folder / "postgres.log"
        self._binaries = binaries
        self._durable = durable
        self._asked_port = port
        self._port = port
        self._settings = {
            "timezone": "UTC",
            "log_timezone": "UTC",
            **(_FAST if not durable else {}),
            **(settings or {}),
        }
        self._account = unprivileged()
        self._child: Child | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def administrator(self) -> str:
        """The superuser."""
        return SUPERUSER

    @property
    def maintenance(self) -> str:
        """The database that every cluster has."""
        return "postgres"

    @property
    def port(self) -> int:
        """Where it listens; raises EmbeddedError before the first start."""
        if not self._port:
            raise EmbeddedError("the server has no port before its first start")
        return self._port

    @property
    def running(self) -> bool:
        """Whether the server process lives."""
        return self._child is not None and self._child.running

    @property
    def pid(self) -> int:
        """The postmaster's process id; raises EmbeddedError before the first start."""
        if self._child is None:
            raise EmbeddedError("the server was never started")
        return self._child.pid

    @property
    def log(self) -> Path:
        """The server's log file."""
        return self._log

    def url(self, user: str = SUPERUSER, database: str = "postgres") -> str:
        """A SQLAlchemy URL for one user and database; raises EmbeddedError before the first start."""
        return f"{_DRIVER}://{quote(user, safe='')}@{LOOPBACK}:{self.port}/{quote(database, safe='')}"

    def start(self) -> None:
        """Make the cluster if there is none, start the server, and wait until it answers.

        Nothing happens when it runs. Raises BinariesMissing, FolderUnreachable, StateMismatch or
        StartFailed.
        """
        if self.running:
            return
        self._prepare_folder()
        binaries = reachable(self._binaries or find_binaries(), account=self._account, folder=self._folder)
        self._make_cluster(binaries)
        self._await_predecessor()
        for attempt in range(_PORT_TRIES):
            self._port = self._port or free_port()
            try:
                self._start_server(binaries)
            except StartFailed:
                # Between asking for a free port and listening on it somebody else may have come.
                taken = "Address already in use" in (self._child.log_tail() if self._child else "")
                if self._asked_port or not taken or attempt == _PORT_TRIES - 1:
                    raise
                self._port = 0
            else:
                return

    def stop(self) -> None:
        """End its sessions, write everything down and stop, within 30 s; killed after that."""
        if self._child is not None:
            self._child.stop(how=signal.SIGINT, timeout=30)

    def kill(self) -> None:
        """End the server and its backends at once, nothing written down, and wait until all are gone."""
        if self._child is None or not self._child.running:
            return
        backends = _children_of(self._child.pid)
        self._child.kill()
        for backend in backends:
            with contextlib.suppress(ProcessLookupError):
                os.kill(backend, signal.SIGKILL)
        # Until they have left, the next server finds the shared memory in use and refuses.
        poll(lambda: not any(_alive(backend) for backend in backends), timeout=10)

    def _prepare_folder(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        if not may_enter(self._folder, account=self._account):
            raise FolderUnreachable(
                f"{self._folder} cannot be entered by the account nobody, which runs Postgres when root starts it: "
                "choose a folder whose parents everybody may pass through"
            )

    def _make_cluster(self, binaries: PostgresBinaries) -> None:
        if self._data.exists():
            version = (self._data / "PG_VERSION").read_text().strip()
            if version != str(binaries.major):
                raise StateMismatch(
                    f"{self._data} was written by Postgres {version}, and this is {binaries.major}: remove the folder, "
                    "or start the version that wrote it"
                )
            return
        unfinished = self._folder / "data.unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(mode=0o700)
        if self._account is not None:
            os.chown(unfinished, self._account.uid, self._account.gid)
        options = ["-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "-U", SUPERUSER]
        if not self._durable:
            options.append("--no-sync")
        run(
            self._program("initdb", str(binaries.initdb), *options, "-D", str(unfinished), log="initdb.log"),
            timeout=120,
        )
        unfinished.rename(self._data)

    def _start_server(self, binaries: PostgresBinaries) -> None:
        settings = {
            "listen_addresses": LOOPBACK,
            "port": str(self._port),
            "unix_socket_directories": "",
            **self._settings,
        }
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        # Only this start's lines may speak of its failure.
        self._log.unlink(missing_ok=True)
        self._child = Child(
            self._program("postgres", str(binaries.postgres), "-D", str(self._data), *options, log=self._log.name)
        )
        self._child.start()
        try:
            self._child.wait_ready(lambda: _answers(self.url()), timeout=60)
        except StartFailed:
            self._child.kill()
            raise

    def _program(self, name: str, *argv: str, log: str) -> Program:
        return Program(
            name=name,
            argv=argv,
            log=self._folder / log,
            environ={**{k: v for k, v in os.environ.items() if not k.startswith("PG")}, "LC_ALL": "C.UTF-8"},
            folder=self._folder,
            account=self._account,
            # Immediate shutdown: the backends leave with the server.
            death_signal=signal.SIGQUIT,
        )

    def _await_predecessor(self) -> None:
        """Let a server that lost its parent a moment ago leave the folder; forget one that left no trace but a file."""
        lock = self._data / "postmaster.pid"
        try:
            pid = int(lock.read_text().split()[0])
        except (FileNotFoundError, ValueError, IndexError):
            return
        if not poll(lambda: not _serves(pid, self._data), timeout=15):
            raise StartFailed(f"another Postgres (process {pid}) is running on {self._data}")
        # The number may meanwhile be another program's, and Postgres would then refuse to start.
        lock.unlink(missing_ok=True)


class ExternalPostgres:
    """A server that a setting names; never started, stopped or killed from here."""

    def __init__(self, database_url: str) -> None:
        self._url = make_url(database_url)

    @property
    def administrator(self) -> str:
        """Who the setting logs in as; empty where it leaves that to the driver."""
        return self._url.username or ""

    @property
    def maintenance(self) -> str:
        """The database that the setting names; empty where it leaves that to the driver."""
        return self._url.database or ""

    def start(self) -> None:
        """Check that it answers; raises Unreachable with the server's own words."""
        try:
            psycopg.connect(self._plain(self.administrator, self.maintenance), connect_timeout=5).close()
        except psycopg.OperationalError as error:
            raise Unreachable(f"the database of DATABASE_URL does not answer: {_first_line(error)}") from error

    def stop(self) -> None:
        """Nothing: it is not ours."""

    def kill(self) -> None:
        """Refused: raises NotOurs."""
        raise NotOurs("the database of DATABASE_URL is not ours to kill")

    def url(self, user: str, database: str) -> str:
        """The same server for another user and database; the password stays with the user it was given for."""
        return self._of(user, database).render_as_string(hide_password=False)

    def refusal(self, user: str, database: str) -> str | None:
        """Why the server lets the user into the database by a password only, or not at all, in its own words.

        None: it lets them in, or it would if user and database were there: that they are not is said
        only to whom the server believes.
        """
        try:
            # Empty, and not left out: a password of the environment is no child's.
            psycopg.connect(self._plain(user, database), password="", connect_timeout=5).close()
        except psycopg.OperationalError as error:
            missing = (f'role "{user}" does not exist', f'database "{database}" does not exist')
            # A line for each address of the host.
            believed = any(line.rstrip().endswith(missing) for line in str(error).splitlines())
            return None if believed else _first_line(error)
        return None

    def _of(self, user: str, database: str) -> URL:
        given = self._url
        password = given.password if user == self.administrator else None
        return URL.create(
            _DRIVER,
            username=user or None,
            password=password,
            host=given.host,
            port=given.port,
            database=database or None,
            query=given.query,
        )

    def _plain(self, user: str, database: str) -> str:
        return self._of(user, database).set(drivername="postgresql").render_as_string(hide_password=False)


def open_postgres(
    state_dir: Path,
    *,
    database_url: str | None = None,
    durable: bool = True,
    settings: Mapping[str, str] | None = None,
) -> PostgresServer:
    """The server that `database_url` names, or (None) an embedded one in `state_dir`; not yet started.

    `settings` are the embedded server's.
    """
    if database_url is not None:
        return ExternalPostgres(database_url)
    return EmbeddedPostgres(state_dir, durable=durable, settings=settings)


def _first_line(error: psycopg.Error) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def _answers(url: str) -> bool:
    try:
        psycopg.connect(url.replace(_DRIVER, "postgresql", 1), connect_timeout=2).close()
    except psycopg.OperationalError:
        return False
    return True


def _children_of(pid: int) -> list[int]:
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            # pid (name, which may hold anything) state parent …
            if int(status.read_text().rpartition(")")[2].split()[1]) == pid:
                found.append(int(status.parent.name))
    return found


def _alive(pid: int) -> bool:
    try:
        # A zombie is gone for our purpose: it waits for whoever inherits it.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _serves(pid: int, data: Path) -> bool:
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return os.fsencode(data) in command and _alive(pid)
