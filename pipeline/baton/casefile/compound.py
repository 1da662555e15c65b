"""Writing compound files (MS-CFB, version 3): the container of Outlook messages.

Only what a reader needs: one level of tables, sectors of 512 bytes, short streams in the mini
stream, and siblings as a balanced tree in the order that the format prescribes.
"""

import struct
from dataclasses import dataclass, field
from typing import Final

_SECTOR: Final = 512
_MINI: Final = 64
_CUTOFF: Final = 4096
_FREE: Final = 0xFFFFFFFF
_END: Final = 0xFFFFFFFE
_FAT: Final = 0xFFFFFFFD
_MAGIC: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_HEADER_FATS: Final = 109
_STORAGE, _STREAM, _ROOT = 1, 2, 5


@dataclass(frozen=True, slots=True)
class Storage:
    """A folder of streams and further storages."""

    streams: dict[str, bytes] = field(default_factory=dict)
    storages: dict[str, "Storage"] = field(default_factory=dict)


@dataclass(slots=True)
class _Entry:
    name: str
    kind: int
    data: bytes = b""
    left: int = _FREE
    right: int = _FREE
    child: int = _FREE
    start: int = _END
    size: int = 0


def write_compound(root: Storage) -> bytes:
    """The bytes of a compound file with this root.

    Raises:
        ValueError: It would need more than the one level of tables that is written here.
    """
    entries = [_Entry("Root Entry", _ROOT)]
    entries[0].child = _add_children(entries, root)
    sectors: list[bytes] = []
    fat: list[int] = []
    mini_data, mini_fat = b"", list[int]()
    for entry in entries:
        if entry.kind != _STREAM or not entry.data:
            continue
        entry.size = len(entry.data)
        if len(entry.data) < _CUTOFF:
            entry.start = len(mini_fat)
            count = -(-len(entry.data) // _MINI)
            mini_fat += [*range(entry.start + 1, entry.start + count), _END]
            mini_data += entry.data.ljust(count * _MINI, b"\0")
        else:
            entry.start = _append(sectors, fat, entry.data)
    if mini_data:
        entries[0].start = _append(sectors, fat, mini_data)
        entries[0].size = len(mini_data)
    mini_start = _append(sectors, fat, _packed(mini_fat)) if mini_fat else _END
    mini_count = -(-len(mini_fat) * 4 // _SECTOR)
    directory = _append(sectors, fat, b"".join(map(_directory_entry, entries)), pad=_blank_entry())
    fats = -(-len(fat) // (_SECTOR // 4 - 1))
    if fats > _HEADER_FATS:
        raise ValueError("too large for a compound file of one level")
    places = [len(sectors) + number for number in range(fats)]
    table = _packed([*fat, *[_FAT] * fats]).ljust(fats * _SECTOR, b"\xff")
    header = struct.pack(
        "<8s16sHHHHH6xIIIIIIIII",
        _MAGIC, b"", 0x3E, 3, 0xFFFE, 9, 6, 0, fats, directory, 0, _CUTOFF,
        mini_start, mini_count, _END, 0,
    )  # fmt: skip
    header += _packed(places).ljust(_HEADER_FATS * 4, b"\xff")
    return header + b"".join(sectors) + table


def _add_children(entries: list[_Entry], storage: Storage) -> int:
    numbers: list[int] = []
    for name, data in storage.streams.items():
        numbers.append(len(entries))
        entries.append(_Entry(name, _STREAM, data))
    for name, inner in storage.storages.items():
        number = len(entries)
        numbers.append(number)
        entries.append(_Entry(name, _STORAGE))
        entries[number].child = _add_children(entries, inner)
    numbers.sort(key=lambda number: (len(entries[number].name), entries[number].name.upper()))
    return _tree(entries, numbers)


def _tree(entries: list[_Entry], numbers: list[int]) -> int:
    if not numbers:
        return _FREE
    middle = len(numbers) // 2
    top = entries[numbers[middle]]
    top.left = _tree(entries, numbers[:middle])
    top.right = _tree(entries, numbers[middle + 1 :])
    return numbers[middle]


def _append(sectors: list[bytes], fat: list[int], data: bytes, *, pad: bytes = b"") -> int:
    start = len(sectors)
    if pad:
        data += pad * (-len(data) % _SECTOR // len(pad))
    count = -(-len(data) // _SECTOR)
    padded = data.ljust(count * _SECTOR, b"\0")
    sectors += [padded[at : at + _SECTOR] for at in range(0, len(padded), _SECTOR)]
    fat += [*range(start + 1, start + count), _END]
    return start


def _directory_entry(entry: _Entry) -> bytes:
    name = entry.name.encode("utf-16-le") + b"\0\0"
    return struct.pack(
        "<64sHBBIII16sIQQIQ",
        name, len(name), entry.kind, 1, entry.left, entry.right, entry.child, b"", 0, 0, 0,
        entry.start if entry.kind != _STORAGE else 0, entry.size,
    )  # fmt: skip


def _blank_entry() -> bytes:
    return struct.pack("<64sHBBIII16sIQQIQ", b"", 0, 0, 0, _FREE, _FREE, _FREE, b"", 0, 0, 0, 0, 0)


def _packed(numbers: list[int]) -> bytes:
    return struct.pack(f"<{len(numbers)}I", *numbers)
