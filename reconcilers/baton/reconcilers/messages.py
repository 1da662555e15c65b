"""What counsel reads where a repair had to give up: one sentence, without ids, and what to do."""

from __future__ import annotations

from typing import Final

NOT_READ: Final = (
    "The document could not be read although it was tried several times; please have it read again, "
    "and tell support if it happens twice."
)
NOT_REGISTERED: Final = (
    "The document could not be registered although it was asked for several times; please ask for it again, "
    "and tell support if it happens twice."
)
NOT_UNDERSTOOD: Final = "This part could not be prepared although it was asked for several times."
