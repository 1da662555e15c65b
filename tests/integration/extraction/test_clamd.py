"""Infected uploads, with ClamAV's own daemon."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from baton.consumers.verdicts import Ack, Retry
from baton.db.states import FailureKind, ProcessingStatus
from baton.extraction.scanner import ClamdScanner
from support.waiting import wait_until

PATTERN = b"BATON-TEST-PATTERN-OF-AN-INFECTED-UPLOAD"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A daemon that knows one pattern."""
    folder: Path = tmp_path_factory.mktemp("clamd")
    (folder / "db").mkdir()
    (folder / "db" / "own.ndb").write_text(f"Baton.Test.Upload:0:*:{PATTERN.hex()}\n")
    (folder / "clamd.conf").write_text(
        f"Foreground yes\nDatabaseDirectory {folder / 'db'}\nLocalSocket {folder / 'socket'}\n"
        f"TemporaryDirectory {folder}\nLogFile {folder / 'log'}\n"
    )
    command = ["/usr/sbin/clamd", "--config-file", str(folder / "clamd.conf")]
    daemon = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        found = f"unix:{folder / 'socket'}"
        wait_until(ClamdScanner(found).is_alive, 60, what="clamd")
        yield found
    finally:
        daemon.terminate()
        daemon.wait(20)


@pytest.mark.needs("clamd")
def test_an_infected_upload_fails_beside_clean_ones(firm: Any, stub: Any, address: str) -> None:
    """The infected one is failed unread, with a reason; its clean neighbour is indexed."""
    worker = firm.worker(stub, scanner=ClamdScanner(address))
    infected, clean = firm.upload(b"x" * 100_000 + PATTERN), firm.upload(b"y" * 100_000)
    assert worker.handle(infected) == Ack()
    assert worker.handle(clean) == Ack()
    assert firm.document(infected).processing_status is ProcessingStatus.FAILED
    assert firm.document(infected).failure_kind == FailureKind.INFECTED
    assert firm.document(clean).processing_status is ProcessingStatus.INDEXED
    assert stub.reads == 1


@pytest.mark.needs("clamd")
def test_an_upload_waits_for_a_daemon_that_is_away(firm: Any, stub: Any, address: str, tmp_path: Path) -> None:
    """Nothing is let through meanwhile, and nothing is lost."""
    ticket = firm.upload()
    away = firm.worker(stub, scanner=ClamdScanner(f"unix:{tmp_path / 'nobody'}", timeout=1.0))
    assert isinstance(away.handle(ticket), Retry)
    assert firm.document(ticket).processing_status is ProcessingStatus.UPLOADED
    assert firm.worker(stub, scanner=ClamdScanner(address)).handle(ticket) == Ack()
    assert firm.document(ticket).processing_status is ProcessingStatus.INDEXED
