"""The only place that makes clients of the AWS SDK.

A process makes one ``Clients`` and shares it between its threads: making a client is neither
thread-safe nor cheap, using one is both. Addresses and keys that the settings leave open are the
SDK's own business, so that real AWS needs no code of its own.

``events`` and ``calls`` open the SDK's event system, by which a call can be observed or answered
in the service's place.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import botocore.loaders
import botocore.session
from botocore.config import Config
from botocore.credentials import RefreshableCredentials

from baton.aws.faults import Service, translated
from baton.settings.stores import Aws

if TYPE_CHECKING:
    from types_boto3_s3.client import S3Client
    from types_boto3_sqs.client import SQSClient

#: Held while any client is made: the SDK is not thread-safe there, whoever the client is for, and it reads megabytes.
_MAKING: Final = threading.Lock()

LONGEST_POLL: Final = 20
"""Seconds that SQS may hold a receive open."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Time and tries of one call: ``connect`` + ``read`` seconds, ``attempts`` times at most."""

    connect: float
    """Seconds to a connection."""
    read: float
    """Seconds of silence on it."""
    attempts: int
    """Tries in all, the first included."""


SENDER_BOUNDS: Final = Bounds(connect=1.0, read=3.0, attempts=1)
"""The relay's: it is its own retry, and holds rows locked while it sends."""


