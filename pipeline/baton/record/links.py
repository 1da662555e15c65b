"""Finding the document that a link's words mean.

Only documents that the firm's member sees are looked at, and only of the same matter: what another firm calls its files
can neither be linked to nor found out. Words that could mean two documents mean none; a person decides.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from sqlalchemy import and_, select

from baton.contract.classification import LinkBy, LinkTarget
from baton.contract.wording import clean_line
from baton.db.connect import Executor
from baton.db.rows import Document
from baton.db.tables import assertion, documents
from baton.record.intents import Reason, fold

MAX_DOCUMENTS: Final = 20_000
"""Documents of one matter that are looked through; in a larger matter every link is left to a person."""
MAX_CHARACTERS: Final = 2_000_000
"""Of their names together, likewise: the linking document is locked while they are read."""
MAX_COMPARISONS: Final = 500_000
"""Names that one turn's references are looked for in. An agent may send hundreds of them, of words that every name has;
those that come after are left to a person."""

_EXTENSION: Final = re.compile(r"\.[a-z0-9]{2,5}$")
_PUNCTUATION: Final = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True)
class Found:
    """One document, or the reason why there is not exactly one."""

    target: UUID | None = None
    reason: Reason | None = None


class Directory:
    """The other documents of a matter by their names: as uploaded, and as registered."""

    def __init__(self, names: Iterable[tuple[UUID, str, str | None]], *, complete: bool = True) -> None:
        self._exact: defaultdict[str, set[UUID]] = defaultdict(set)
        self._plain: defaultdict[str, set[UUID]] = defaultdict(set)
        self._worded: defaultdict[str, list[str]] | None = None
        self._comparisons = 0
        self._complete = complete
        for document_id, name, registered in names:
            for each in (name, registered):
                if each is not None:
                    # an agent was given the name cleaned, so it gives it back cleaned
                    self._exact[fold(clean_line(each))].add(document_id)
                    self._plain[_plain(each)].add(document_id)

    def find(self, target: LinkTarget) -> Found:
        """The one document that the words mean: the very name first, then the name but for its punctuation.

        A reference is the number people use, so it is looked for within names.
        """
        if not self._complete:
            return Found(reason=Reason.TARGET_AMBIGUOUS)
        words = _plain(target.value)
        found: set[UUID] | None = self._exact.get(fold(target.value))
        if not found:
            found = self._plain.get(words, set()) if words else set()
        if not found and target.by is LinkBy.REFERENCE and words:
            found = self._within(words)
        if found is None:
            return Found(reason=Reason.TARGET_AMBIGUOUS)
        if not found:
            return Found(reason=Reason.TARGET_UNKNOWN)
        return Found(target=next(iter(found))) if len(found) == 1 else Found(reason=Reason.TARGET_AMBIGUOUS)

    def _within(self, words: str) -> set[UUID] | None:
        """Documents with the words in their name: two stand for any number, ``None`` for too many names to look at.

        Only names with the rarest of the words are looked at.
        """
        if self._worded is None:
            self._worded = defaultdict(list)
            for name in self._plain:
                for word in set(name.split()):
                    self._worded[word].append(f" {name} ")
        names = min((self._worded.get(word, []) for word in words.split()), key=len)
        self._comparisons += len(names)
        if self._comparisons > MAX_COMPARISONS:
            return None
        found: set[UUID] = set()
        for name in names:
            if f" {words} " in name:
                found |= self._plain[name[1:-1]]
                if len(found) > 1:
                    break
        return found


def read_directory(executor: Executor, document: Document) -> Directory:
    """The matter's other live documents, read as the firm's member. Served by ``doc_matter``."""
    rows = executor.execute(
        select(documents.c.id, documents.c.name, assertion.c.value)
        .outerjoin(
            assertion,
            and_(
                assertion.c.document_id == documents.c.id,
                assertion.c.kind == "name",
                assertion.c.state.in_(("applied", "accepted")),
            ),
        )
        .where(
            documents.c.firm_id == document.firm_id,
            documents.c.matter_id == document.matter_id,
            documents.c.id != document.id,
            documents.c.deleted_at.is_(None),
        )
        .limit(MAX_DOCUMENTS + 1)
    ).all()
    if len(rows) > MAX_DOCUMENTS or sum(len(row[1]) + len(row[2] or "") for row in rows) > MAX_CHARACTERS:
        return Directory((), complete=False)
    return Directory((row[0], row[1], row[2]) for row in rows)


def _plain(name: str) -> str:
    """Words only, without a file's extension: `Supply_Agreement-2021.pdf` is `supply agreement 2021`."""
    return _PUNCTUATION.sub(" ", _EXTENSION.sub("", fold(name))).strip()
