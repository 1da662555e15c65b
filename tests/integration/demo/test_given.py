"""A demo on servers that settings give: it leaves them as it found them."""

import signal
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

from baton.casefile.exhibits import make_case_file
from baton.db.access import Role
from baton.demo.arrivals import open_firm
from baton.demo.cast import running_cast
from baton.demo.given import Given, given_servers
from baton.demo.sights import all_at_rest, look
from baton.demo.stage import open_stage
from baton.embedded.binaries import PostgresBinaries
from baton.embedded.errors import Unreachable
from baton.embedded.ports import free_port
from baton.embedded.postgres import SUPERUSER, EmbeddedPostgres
from baton.settings.errors import SettingsError
from support.aws_accounts import AwsAccount
from support.databases import Cluster
from support.demos import running_demo
from support.waiting import wait_until

_CHOSEN = ("Carriage Agreement", "Letter to carrier.txt")
_BELIEVES_ONLY_THE_SUPERUSER = f"host all {SUPERUSER} 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n"


def databases(server: EmbeddedPostgres) -> set[str]:
    """Every database of a server."""
    return _asked(server, "SELECT datname FROM pg_database")


def roles(server: EmbeddedPostgres) -> set[str]:
    """Every role of Baton's on a server."""
    return _asked(server, "SELECT rolname FROM pg_roles WHERE rolname LIKE 'baton%'")


def _asked(server: EmbeddedPostgres, question: str) -> set[str]:
    engine = create_engine(server.url(), poolclass=NullPool)
    with engine.connect() as connection:
        return set(connection.scalars(text(question)))


@dataclass(frozen=True)
class Places:
    """Somebody else's account, in which something is already."""

    aws: AwsAccount

    def names(self) -> set[str]:
        """Every bucket and queue."""
        buckets = self.aws.client("s3").list_buckets()["Buckets"]
        queues = self.aws.client("sqs").list_queues().get("QueueUrls", [])
        return {each["Name"] for each in buckets} | {each.rpartition("/")[2] for each in queues}


@pytest.fixture
def places(aws: AwsAccount) -> Places:
    """With a bucket, and a queue of the name that Baton uses where settings name no other."""
    aws.client("s3").create_bucket(Bucket=f"theirs-{aws.account}")
    aws.client("sqs").create_queue(QueueName="baton-ingest.fifo", Attributes={"FifoQueue": "true"})
    return Places(aws)


@pytest.fixture
def environ(cluster: Cluster, aws: AwsAccount) -> Mapping[str, str]:
    """What gives both servers."""
    return {"DATABASE_URL": cluster.server.url().replace("+psycopg", ""), **aws.environ}


@pytest.fixture
def wary(state_folder: Path, postgres_binaries: PostgresBinaries) -> Iterator[EmbeddedPostgres]:
    """A server that asks everybody but its superuser for a password."""
    server = EmbeddedPostgres(state_folder / "wary", binaries=postgres_binaries, durable=False)
    with server:
        server.stop()
        (state_folder / "wary" / "data" / "pg_hba.conf").write_text(_BELIEVES_ONLY_THE_SUPERUSER)
        server.start()
        yield server


@pytest.mark.timeout(200)
def test_documents_arrive_on_given_servers(cluster: Cluster, places: Places, environ: Mapping[str, str]) -> None:
    """Two documents reach their verdicts there; afterwards only what was there before is there."""
    before = databases(cluster.server), places.names()
    said: list[str] = []
    with open_stage(given=given_servers(environ), say=said.append) as stage, open_firm(stage) as firm:
        assert not (stage.folder / "postgres").exists()
        assert not (stage.folder / "aws").exists()
        exhibits = [each for each in make_case_file(stage.papers, ocr=False) if each.name.startswith(_CHOSEN)]
        with running_cast(stage):
            filed = firm.upload(exhibits, batch=1)
            wait_until(lambda: all_at_rest(filed, look(firm)), timeout=120, interval=0.2, what="every document's rest")
            seen = look(firm)
        made = (databases(cluster.server) - before[0]) | (places.names() - before[1])
        assert len(made) == 8
        assert all(any(name in line for line in said) for name in made)
    for each in filed:
        assert seen[each.id].processing == each.exhibit.expected_processing
        assert seen[each.id].registration == each.exhibit.expected_registration
    assert (databases(cluster.server), places.names()) == before


@pytest.mark.slow
@pytest.mark.timeout(200)
def test_an_interrupted_demo_leaves_given_servers_alone(
    state_folder: Path, cluster: Cluster, places: Places, environ: Mapping[str, str]
) -> None:
    """Ctrl-C in the middle of work: database, bucket and queues go, and the program says how it ended."""
    before = databases(cluster.server), places.names()
    with running_demo(state_folder, "--plain", "--json", environ=environ) as demo:
        demo.wait_for("batch 1: uploading", timeout=150)
        wait_until(lambda: len(places.names() - before[1]) == 7, 60, what="bucket and queues")
        demo.process.send_signal(signal.SIGINT)
        demo.wait_for("stopping")
        demo.process.send_signal(signal.SIGINT)
        assert demo.end(timeout=60) == 130
    assert (databases(cluster.server), places.names()) == before
    assert demo.left() == []


