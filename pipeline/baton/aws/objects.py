"""The object store: look at, fetch, put and presign objects of one bucket.

Keys are checked before they are used. ``ObjectMissing`` is only said of an object in a bucket
that is there; a store that fails is ``StoreUnavailable``, never taken for absence.

On AWS a role without ``s3:ListBucket`` is told 403 for an object that does not exist; that reads
as a failing store. Roles that look for artifacts need it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final

from baton.aws.clients import Clients
from baton.aws.errors import (
    AwsError,
    BucketMissing,
    CredentialsTooShort,
    FaultKind,
    ObjectMissing,
    ObjectTooLarge,
    RequestRefused,
    StoreUnavailable,
)
from baton.aws.faults import Service, translated
from baton.aws.naming import checked_key
from baton.settings.stores import Bucket

LONGEST_URL: Final = 604_800
"""Seconds that a presigned URL can live at most."""

_CHUNK: Final = 256 * 1024
_SLACK: Final = 60.0  # seconds by which signing credentials must outlive a URL


@dataclass(frozen=True, slots=True)
class ObjectHead:
    """What the store knows of an object without its bytes."""

    key: str
    size: int
    """Bytes."""
    etag: str
    content_type: str
    sha256: str | None
    """Hex; ``None`` where the store keeps no SHA-256 of the whole object."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """What was written to the file."""

    size: int
    """Bytes."""
    sha256: str
    """Hex, computed from the bytes received."""
    etag: str
    content_type: str


@dataclass(frozen=True, slots=True)
class PresignedPut:
    """An address that takes one upload, and the headers that it demands verbatim."""

    url: str = field(repr=False)
    headers: dict[str, str]


class Store:
    """One bucket, shared between threads."""

    def __init__(self, clients: Clients, bucket: Bucket, *, create: bool = True) -> None:
        self.name = bucket.name
        self._fetch_timeout = bucket.fetch_timeout
        self._create = create
        self._clients = clients

    def ensure(self) -> None:
        """Make the bucket where it is missing; one that exists is left as it is.

        Raises:
            BucketMissing: when it does not exist and making it is not allowed.
            StoreUnavailable: of kind DENIED also where the name is taken by another account;
                bucket names are shared by all of them.
        """
        s3 = self._clients.s3
        try:
            self._require_bucket()
        except BucketMissing:
            if not self._create:
                raise
        else:
            return
        options: dict[str, Any] = {}
        region = s3.meta.region_name
        if region != "us-east-1":
            options["CreateBucketConfiguration"] = {"LocationConstraint": region}
        try:
            with translated(Service.S3, "CreateBucket"):
                s3.create_bucket(Bucket=self.name, **options)
        except AwsError as error:
            if error.code != "BucketAlreadyOwnedByYou":
                raise

    def head(self, key: str) -> ObjectHead:
        """What the store knows of an object.

        Raises:
            ObjectMissing, BucketMissing, StoreUnavailable, KeyRefused.
        """
        try:
            with translated(Service.S3, "HeadObject"):
                found = self._clients.s3.head_object(Bucket=self.name, Key=checked_key(key), ChecksumMode="ENABLED")
        except ObjectMissing:
            self._require_bucket()  # a HEAD has no body to tell which of the two is missing
            raise
        return ObjectHead(
            key=key,
            size=found["ContentLength"],
            etag=found["ETag"].strip('"'),
            content_type=found.get("ContentType", ""),
            sha256=_whole_sha256(found.get("ChecksumSHA256"), found.get("ChecksumType")),
        )

    def exists(self, key: str) -> bool:
        """Whether there is such an object; a failing store raises, it is not absence."""
        try:
            self.head(key)
        except ObjectMissing:
            return False
        return True

    def fetch(self, key: str, path: Path, *, limit: int) -> Fetched:
        """Stream an object into a new file, hashing it on the way.

        The file is gone again when anything goes wrong.

        Args:
            key: of the object.
            path: of a file that does not exist yet.
            limit: bytes; one more is ``ObjectTooLarge``.

        Raises:
            ObjectMissing, ObjectTooLarge, BucketMissing, StoreUnavailable, KeyRefused.
        """
        with path.open("xb") as file:
            try:
                return self._stream(key, file.write, limit=limit)
            except BaseException:
                path.unlink(missing_ok=True)
                raise

    def read(self, key: str, *, limit: int) -> bytes:
        """A small object's bytes; errors as with ``fetch``."""
        parts: list[bytes] = []
        self._stream(key, parts.append, limit=limit)
        return b"".join(parts)

    def put(
        self,
        key: str,
        body: bytes | IO[bytes],
        *,
        content_type: str,
        only_new: bool = False,
        sha256: str | None = None,
    ) -> str:
        """Write an object with its SHA-256, and return its ETag.

        Args:
            key: of the object.
            body: its bytes.
            content_type: what the store says of them.
            only_new: whether one that is there stays.
            sha256: hex, of the bytes that it must be; ``None``: of whatever ``body`` brings.

        Raises:
            ObjectExists: with ``only_new``, when there is one already.
            ObjectAltered: when ``body`` brings other bytes than ``sha256``; what was there before stays.
            BucketMissing, StoreUnavailable, KeyRefused.
        """
        options: dict[str, Any] = {"IfNoneMatch": "*"} if only_new else {}
        if sha256 is not None:
            options["ChecksumSHA256"] = base64.b64encode(bytes.fromhex(sha256)).decode()
        with translated(Service.S3, "PutObject"):
            answer = self._clients.s3.put_object(
                Bucket=self.name,
                Key=checked_key(key),
                Body=body,
                ContentType=content_type,
                ChecksumAlgorithm="SHA256",
                **options,
            )
        return answer["ETag"].strip('"')

    def delete(self, key: str) -> None:
        """Delete an object; one that is not there is no error."""
        with translated(Service.S3, "DeleteObject"):
            self._clients.s3.delete_object(Bucket=self.name, Key=checked_key(key))

    def remove(self) -> None:
        """Delete the bucket with all its objects (tests and the demo; never a running system).

        Raises:
            BucketMissing, StoreUnavailable, RequestRefused.
        """
        s3 = self._clients.s3
        while True:
            with translated(Service.S3, "ListObjectsV2"):
                page = s3.list_objects_v2(Bucket=self.name)
            keys = [each["Key"] for each in page.get("Contents", ())]
            if not keys:
                break
            with translated(Service.S3, "DeleteObjects"):
                answer = s3.delete_objects(
                    Bucket=self.name, Delete={"Objects": [{"Key": key} for key in keys], "Quiet": True}
                )
            for refused in answer.get("Errors", ()):
                code = refused.get("Code", "")
                raise RequestRefused(f"s3 DeleteObjects: {code}", code=code)
        with translated(Service.S3, "DeleteBucket"):
            s3.delete_bucket(Bucket=self.name)

    def presign_get(self, key: str, *, seconds: int) -> str:
        """An address from which anyone can fetch the object for ``seconds``.

        Raises:
            CredentialsTooShort: when the signing credentials expire before.
        """
        return self._presign("get_object", {"Key": checked_key(key)}, seconds=seconds)

    def presign_put(self, key: str, *, content_type: str, seconds: int) -> PresignedPut:
        """An address that takes one upload within ``seconds``, and never a second one.

        ``If-None-Match: *`` and the content type are part of the signature: an upload without
        them is refused, a replay is answered 412.

        Raises:
            CredentialsTooShort: when the signing credentials expire before.
        """
        asked = {"Key": checked_key(key), "ContentType": content_type, "IfNoneMatch": "*"}
        url = self._presign("put_object", asked, seconds=seconds)
        return PresignedPut(url, {"Content-Type": content_type, "If-None-Match": "*"})

    def _presign(self, action: str, asked: dict[str, str], *, seconds: int) -> str:
        if not 0 < seconds <= LONGEST_URL:
            raise ValueError(f"a presigned URL lives 1 to {LONGEST_URL} seconds, not {seconds}")
        left = self._clients.signing_expiry()
        if left is not None and left < seconds + _SLACK:
            raise CredentialsTooShort(
                f"the signing credentials expire in {left:.0f} s, before a URL of {seconds} s; "
                "set BATON_PRESIGN_ACCESS_KEY_ID or shorten BATON_RUN_DEADLINE"
            )
        with translated(Service.S3, "presign"):
            return self._clients.presigner.generate_presigned_url(
                action, Params={"Bucket": self.name, **asked}, ExpiresIn=seconds
            )

    def _stream(self, key: str, write: Callable[[bytes], object], *, limit: int) -> Fetched:
        deadline = time.monotonic() + self._fetch_timeout
        digest, size = hashlib.sha256(), 0
        with translated(Service.S3, "GetObject"):
            found = self._clients.s3.get_object(Bucket=self.name, Key=checked_key(key))
        with closing(found["Body"]) as body:
            if found["ContentLength"] > limit:
                raise ObjectTooLarge(f"an object of {found['ContentLength']} bytes, over {limit}")
            while True:
                with translated(Service.S3, "GetObject"):
                    chunk = body.read(_CHUNK)
                if not chunk:
                    break
                size += len(chunk)
                if size > limit:
                    raise ObjectTooLarge(f"an object of more than {limit} bytes")
                if time.monotonic() > deadline:
                    raise StoreUnavailable("s3 GetObject: the object trickles in too slowly", kind=FaultKind.TIMEOUT)
                digest.update(chunk)
                write(chunk)
        return Fetched(
            size=size,
            sha256=digest.hexdigest(),
            etag=found["ETag"].strip('"'),
            content_type=found.get("ContentType", ""),
        )

    def _require_bucket(self) -> None:
        """Raises ``BucketMissing`` where the bucket itself is gone."""
        try:
            with translated(Service.S3, f"HeadBucket {self.name}"):
                self._clients.s3.head_bucket(Bucket=self.name)
        except ObjectMissing as missing:  # a bare 404, here said of the bucket
            raise BucketMissing(f"no bucket {self.name}", code="NoSuchBucket") from missing


def _whole_sha256(checksum: str | None, kind: str | None) -> str | None:
    """The store's checksum in hex, unless it is one over the parts of a multipart upload."""
    if not checksum or kind == "COMPOSITE" or "-" in checksum:
        return None
    try:
        return base64.b64decode(checksum, validate=True).hex()
    except binascii.Error:
        return None
