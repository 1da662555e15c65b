"""Objects on a real store: absence and failure are told apart, and no file is half written."""

import hashlib
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from botocore.credentials import RefreshableCredentials
from botocore.exceptions import EndpointConnectionError

from baton.aws.clients import Clients
from baton.aws.errors import (
    BucketMissing,
    CredentialsTooShort,
    FaultKind,
    KeyRefused,
    ObjectExists,
    ObjectMissing,
    ObjectTooLarge,
    StoreUnavailable,
)
from baton.aws.faults import Service
from baton.aws.objects import Store
from baton.settings import loading
from baton.settings.secret import Secret
from baton.settings.stores import Aws, Bucket
from support.aws_accounts import AwsAccount
from support.aws_answers import answered, failing, raw_answer

KEY = "agent-runs/a run/ü+.json"


@pytest.fixture
def clients(aws: AwsAccount) -> Iterator[Clients]:
    """Clients of the test's account."""
    made = Clients(loading.load().aws)
    yield made
    made.close()


@pytest.fixture
def store(clients: Clients, aws: AwsAccount) -> Store:
    """A bucket; its name is one of the whole server, not of the account."""
    made = Store(clients, Bucket(name=f"tests-{aws.account}"))
    made.ensure()
    return made


def test_what_was_put_can_be_looked_at_and_fetched(store: Store, tmp_path: Path) -> None:
    """Size, type, ETag and SHA-256 agree between put, head and fetch."""
    content = b"page " * 200_000
    etag = store.put(KEY, content, content_type="text/plain")
    head = store.head(KEY)
    assert (head.size, head.content_type, head.etag) == (len(content), "text/plain", etag)
    assert head.sha256 == hashlib.sha256(content).hexdigest()
    fetched = store.fetch(KEY, tmp_path / "file", limit=len(content))
    assert (fetched.size, fetched.sha256, fetched.etag) == (len(content), head.sha256, etag)
    assert (tmp_path / "file").read_bytes() == content
    assert store.read(KEY, limit=len(content)) == content


def test_a_file_can_be_put(store: Store, tmp_path: Path) -> None:
    """An open file is streamed as it is."""
    (tmp_path / "file").write_bytes(b"abc")
    with (tmp_path / "file").open("rb") as file:
        store.put(KEY, file, content_type="text/plain")
    assert store.read(KEY, limit=10) == b"abc"


def test_an_object_over_the_limit_leaves_no_file(store: Store, tmp_path: Path) -> None:
    """One byte too many is a typed error."""
    store.put(KEY, b"abcd", content_type="text/plain")
    with pytest.raises(ObjectTooLarge):
        store.fetch(KEY, tmp_path / "file", limit=3)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ObjectTooLarge):
        store.read(KEY, limit=3)


def test_a_missing_object_is_not_a_missing_bucket(clients: Clients, store: Store) -> None:
    """Absence is only said of an object in a bucket that is there."""
    elsewhere = Store(clients, Bucket(name="nowhere"))
    assert not store.exists("nothing")
    with pytest.raises(ObjectMissing):
        store.read("nothing", limit=1)
    for ask in (lambda: elsewhere.head(KEY), lambda: elsewhere.exists(KEY), lambda: elsewhere.read(KEY, limit=1)):
        with pytest.raises(BucketMissing):
            ask()
    with pytest.raises(BucketMissing):
        elsewhere.put(KEY, b"", content_type="x")


def test_a_bucket_deleted_while_in_use_is_made_again(store: Store, aws: AwsAccount) -> None:
    """Every call says that the bucket is missing until it is ensured."""
    aws.client("s3").delete_bucket(Bucket=store.name)
    with pytest.raises(BucketMissing):
        store.exists(KEY)
    store.ensure()
    assert not store.exists(KEY)


def test_a_bucket_of_another_account_is_refused_by_name(aws: AwsAccount, store: Store) -> None:
    """A name that somebody else has taken is neither missing nor ours."""
    stranger = loading.load({**aws.environ, "AWS_ACCESS_KEY_ID": "999999999999"}).aws
    with pytest.raises(StoreUnavailable, match=store.name) as raised:
        Store(Clients(stranger), Bucket(name=store.name)).ensure()
    assert raised.value.kind is FaultKind.DENIED


