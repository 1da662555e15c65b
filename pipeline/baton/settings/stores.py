"""What the processes keep their state in: database, queues, bucket.

Durations are seconds and sizes bytes unless a field says otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass

from baton.settings import parsers
from baton.settings.fields import setting
from baton.settings.secret import Secret

RETENTION_LIMIT = 1_209_600
"""The longest that SQS keeps a message: 14 days."""


@dataclass(frozen=True, slots=True)
class Database:
    """The one Postgres database that holds documents, tickets and runs."""

    url: Secret | None = setting(
        "DATABASE_URL",
        parsers.postgres_url,
        default=None,
        unset="the demo starts a server of its own; every other program asks for it",
        meaning="Postgres URL with the role of this workload; may lead to a transaction pooler.",
        secret=True,
    )
    direct_url: Secret | None = setting(
        "BATON_DATABASE_DIRECT_URL",
        parsers.postgres_url,
        default=None,
        unset="the same as DATABASE_URL",
        meaning="URL that bypasses a pooler; LISTEN needs a session of its own.",
        secret=True,
    )
    pool_size: int = setting(
        "BATON_DATABASE_POOL_SIZE",
        parsers.integer(1, 200),
        default=8,
        meaning="Connections that a process keeps at most.",
        unit="connections",
    )
    connect_timeout: int = setting(
        "BATON_DATABASE_CONNECT_TIMEOUT",
        parsers.whole_seconds(1, 60),
        default=5,
        meaning="Longest wait for a new connection.",
        unit="seconds",
    )
    statement_timeout: float = setting(
        "BATON_DATABASE_STATEMENT_TIMEOUT",
        parsers.seconds(0.1, 3600),
        default=30.0,
        meaning="Longest single statement of a worker.",
        unit="seconds",
    )
    lock_timeout: float = setting(
        "BATON_DATABASE_LOCK_TIMEOUT",
        parsers.seconds(0.1, 600),
        default=10.0,
        meaning="Longest wait for a lock.",
        unit="seconds",
    )


@dataclass(frozen=True, slots=True)
class Aws:
    """How AWS, or what stands in for it, is reached.

    Everything that is ``None`` is left to the SDK's own chain (shared files, web identity,
    instance role), so real AWS needs nothing here. Time-outs hold for ordinary calls; the relay's
    sender has its own, tighter ones in ``Relay``.
    """

    sqs_endpoint: str | None = setting(
        "AWS_ENDPOINT_URL_SQS",
        parsers.http_url,
        default=None,
        unset="the SDK chooses (AWS itself)",
        meaning="Address of the queue service.",
    )
    s3_endpoint: str | None = setting(
        "AWS_ENDPOINT_URL_S3",
        parsers.http_url,
        default=None,
        unset="the SDK chooses (AWS itself)",
        meaning="Address of the object store; when set, buckets are addressed by path.",
    )
    presign_endpoint: str | None = setting(
        "BATON_PRESIGN_ENDPOINT_URL",
        parsers.http_url,
        default=None,
        unset="the same as the object store's",
        meaning="Address of the object store as the agent sees it, put into presigned URLs.",
    )
    region: str | None = setting(
        "AWS_REGION",
        parsers.text,
        default=None,
        unset="the SDK chooses; us-east-1 when it finds none",
        meaning="AWS region.",
    )
    access_key_id: str | None = setting(
        "AWS_ACCESS_KEY_ID",
        parsers.text,
        default=None,
        unset="the SDK's own chain",
        meaning="Access key of this workload.",
    )
    secret_access_key: Secret | None = setting(
        "AWS_SECRET_ACCESS_KEY",
        parsers.secret,
        default=None,
        unset="the SDK's own chain",
        meaning="Secret of that key.",
        secret=True,
    )
    session_token: Secret | None = setting(
        "AWS_SESSION_TOKEN",
        parsers.secret,
        default=None,
        unset="the key is a long-lived one",
        meaning="Session token of that key.",
        secret=True,
    )
    presign_access_key_id: str | None = setting(
        "BATON_PRESIGN_ACCESS_KEY_ID",
        parsers.text,
        default=None,
        unset="URLs are signed with the workload's own credentials",
        meaning="Long-lived key for presigned URLs, where the workload's own would expire first.",
    )
    presign_secret_access_key: Secret | None = setting(
        "BATON_PRESIGN_SECRET_ACCESS_KEY",
        parsers.secret,
        default=None,
        unset="URLs are signed with the workload's own credentials",
        meaning="Secret of that key.",
        secret=True,
    )
    connect_timeout: float = setting(
        "BATON_AWS_CONNECT_TIMEOUT",
        parsers.seconds(0.1, 60),
        default=3.0,
        meaning="Longest wait for a connection.",
        unit="seconds",
    )
    read_timeout: float = setting(
        "BATON_AWS_READ_TIMEOUT",
        parsers.seconds(0.1, 300),
        default=15.0,
        meaning="Longest silence of the other side; long polls add their own wait.",
        unit="seconds",
    )
    max_attempts: int = setting(
        "BATON_AWS_MAX_ATTEMPTS",
        parsers.integer(1, 10),
        default=3,
        meaning="Tries of one call in all, the first included.",
        unit="tries",
    )
    max_connections: int = setting(
        "BATON_AWS_MAX_CONNECTIONS",
        parsers.integer(1, 500),
        default=32,
        meaning="Connections that one client keeps at most.",
        unit="connections",
    )


@dataclass(frozen=True, slots=True)
class Queues:
    """The three queues, their dead-letter queues, and what they are created with.

    An existing queue is used as it is: its attributes belong to whoever made it. The results
    queue is a standard one, because S3 cannot notify a FIFO queue.
    """

    ingest: str = setting(
        "BATON_INGEST_QUEUE",
        parsers.queue,
        default="baton-ingest.fifo",
        meaning="Name or URL of the queue of the extraction workers.",
    )
    registrar: str = setting(
        "BATON_REGISTRAR_QUEUE",
        parsers.queue,
        default="baton-registrar.fifo",
        meaning="Name or URL of the queue of the registrar consumer.",
    )
    results: str = setting(
        "BATON_RESULTS_QUEUE",
        parsers.queue,
        default="baton-results",
        meaning="Name or URL of the queue that S3 notifies of artifacts; a standard queue.",
    )
    ingest_dead: str | None = setting(
        "BATON_INGEST_DEAD_QUEUE",
        parsers.queue,
        default=None,
        unset="the queue's name with `-dead` behind it",
        meaning="Dead-letter queue of the ingest queue.",
    )
    registrar_dead: str | None = setting(
        "BATON_REGISTRAR_DEAD_QUEUE",
        parsers.queue,
        default=None,
        unset="the queue's name with `-dead` behind it",
        meaning="Dead-letter queue of the registrar queue.",
    )
    results_dead: str | None = setting(
        "BATON_RESULTS_DEAD_QUEUE",
        parsers.queue,
        default=None,
        unset="the queue's name with `-dead` behind it",
        meaning="Dead-letter queue of the results queue.",
    )
    create: bool = setting(
        "BATON_CREATE_QUEUES",
        parsers.flag,
        default=True,
        meaning="Create queues, bucket and notification where they are missing.",
    )
    visibility: int = setting(
        "BATON_QUEUE_VISIBILITY",
        parsers.whole_seconds(2, 43_200),
        default=60,
        meaning="How long a received message is hidden; consumers extend it while they work.",
        unit="seconds",
    )
    retention: int = setting(
        "BATON_QUEUE_RETENTION",
        parsers.whole_seconds(60, RETENTION_LIMIT),
        default=RETENTION_LIMIT,
        meaning="How long a message is kept; older tickets count as lost.",
        unit="seconds",
    )
    max_receives: int = setting(
        "BATON_QUEUE_MAX_RECEIVES",
        parsers.integer(1, 1000),
        default=1000,
        meaning="Receives before SQS dead-letters; high, since attempts are counted in Postgres.",
        unit="receives",
    )


@dataclass(frozen=True, slots=True)
class Bucket:
    """The bucket of uploads, page texts and artifacts."""

    name: str = setting(
        "BATON_BUCKET",
        parsers.bucket,
        default="baton-documents",
        meaning="Bucket of uploads, page texts and artifacts.",
    )
    max_upload_bytes: int = setting(
        "BATON_MAX_UPLOAD_BYTES",
        parsers.size(1, 50 * 2**30),
        default=2 * 2**30,
        meaning="Largest object that an extraction worker fetches.",
        unit="bytes",
    )
    fetch_timeout: float = setting(
        "BATON_FETCH_TIMEOUT",
        parsers.seconds(1, 3600),
        default=600.0,
        meaning="Longest download of one object, however slowly it trickles.",
        unit="seconds",
    )
