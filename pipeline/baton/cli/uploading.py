"""Uploading files side by side: row, bytes, hand-over, for each by itself; one that fails does not stop the others."""

from __future__ import annotations

import hashlib
import os
import stat
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import IO, Final
from uuid import UUID

from baton.aws.errors import ObjectAltered, ObjectMissing
from baton.aws.objects import ObjectHead, Store
from baton.cli.desks import Desk
from baton.cli.failures import CommandFailed, words_of
from baton.cli.files import LocalFile
from baton.cli.identities import document_id
from baton.db.states import ProcessingStatus
from baton.documents.errors import DocumentDeleted
from baton.documents.upload import create_document, finalize_upload, key_of
from baton.settings.exits import Exit

_CHUNK: Final = 2**20
_CHANGED: Final = "changed while it was being uploaded; upload it again"


class Result(StrEnum):
    """What became of one file."""

    UPLOADED = "uploaded"
    ALREADY_THERE = "already_there"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Uploaded:
    """One file, and its document where there is one."""

    file: LocalFile
    result: Result
    document: UUID | None = None
    error: str | None = None
    code: Exit = Exit.OK
    """The exit code that the error alone would have."""

    def as_json(self) -> dict[str, object]:
        """For machines."""
        return {
            "path": str(self.file.path),
            "name": self.file.name,
            "result": self.result,
            "id": self.document,
            "error": self.error,
        }


@dataclass(frozen=True, slots=True)
class _Known:
    """The head of an object that was looked at before the transaction, in which nothing slow happens."""

    found: ObjectHead

    def head(self, key: str) -> ObjectHead:
        if key != self.found.key:
            raise ObjectMissing(f"no object {key}")
        return self.found


@dataclass(frozen=True, slots=True)
class Uploader:
    """Brings files into one matter."""

    desk: Desk
    store: Store
    matter: UUID
    content_type: str | None = None
    """Of every file; ``None``: of each by its name."""
    tell: Callable[[int], None] = lambda _size: None
    """Called with the bytes that are done, hashing and sending counted as half each."""

    def upload(self, files: Sequence[LocalFile], *, parallel: int) -> Iterator[Uploaded]:
        """Upload, ``parallel`` at once; each file's result as it comes. What is interrupted is finished, the rest left."""
        stop = threading.Event()
        waiting = iter(files)
        with ThreadPoolExecutor(parallel, thread_name_prefix="upload") as pool:
            running: set[Future[Uploaded]] = set()
            try:
                while True:
                    while len(running) < parallel and (file := next(waiting, None)) is not None:
                        running.add(pool.submit(self._one, file, stop))
                    if not running:
                        return
                    done, running = wait(running, return_when=FIRST_COMPLETED)
                    for each in done:
                        yield each.result()
            finally:
                stop.set()

    def _one(self, file: LocalFile, stop: threading.Event) -> Uploaded:
        try:
            with _opened(file) as content:
                document, result = self._bring(file, content, stop)
        except Exception as error:  # noqa: BLE001 - told with the file; the others go on
            words, code = words_of(error)
            return Uploaded(file, Result.FAILED, error=words.removeprefix(f"{file.path}: "), code=code)
        return Uploaded(file, result, document=document)

    def _bring(self, file: LocalFile, content: IO[bytes], stop: threading.Event) -> tuple[UUID, Result]:
        before = os.fstat(content.fileno())
        limit = self.desk.settings.bucket.max_upload_bytes
        if before.st_size > limit:
            raise CommandFailed(f"is larger than {limit} bytes (BATON_MAX_UPLOAD_BYTES)")
        digest = self._hash(content, stop)
        identity = document_id(
            firm=self.desk.firm,
            matter=self.matter,
            name=file.name,
            digest=digest.digest(),
            changed_at=before.st_mtime,
        )
        content_type = self.content_type or file.content_type
        with self.desk.transaction() as connection:
            document = create_document(
                connection,
                firm_id=self.desk.firm,
                matter_id=self.matter,
                name=file.name,
                content_type=content_type,
                document_id=identity,
            )
        if not document.live:
            raise DocumentDeleted(f"was uploaded and deleted before; 'baton restore {identity}' brings it back")
        if document.processing_status is not ProcessingStatus.PENDING:
            self.tell(before.st_size - before.st_size // 2)
            return identity, Result.ALREADY_THERE
        content.seek(0)
        key = key_of(document)
        # with the checksum that the id is made from: a file that changed meanwhile cannot take the place of what
        # somebody else brought under this id
        try:
            self.store.put(key, content, content_type=content_type, sha256=digest.hexdigest())
        except ObjectAltered:
            raise CommandFailed(_CHANGED) from None
        self.tell(before.st_size - before.st_size // 2)
        after = os.fstat(content.fileno())
        if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
            raise CommandFailed(_CHANGED)
        head = self.store.head(key)
        if head.size != before.st_size or head.sha256 not in (None, digest.hexdigest()):
            raise CommandFailed("did not arrive as it was sent; upload it again")
        with self.desk.transaction() as connection:
            finalize_upload(connection, document_id=identity, store=_Known(head), actor=self.desk.actor)
        return identity, Result.UPLOADED

    def _hash(self, content: IO[bytes], stop: threading.Event) -> hashlib._Hash:
        digest = hashlib.sha256()
        told = 0
        while chunk := content.read(_CHUNK):
            if stop.is_set():
                raise CommandFailed("was not uploaded: stopped")
            digest.update(chunk)
            told += len(chunk)
            half = told // 2 - (told - len(chunk)) // 2
            self.tell(half)
        return digest


@contextmanager
def _opened(file: LocalFile) -> Iterator[IO[bytes]]:
    """The file, if it is one: a pipe or a device would never end."""
    if file.fault is not None:
        raise file.fault
    if not stat.S_ISREG(file.path.stat().st_mode):
        raise CommandFailed("is not a regular file")
    with file.path.open("rb") as content:
        yield content
