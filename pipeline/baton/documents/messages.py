"""Lawyer-safe sentences that the doors leave on what they end."""

from __future__ import annotations

RUN_RE_EXTRACTED = "The document is being read again; this earlier pass was set aside."
RUN_DELETED = "The document was deleted before its registration was finished."