def test_without_leave_to_create_a_missing_bucket_stays_missing(clients: Clients) -> None:
    """An operator who makes the bucket elsewhere is told that it is missing."""
    with pytest.raises(BucketMissing):
        Store(clients, Bucket(name="nowhere"), create=False).ensure()


@pytest.mark.parametrize("status", [403, 429, 500, 503])
def test_a_failing_store_is_never_taken_for_absence(clients: Clients, store: Store, status: int) -> None:
    """Refusals, throttling and 5xx raise, they do not say that the object is not there."""
    with answered(clients, Service.S3, "HeadObject", raw_answer(b"", status=status)), pytest.raises(StoreUnavailable):
        store.exists(KEY)


def test_a_store_that_fails_between_two_questions_is_unavailable(clients: Clients, store: Store) -> None:
    """When the bucket cannot be asked for after a 404, nothing is concluded."""
    broken = failing(EndpointConnectionError(endpoint_url="http://x"))
    with answered(clients, Service.S3, "HeadBucket", broken), pytest.raises(StoreUnavailable) as raised:
        store.exists("nothing")
    assert raised.value.kind is FaultKind.TRANSPORT


def test_a_second_conditional_put_is_refused(store: Store) -> None:
    """With only_new the first one stays."""
    store.put(KEY, b"first", content_type="x", only_new=True)
    with pytest.raises(ObjectExists):
        store.put(KEY, b"second", content_type="x", only_new=True)
    assert store.read(KEY, limit=10) == b"first"


def test_deleting_twice_is_no_error(store: Store) -> None:
    """What is gone is gone."""
    store.put(KEY, b"", content_type="x")
    store.delete(KEY)
    store.delete(KEY)
    assert not store.exists(KEY)


@pytest.mark.parametrize("key", ["", "../other", "/etc/passwd", "a//b", "a\nb"])
def test_keys_are_checked_before_anything_is_asked(clients: Clients, store: Store, key: str, tmp_path: Path) -> None:
    """No call is made with a key that Baton could not have made."""
    calls: list[str] = []
    clients.calls(Service.S3, calls.append)
    for ask in (
        lambda: store.head(key),
        lambda: store.read(key, limit=1),
        lambda: store.fetch(key, tmp_path / "file", limit=1),
        lambda: store.put(key, b"", content_type="x"),
        lambda: store.delete(key),
        lambda: store.presign_get(key, seconds=1),
        lambda: store.presign_put(key, content_type="x", seconds=1),
    ):
        with pytest.raises(KeyRefused):
            ask()
    assert calls == []
    assert list(tmp_path.iterdir()) == []


def test_a_presigned_upload_works_once_and_with_its_headers_only(store: Store) -> None:
    """The replay is answered 412; condition and content type are part of the signature."""
    presigned = store.presign_put(KEY, content_type="application/json", seconds=60)
    assert presigned.headers == {"Content-Type": "application/json", "If-None-Match": "*"}
    signed = httpx.URL(presigned.url).params
    assert signed["X-Amz-SignedHeaders"] == "content-type;host;if-none-match"
    assert "checksum" not in presigned.url.lower()
    bare = httpx.put(presigned.url, content=b"{}", headers={"Content-Type": "application/json"})
    other = httpx.put(presigned.url, content=b"{}", headers={**presigned.headers, "Content-Type": "text/html"})
    assert (bare.status_code, other.status_code) == (403, 403)
    first = httpx.put(presigned.url, content=b"{}", headers=presigned.headers)
    replay = httpx.put(presigned.url, content=b'{"x":1}', headers=presigned.headers)
    assert (first.status_code, replay.status_code) == (200, 412)
    assert store.read(KEY, limit=100) == b"{}"
    assert store.head(KEY).content_type == "application/json"
    assert presigned.url not in repr(presigned)


def test_a_presigned_download_needs_no_credentials(store: Store) -> None:
    """Anyone who holds the address can fetch the object."""
    store.put(KEY, b"text", content_type="text/plain")
    assert httpx.get(store.presign_get(KEY, seconds=60)).content == b"text"