def test_what_is_kept_on_given_servers_is_named(
    cluster: Cluster, places: Places, environ: Mapping[str, str], monkeypatch: pytest.MonkeyPatch, state_folder: Path
) -> None:
    """Kept, database, bucket and queues stay, and their names are known."""
    monkeypatch.setattr("tempfile.tempdir", str(state_folder))
    before = databases(cluster.server), places.names()
    with open_stage(keep=True, given=given_servers(environ)) as stage:
        pass
    kept = databases(cluster.server) - before[0]
    assert kept == {stage.database}
    assert all(any(name in line for line in stage.given) for name in kept | (places.names() - before[1]))
    assert stage.bucket.name in places.names()
    cluster.drop(stage.database)


def test_one_part_alone_may_be_given(cluster: Cluster, environ: Mapping[str, str]) -> None:
    """With a database and no address of AWS's, SQS and S3 are the demo's own."""
    before = databases(cluster.server)
    given = given_servers({**{name: environ[name] for name in ("DATABASE_URL", "AWS_ACCESS_KEY_ID")}})
    with open_stage(given=given) as stage:
        assert (stage.folder / "aws").is_dir()
        assert stage.bucket.name == "baton-documents"
        assert databases(cluster.server) - before == {stage.database}
    assert databases(cluster.server) == before


def test_what_is_still_in_use_goes_too(cluster: Cluster, places: Places, environ: Mapping[str, str]) -> None:
    """A bucket with an object in it, and a database with somebody connected to it."""
    before = databases(cluster.server), places.names()
    with ExitStack() as opened:
        stage = opened.enter_context(open_stage(given=given_servers(environ)))
        places.aws.client("s3").put_object(Bucket=stage.bucket.name, Key="x", Body=b"x")
        engine = create_engine(stage.database_url(Role.RELAY).reveal())
        session = engine.connect()
    assert (databases(cluster.server), places.names()) == before
    session.invalidate()
    engine.dispose()


def test_roles_that_need_a_password_are_said_before_anything_is_made(
    wary: EmbeddedPostgres, state_folder: Path
) -> None:
    """One line names the roles and what is needed; the server has neither a database nor a role more."""
    before = databases(wary), roles(wary)
    with running_demo(state_folder, "--plain", environ={"DATABASE_URL": wary.url(), "PGPASSWORD": "any"}) as demo:
        assert demo.end(timeout=60) == 2
    [line] = [each for each in demo.said if each.startswith("baton: ")]
    assert "DATABASE_URL" in line
    assert "without a password" in line
    assert Role.EXTRACTOR in line
    assert (databases(wary), roles(wary)) == before


def test_who_may_make_no_database_is_told_so(cluster: Cluster) -> None:
    """A workload's URL is not an administrator's."""
    url = cluster.server.url(Role.RELAY, cluster.template)
    before = databases(cluster.server)
    with (
        pytest.raises(SettingsError, match=r"baton_relay must be allowed to create databases"),
        open_stage(given=given_servers({"DATABASE_URL": url})),
    ):
        pass
    assert databases(cluster.server) == before


def test_a_given_server_that_does_not_answer_is_said_to(aws: AwsAccount) -> None:
    """Nothing listens there."""
    given = given_servers({"DATABASE_URL": f"postgresql://postgres@127.0.0.1:{free_port()}/postgres"})
    with pytest.raises(Unreachable, match="does not answer"), open_stage(given=given):
        pass


@pytest.mark.parametrize("given", ["AWS_ENDPOINT_URL_SQS", "AWS_ENDPOINT_URL_S3"])
def test_sqs_without_s3_is_a_fault_of_the_settings(given: str) -> None:
    """And the other way round; the line names the one that is missing."""
    (other,) = {"AWS_ENDPOINT_URL_SQS", "AWS_ENDPOINT_URL_S3"} - {given}
    with pytest.raises(SettingsError, match=f"^{other}: not set"):
        given_servers({given: "http://127.0.0.1:1"})


@pytest.mark.parametrize("hidden", ["dbname=mine", "user=me", "password=secret"])
def test_a_url_that_would_lead_elsewhere_is_refused(hidden: str) -> None:
    """What stands behind the question mark would win over the database of the demo's own."""
    with pytest.raises(SettingsError, match="before the question mark") as refused:
        given_servers({"DATABASE_URL": f"postgresql://postgres@127.0.0.1/postgres?{hidden}"})
    assert "secret" not in str(refused.value)


def test_without_addresses_nothing_is_given() -> None:
    """Credentials and regions alone, and variables that are set to nothing, change nothing."""
    nothing = {"DATABASE_URL": " ", "AWS_ENDPOINT_URL_SQS": "", "AWS_ACCESS_KEY_ID": "x", "AWS_REGION": "eu-central-1"}
    assert given_servers(nothing) == Given()
