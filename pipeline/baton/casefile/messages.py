"""Mail as it travels (EML) and as Outlook keeps it (MSG)."""

import struct
from dataclasses import dataclass
from datetime import UTC, datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from typing import Final

from baton.casefile.compound import Storage, write_compound

_UNICODE: Final = 0x001F
_BINARY: Final = 0x0102
_INTEGER: Final = 0x0003
_TIME: Final = 0x0040
_READABLE: Final = 6
_FILETIME_EPOCH: Final = datetime(1601, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Person:
    """A name and an address, `user@host`."""

    name: str
    address: str


@dataclass(frozen=True, slots=True)
class Attached:
    """A file in a message."""

    name: str
    mime: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Letter:
    """One message, however it is stored."""

    sender: Person
    to: Person
    subject: str
    sent: datetime
    body: str
    attached: tuple[Attached, ...] = ()


def make_eml(letter: Letter) -> bytes:
    """The message in the form of RFC 5322."""
    message = EmailMessage(policy=SMTP)
    message["From"] = _address(letter.sender)
    message["To"] = _address(letter.to)
    message["Subject"] = letter.subject
    message["Date"] = letter.sent
    message["Message-ID"] = f"<{letter.sent:%Y%m%d%H%M}@{letter.sender.address.partition('@')[2]}>"
    message.set_content(letter.body)
    for file in letter.attached:
        main, _, sub = file.mime.partition("/")
        message.add_attachment(file.data, maintype=main, subtype=sub, filename=file.name)
    if message.is_multipart():
        # A random boundary would make every case file another one.
        message.set_boundary("=_part_of_the_case_file")
    return message.as_bytes()


def make_msg(letter: Letter) -> bytes:
    """The message as Outlook saves it (MS-OXMSG)."""
    root = _Properties()
    root.text(0x001A, "IPM.Note")
    root.text(0x0037, letter.subject)
    root.text(0x0C1A, letter.sender.name)
    root.text(0x0C1F, letter.sender.address)
    root.text(0x1000, letter.body)
    root.time(0x0039, letter.sent)
    counts = (1, len(letter.attached), 1, len(letter.attached))
    storages = {
        "__nameid_version1.0": Storage({f"__substg1.0_{number}0102": b"" for number in ("0002", "0003", "0004")}),
        "__recip_version1.0_#00000000": _recipient(letter.to),
    }
    for number, file in enumerate(letter.attached):
        storages[f"__attach_version1.0_#{number:08X}"] = _attachment(file, number)
    streams = root.streams(header=struct.pack("<8x4I8x", *counts))
    return write_compound(Storage(streams, storages))


class _Properties:
    def __init__(self) -> None:
        self._fixed = b""
        self._streams: dict[str, bytes] = {}

    def text(self, tag: int, value: str) -> None:
        data = value.replace("\n", "\r\n").encode("utf-16-le")
        self._long(tag, _UNICODE, data, size=len(data) + 2)

    def binary(self, tag: int, data: bytes) -> None:
        self._long(tag, _BINARY, data, size=len(data))

    def integer(self, tag: int, value: int) -> None:
        self._fixed += struct.pack("<HHIII", _INTEGER, tag, _READABLE, value, 0)

    def time(self, tag: int, value: datetime) -> None:
        ticks = int((value - _FILETIME_EPOCH).total_seconds()) * 10_000_000
        self._fixed += struct.pack("<HHIQ", _TIME, tag, _READABLE, ticks)

    def streams(self, *, header: bytes) -> dict[str, bytes]:
        return {"__properties_version1.0": header + self._fixed} | self._streams

    def _long(self, tag: int, kind: int, data: bytes, *, size: int) -> None:
        self._fixed += struct.pack("<HHIII", kind, tag, _READABLE, size, 0)
        self._streams[f"__substg1.0_{tag:04X}{kind:04X}"] = data


def _recipient(person: Person) -> Storage:
    properties = _Properties()
    properties.integer(0x0C15, 1)
    properties.text(0x3001, person.name)
    properties.text(0x39FE, person.address)
    return Storage(properties.streams(header=bytes(8)))


def _attachment(file: Attached, number: int) -> Storage:
    properties = _Properties()
    properties.integer(0x0E21, number)
    properties.integer(0x3705, 1)
    properties.text(0x3707, file.name)
    properties.text(0x370E, file.mime)
    properties.binary(0x3701, file.data)
    return Storage(properties.streams(header=bytes(8)))


def _address(person: Person) -> Address:
    user, _, host = person.address.partition("@")
    return Address(person.name, user, host)
