"""Bounds on everything that crosses the boundary; each is part of the contract and printed in its document."""

from typing import Final

MAX_INVOCATION_BYTES: Final = 1024 * 1024
"""An invocation's body, in bytes. Candidates and presigned URLs make it large, content never does."""

MAX_ACCEPTED_BYTES: Final = 4096
"""An answer to an invocation, in bytes."""

DEFAULT_ARTIFACT_BYTES: Final = 2 * 1024 * 1024
"""What an invocation allows for the artifact unless it says otherwise, in bytes."""

MAX_ARTIFACT_BYTES: Final = 256 * 1024 * 1024
"""The most that an invocation can allow for the artifact, in bytes."""

MAX_DEPTH: Final = 24
"""Nesting of arrays and objects in any JSON of the contract; the deepest valid effect needs seven."""

MAX_INTEGER: Final = 2**53 - 1
"""The largest number, in size, that may be written: every JSON reader keeps integers up to here exactly (RFC 8785)."""

MAX_URL: Final = 8192
"""Characters of a presigned URL; session tokens make them long."""

MAX_HEADERS: Final = 16
MAX_HEADER_VALUE: Final = 1024
MAX_INPUTS: Final = 16
MAX_CANDIDATES: Final = 500
MAX_OUR_SIDE: Final = 50
MAX_PAGES: Final = 20_000
MAX_PAGE_NUMBER: Final = 100_000

MAX_NAME: Final = 300
"""Characters of a document's name, a party's name, a heading or a file name."""

MAX_REFERENCE: Final = 120
"""Characters of a reference number."""

MAX_LABEL: Final = 80
"""Characters of a tag or of a fact's label."""

MAX_NOTE: Final = 500
"""Characters of a sentence shown to a lawyer: a verdict's note, a concern's reason."""

MAX_POINT: Final = 1000
"""Characters of one point of a brief."""

MAX_SUMMARY: Final = 8000
"""Characters of a brief's summary."""

MAX_KEY: Final = 120
"""Characters of an intent key."""

MAX_INTENTS: Final = 500
MAX_CONCERNS: Final = 20
MAX_FACTS: Final = 24
MAX_SECTIONS: Final = 2000
MAX_POINTS: Final = 40