class Clients:
    """One client per service and use, made when first asked for, shared between threads."""

    def __init__(self, aws: Aws, *, sender: Bounds = SENDER_BOUNDS) -> None:
        self._aws = aws
        self._sender = sender
        self._lock = threading.RLock()
        self._made: dict[str, Any] = {}
        self._hooks: dict[Service, list[tuple[str, Callable[..., Any]]]] = {service: [] for service in Service}
        self._session: botocore.session.Session | None = None

    @property
    def sqs(self) -> SQSClient:
        """For everything but sending in bulk and long polls."""
        return self._get("sqs", Service.SQS, self._bounds())  # type: ignore[no-any-return]

    @property
    def receiver(self) -> SQSClient:
        """For long polls: its patience is the poll's wait on top of the ordinary time-out."""
        ordinary = self._bounds()
        patient = Bounds(ordinary.connect, ordinary.read + LONGEST_POLL, ordinary.attempts)
        return self._get("receiver", Service.SQS, patient)  # type: ignore[no-any-return]

    @property
    def sender(self) -> SQSClient:
        """For sending in bulk: no retries inside, so that the caller's total bound holds."""
        return self._get("sender", Service.SQS, self._sender)  # type: ignore[no-any-return]

    @property
    def s3(self) -> S3Client:
        """For the object store."""
        return self._get("s3", Service.S3, self._bounds())  # type: ignore[no-any-return]

    @property
    def presigner(self) -> S3Client:
        """For presigned URLs only: signs with its own key and address where settings name them."""
        return self._get("presigner", Service.S3, self._bounds())  # type: ignore[no-any-return]

    def events(self, service: Service) -> Events:
        """The SDK's events of every client of ``service``, those to be made later included."""
        return Events(self, service)

    def calls(self, service: Service, sink: Callable[[str], object]) -> None:
        """Have ``sink`` called with the action's name (``SendMessageBatch``) of every call.

        Retries inside the SDK are not told apart; ``before-send`` sees each of them.
        """

        def told(model: Any, **_: Any) -> None:
            sink(str(model.name))

        self.events(service).register(f"before-call.{service}", told)

    def signing_expiry(self) -> float | None:
        """Seconds for which the presigner's credentials hold; ``None``: they do not expire."""
        credentials = self.presigner._request_signer._credentials  # type: ignore[attr-defined]  # noqa: SLF001 - the SDK offers no other way
        if not isinstance(credentials, RefreshableCredentials):
            return None
        with translated(Service.S3, "credentials"):
            credentials.get_frozen_credentials()  # renews what is about to expire
            expiry = credentials._expiry_time  # type: ignore[attr-defined]  # noqa: SLF001
            return float((expiry - credentials._time_fetcher()).total_seconds())  # type: ignore[attr-defined]  # noqa: SLF001

    def close(self) -> None:
        """Close every connection; a client that is used afterwards opens new ones."""
        with self._lock:
            for client in self._made.values():
                client.close()
            self._made.clear()

    def _bounds(self) -> Bounds:
        aws = self._aws
        return Bounds(aws.connect_timeout, aws.read_timeout, aws.max_attempts)

    def _get(self, use: str, service: Service, bounds: Bounds) -> Any:
        client = self._made.get(use)
        if client is None:
            with self._lock:
                client = self._made.get(use)
                if client is None:
                    with _MAKING:
                        client = self._make(use, service, bounds)
                    for name, handler in self._hooks[service]:
                        client.meta.events.register(name, handler)
                    self._made[use] = client
        return client

    def _make(self, use: str, service: Service, bounds: Bounds) -> Any:
        aws = self._aws
        presigning = use == "presigner"
        endpoint = aws.sqs_endpoint if service is Service.SQS else aws.s3_endpoint
        if presigning:
            endpoint = aws.presign_endpoint or endpoint
        own_key = presigning and aws.presign_access_key_id is not None
        secret = aws.presign_secret_access_key if own_key else aws.secret_access_key
        token = None if own_key else aws.session_token
        config = Config(
            connect_timeout=bounds.connect,
            read_timeout=bounds.read,
            retries={"mode": "standard", "total_max_attempts": bounds.attempts},
            max_pool_connections=aws.max_connections,
            tcp_keepalive=True,
            signature_version="s3v4" if service is Service.S3 else None,
            # A store that is not AWS rarely has names for its buckets.
            s3={"addressing_style": "path" if endpoint else "auto"},
            # A presigned PUT must not demand a checksum header that the agent does not know.
            request_checksum_calculation="when_required" if presigning else None,
        )
        with translated(service, "client"):
            return self._shared_session().create_client(
                service.value,
                config=config,
                endpoint_url=endpoint,
                aws_access_key_id=aws.presign_access_key_id if own_key else aws.access_key_id,
                aws_secret_access_key=None if secret is None else secret.reveal(),
                aws_session_token=None if token is None else token.reveal(),
            )

    def _shared_session(self) -> botocore.session.Session:
        if self._session is None:
            session = botocore.session.Session()
            session.register_component("data_loader", _loader())
            region = self._aws.region or session.get_config_variable("region") or "us-east-1"
            session.set_config_variable("region", region)
            self._session = session
        return self._session

    def _hook(self, service: Service, name: str, handler: Callable[..., Any]) -> None:
        with self._lock:
            self._hooks[service].append((name, handler))
            for client in self._clients_of(service):
                client.meta.events.register(name, handler)

    def _unhook(self, service: Service, name: str, handler: Callable[..., Any]) -> None:
        with self._lock:
            self._hooks[service].remove((name, handler))
            for client in self._clients_of(service):
                client.meta.events.unregister(name, handler)

    def _clients_of(self, service: Service) -> list[Any]:
        return [client for client in self._made.values() if client.meta.service_model.service_name == service.value]


@cache
def _loader() -> botocore.loaders.Loader:
    """The SDK's service models, read and parsed once a process."""
    return botocore.loaders.create_loader(botocore.session.Session().get_config_variable("data_path"))


@dataclass(frozen=True, slots=True)
class Events:
    """The SDK's event system for one service, over all its clients.

    ``before-send.sqs.SendMessageBatch`` may answer in the service's place by returning an
    ``AWSResponse``, or fail by raising; ``before-call.sqs.*`` sees every call.
    """

    clients: Clients
    service: Service

    def register(self, event: str, handler: Callable[..., Any]) -> None:
        """Have ``handler`` called at ``event``."""
        self.clients._hook(self.service, event, handler)  # noqa: SLF001 - two halves of one thing

    def unregister(self, event: str, handler: Callable[..., Any]) -> None:
        """Undo ``register``."""
        self.clients._unhook(self.service, event, handler)  # noqa: SLF001
