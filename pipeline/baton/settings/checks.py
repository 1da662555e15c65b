"""Checks between settings that are each valid by themselves."""

from __future__ import annotations

from collections.abc import Iterator

from baton.settings.model import Settings


def faults(settings: Settings) -> Iterator[str]:
    """One line for every pair of settings that cannot stand together."""
    yield from _queue_faults(settings)
    yield from _credential_faults(settings)
    yield from _time_faults(settings)


def _queue_faults(settings: Settings) -> Iterator[str]:
    queues = settings.queues
    if queues.results.endswith(".fifo"):
        yield "BATON_RESULTS_QUEUE: is a FIFO queue, which S3 cannot notify"
    pairs = (
        ("BATON_INGEST_DEAD_QUEUE", queues.ingest, queues.ingest_dead),
        ("BATON_REGISTRAR_DEAD_QUEUE", queues.registrar, queues.registrar_dead),
        ("BATON_RESULTS_DEAD_QUEUE", queues.results, queues.results_dead),
    )
    for variable, queue, dead in pairs:
        if dead is not None and queue.endswith(".fifo") != dead.endswith(".fifo"):
            yield f"{variable}: a FIFO queue takes a FIFO dead-letter queue, and only such a queue"
    names = [queues.ingest, queues.registrar, queues.results]
    if len(set(names)) != len(names):
        yield "BATON_INGEST_QUEUE: the ingest, registrar and results queues must be three"


def _credential_faults(settings: Settings) -> Iterator[str]:
    aws = settings.aws
    pairs = (
        ("AWS_SECRET_ACCESS_KEY", aws.access_key_id, aws.secret_access_key),
        (
            "BATON_PRESIGN_SECRET_ACCESS_KEY",
            aws.presign_access_key_id,
            aws.presign_secret_access_key,
        ),
    )
    for variable, key, secret in pairs:
        if (key is None) != (secret is None):
            yield f"{variable}: is set together with its access key id, or not at all"


def _time_faults(settings: Settings) -> Iterator[str]:
    heartbeat = settings.consumer.heartbeat
    if heartbeat is not None and heartbeat * 2 > settings.queues.visibility:
        yield (
            "BATON_CONSUMER_HEARTBEAT: must be at most half of BATON_QUEUE_VISIBILITY, "
            "so that one lost heartbeat does not show a message twice"
        )
    if settings.relay.backoff_initial > settings.relay.backoff_max:
        yield "BATON_RELAY_BACKOFF_MAX: is below BATON_RELAY_BACKOFF_INITIAL"
    if settings.runs.retry_initial > settings.runs.retry_max:
        yield "BATON_RUN_RETRY_MAX: is below BATON_RUN_RETRY_INITIAL"
    if settings.reconcile.backoff_initial > settings.reconcile.backoff_max:
        yield "BATON_RECONCILE_BACKOFF_MAX: is below BATON_RECONCILE_BACKOFF_INITIAL"
    seven_days = 604_800  # the longest that a presigned URL can live
    if settings.runs.deadline + settings.runs.upload_slack > seven_days:
        yield "BATON_RUN_DEADLINE: with its upload slack is longer than a presigned URL can live"
