"""Names: of a queue in a URL, of its dead-letter queue, and the keys of objects."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from baton.aws.errors import KeyRefused
from baton.settings.stores import Queues

FIFO: Final = ".fifo"
_LONGEST_KEY: Final = 1024  # bytes of UTF-8, S3's limit


def is_url(queue: str) -> bool:
    """Whether a queue is given by its URL."""
    return "://" in queue


def queue_name(queue: str) -> str:
    """The name of a queue that is given by name or URL."""
    return urlsplit(queue).path.rpartition("/")[2] if is_url(queue) else queue


def is_fifo(queue: str) -> bool:
    """Whether a queue, given by name or URL, keeps order by group."""
    return queue.endswith(FIFO)


def dead_letter_queue(queue: str) -> str:
    """The dead-letter queue of a queue, where the settings name none: ``name-dead[.fifo]``."""
    stem = queue.removesuffix(FIFO)
    return f"{stem}-dead{FIFO if is_fifo(queue) else ''}"


def dead_letter_queues(queues: Queues) -> dict[str, str]:
    """The dead-letter queue of each of the three queues, by the queue as it is configured."""
    return {
        queues.ingest: queues.ingest_dead or dead_letter_queue(queues.ingest),
        queues.registrar: queues.registrar_dead or dead_letter_queue(queues.registrar),
        queues.results: queues.results_dead or dead_letter_queue(queues.results),
    }


def checked_key(key: str) -> str:
    """``key``, if it is one that Baton could have made.

    Keys arrive in messages and artifacts' notifications; one that climbs out of its prefix would
    be followed by stores that keep objects as files.

    Raises:
        KeyRefused: when empty, longer than 1,024 bytes, absolute, holding control characters,
            or with an empty, ``.`` or ``..`` segment.
    """
    try:
        length = len(key.encode())
    except UnicodeEncodeError:
        raise KeyRefused("an object key holds half a character") from None
    if not 0 < length <= _LONGEST_KEY:
        raise KeyRefused(f"an object key has 1 to {_LONGEST_KEY} bytes, not {length}")
    if any(character < " " or character == "\x7f" for character in key) or "\\" in key:
        raise KeyRefused("an object key holds a control character or a backslash")
    if any(segment in {"", ".", ".."} for segment in key.split("/")):
        raise KeyRefused("an object key has an empty, '.' or '..' segment")
    return key
