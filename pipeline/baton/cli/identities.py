"""Ids for what people name: firms and matters by a word, and files by what they are."""

from __future__ import annotations

import hashlib
import unicodedata
from typing import Final
from uuid import UUID, uuid5

import click

#: Under which firms' names become ids. Changing it would change every id.
_FIRMS: Final = UUID("6d4f3f2e-6b0a-5c5e-9d5b-0a9c5b0f7e11")
_TIMESTAMP: Final = 2**48 - 1


def firm_id(written: str) -> UUID:
    """The id as it is written, or the one that a firm's name stands for.

    :raises click.UsageError: it is blank.
    """
    return _as_uuid(written) or uuid5(_FIRMS, _plain(written))


def matter_id(written: str, *, firm: UUID) -> UUID:
    """The id as it is written, or the one that a name stands for within the firm.

    :raises click.UsageError: it is blank.
    """
    return _as_uuid(written) or uuid5(firm, _plain(written))


def document_id(*, firm: UUID, matter: UUID, name: str, digest: bytes, changed_at: float) -> UUID:
    """The id of a file's upload: the same file under the same name in the same matter has the same one.

    So an upload that broke off, or that two people began at once, goes on where it is and never becomes a second
    document. It has the form of a UUIDv7 (RFC 9562), with the file's time of change as its time.

    :param digest: SHA-256 of the content.
    :param changed_at: seconds since the epoch.
    """
    anchor = hashlib.sha256(firm.bytes + matter.bytes + digest + name.encode()).digest()
    chance = int.from_bytes(anchor[:10], "big")
    moment = min(max(int(changed_at * 1000), 0), _TIMESTAMP)
    value = moment << 80 | 0x7 << 76 | (chance >> 62 & 0xFFF) << 64 | 0b10 << 62 | chance & (2**62 - 1)
    return UUID(int=value)


def _as_uuid(written: str) -> UUID | None:
    try:
        return UUID(written.strip())
    except ValueError:
        return None


def _plain(name: str) -> str:
    plain = " ".join(unicodedata.normalize("NFC", name).split())
    if not plain:
        raise click.UsageError("a firm or a matter has a name: this one is blank")
    return plain
