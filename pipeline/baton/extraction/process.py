"""The extraction workers' process: one consumer of the ingest queue, several threads, a child process per file."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from dataclasses import replace

from baton.consumers.tickets import TicketConsumer
from baton.db.access import Role
from baton.db.states import Lane
from baton.extraction.limits import Limits
from baton.extraction.reading import FileReader
from baton.extraction.scanner import ClamdScanner, NoScanner, Scanner
from baton.extraction.scratch import Scratch
from baton.extraction.worker import ExtractionWorker
from baton.settings.model import Settings
from baton.settings.work import Extraction, ScannerKind
from baton.workload.ground import ensured, stood

#: Connections besides those of the workers: keeper, heartbeat, wake-up of the relays.
_SPARE = 3


def run(settings: Settings, *, stop: threading.Event) -> None:
    """Work until ``stop`` is set, then finish or release what is in hand.

    :raises StartupRefusal: this process must not run against this database.
    :raises ValueError: no database is configured.
    """
    with (
        stood(
            settings,
            component="extractor",
            role=Role.EXTRACTOR,
            connections=max(settings.database.pool_size, settings.consumer.workers + _SPARE),
            stop=stop,
            metrics=("pramaan_extraction",),
        ) as ground,
        ExitStack() as ends,
    ):
        if ground is None:
            return
        reader = ends.enter_context(FileReader())
        scratch = Scratch()
        ends.callback(scratch.close)
        reader.start()
        ensured(ground.ingest, ground.store)
        ground.progress.started()
        TicketConsumer(
            queue=ground.ingest,
            lane=Lane.INGEST,
            handler=ExtractionWorker(
                engine=ground.engine,
                store=ground.store,
                reader=reader,
                scanner=scanner_of(settings.extraction),
                scratch=scratch,
                limits=limits_of(settings.extraction),
                max_bytes=settings.bucket.max_upload_bytes,
            ),
            engine=ground.engine,
            config=settings.consumer,
            stop=stop,
            prefetch=False,
            progress=ground.progress,
        ).run()


def scanner_of(extraction: Extraction) -> Scanner:
    """The scanner that the settings choose."""
    if extraction.scanner is ScannerKind.NONE:
        return NoScanner()
    return ClamdScanner(extraction.clamd_address, timeout=extraction.clamd_timeout)


def limits_of(extraction: Extraction) -> Limits:
    """What reading one file may cost, as the settings say."""
    return replace(
        Limits(),
        wall_seconds=extraction.wall_seconds,
        cpu_seconds=extraction.cpu_seconds,
        memory_bytes=extraction.memory_bytes,
        pages=extraction.max_pages,
        min_confidence=float(extraction.ocr_min_confidence),
        languages=tuple(extraction.ocr_language.split("+")),
    )