def test_addresses_can_be_signed_for_another_door_and_with_another_key(aws: AwsAccount) -> None:
    """The agent's view of the store and a long-lived key may be given by settings."""
    settings = loading.load(
        {
            **aws.environ,
            "BATON_PRESIGN_ENDPOINT_URL": "https://store.example",
            "BATON_PRESIGN_ACCESS_KEY_ID": "longlived",
            "BATON_PRESIGN_SECRET_ACCESS_KEY": "secret",
        }
    )
    url = httpx.URL(Store(Clients(settings.aws), Bucket(name="tests")).presign_get(KEY, seconds=604_800))
    assert url.host == "store.example"
    assert url.path == f"/tests/{KEY}"
    assert url.params["X-Amz-Credential"].startswith("longlived/")


@pytest.mark.parametrize("seconds", [0, -1, 604_801])
def test_a_lifetime_that_no_address_can_have_is_refused(store: Store, seconds: int) -> None:
    """S3 signs for a week at most."""
    with pytest.raises(ValueError, match="lives"):
        store.presign_get(KEY, seconds=seconds)


def test_an_address_must_not_outlive_its_credentials(
    clients: Clients, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A role's session that ends before the deadline is an error now, not a 403 in the agent later."""
    assert clients.signing_expiry() is None
    monkeypatch.setattr(clients, "signing_expiry", lambda: 600.0)
    assert store.presign_get(KEY, seconds=500)
    with pytest.raises(CredentialsTooShort, match="BATON_PRESIGN_ACCESS_KEY_ID"):
        store.presign_get(KEY, seconds=590)


def test_the_time_left_of_a_session_is_known(clients: Clients) -> None:
    """Credentials that are renewed tell how long they hold."""
    metadata = {"access_key": "k", "secret_key": "s", "token": "t", "expiry_time": "2999-01-01T00:00:00Z"}
    renewed = RefreshableCredentials.create_from_metadata(
        metadata=metadata, refresh_using=lambda: metadata, method="tests"
    )
    clients.presigner._request_signer._credentials = renewed  # type: ignore[attr-defined]
    left = clients.signing_expiry()
    assert left is not None
    assert left > 86_400


@contextmanager
def trickling(body: bytes, *, length: int, every: float | None) -> Iterator[str]:
    """A store that announces `length` bytes, sends `body`, then closes or (with `every`) drips on."""
    ended = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(10)

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65_536)
                connection.sendall(f'HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nETag: "e"\r\n\r\n'.encode() + body)
                while every is not None and not ended.wait(every):
                    try:
                        connection.sendall(b"." * 4096)
                    except OSError:
                        return

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            ended.set()
            thread.join(10)


def remote(endpoint: str, *, fetch_timeout: float = 30) -> Store:
    """A store at an address."""
    aws = Aws(s3_endpoint=endpoint, access_key_id="k", secret_access_key=Secret("s"), max_attempts=1, read_timeout=5)
    return Store(Clients(aws), Bucket(name="tests", fetch_timeout=fetch_timeout))


def test_a_download_that_breaks_off_leaves_no_file(tmp_path: Path) -> None:
    """Fewer bytes than announced is a failing store, not a short document."""
    with trickling(b"half", length=1000, every=None) as endpoint:
        with pytest.raises(StoreUnavailable):
            remote(endpoint).fetch(KEY, tmp_path / "file", limit=10_000)
        assert list(tmp_path.iterdir()) == []


def test_a_download_that_trickles_is_given_up(tmp_path: Path) -> None:
    """A store that never falls silent for long, and never ends, is left at the bound."""
    with trickling(b"", length=10**9, every=0.005) as endpoint:
        with pytest.raises(StoreUnavailable) as raised:
            remote(endpoint, fetch_timeout=0.3).fetch(KEY, tmp_path / "file", limit=10**10)
        assert raised.value.kind is FaultKind.TIMEOUT
        assert list(tmp_path.iterdir()) == []


def test_an_existing_file_is_not_overwritten(store: Store, tmp_path: Path) -> None:
    """A fetch goes into a new file, or nowhere."""
    store.put(KEY, b"new", content_type="x")
    (tmp_path / "file").write_bytes(b"old")
    with pytest.raises(FileExistsError):
        store.fetch(KEY, tmp_path / "file", limit=10)
    assert (tmp_path / "file").read_bytes() == b"old"
