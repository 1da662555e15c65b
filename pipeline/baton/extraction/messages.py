"""What counsel reads where the worker, and not a reader, ends an extraction.

Each is one sentence or two, without ids or technical words, and says what to do where anything can be done. The reasons
that reading itself finds stand beside their codes in ``outcomes``.
"""

from __future__ import annotations

from typing import Final

OBJECT_MISSING: Final = "The uploaded file can no longer be found. Upload the document again."
TOO_LARGE: Final = "The file is too large to be processed. Split the document and upload the parts."
INFECTED: Final = "The file was found to contain malware and was not opened. Upload a clean copy."
UNSCANNABLE: Final = (
    "The file is too large to be checked for malware and was not opened. Split it and upload the parts."
)
CRASHED: Final = (
    "The file could not be read after several attempts. Save it anew, for instance as PDF, and upload it again."
)
