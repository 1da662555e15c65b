"""What a member finds of what was extracted, and what finding costs."""

import random
import string
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import text

from baton.consumers.verdicts import Ack
from baton.db.access import Role
from baton.db.connect import firm_transaction
from baton.extraction.outcomes import Page, Source
from baton.extraction.pages import VECTOR_BYTES, searchable


def _page(words: str, number: int = 1) -> Page:
    return Page(number, words, Source.NATIVE, None)


def test_a_member_finds_pages_of_its_own_firm_only(firm: Any, stub: Any) -> None:
    """Two firms with the same words: each finds its own pages, and nobody finds without a firm."""
    other = firm.other()
    stub.pages = (_page("the harbour contract"), _page("an annex on the harbour", 2))
    mine, theirs = firm.upload(), other.upload()
    assert firm.worker(stub).handle(mine) == Ack()
    assert other.worker(stub).handle(theirs) == Ack()
    assert {(hit.document_id, hit.page_number) for hit in firm.search("harbour")} == {
        (mine.document_id, 1),
        (mine.document_id, 2),
    }
    assert {hit.document_id for hit in other.search("harbour")} == {theirs.document_id}
    with firm.database.engine(Role.MEMBER_APP).begin() as connection:
        assert connection.execute(text("SELECT count(*) FROM app.search('harbour', 50)")).scalar_one() == 0


def test_what_is_found_no_more_takes_no_places(firm: Any, stub: Any) -> None:
    """Pages of deleted documents, however good, are not counted before those that can be shown."""
    stub.pages = tuple(_page("lease lease lease", number) for number in range(1, 4))
    gone = firm.upload()
    assert firm.worker(stub).handle(gone) == Ack()
    stub.pages = (_page("a lease, and many other words"),)
    there = firm.upload()
    assert firm.worker(stub).handle(there) == Ack()
    firm.delete(gone)
    assert [hit.document_id for hit in firm.search("lease", most=3)] == [there.document_id]


def test_search_reads_one_firms_pages_by_the_index(firm: Any) -> None:
    """A word that every firm uses: the GIN index is used under row-level security, and other firms' pages are not read."""
    firm.prepare(
        """
        WITH firm AS (SELECT gen_random_uuid() AS id FROM generate_series(1, 60)
                      UNION ALL SELECT CAST(:mine AS uuid)),
             made AS (INSERT INTO documents (id, firm_id, matter_id, name, object_key, content_type)
                      SELECT gen_random_uuid(), firm.id, gen_random_uuid(), 'a', 'k' || n || firm.id, 'text/plain'
                        FROM firm, generate_series(1, 50) n
                      RETURNING id, firm_id)
        INSERT INTO document_search (firm_id, document_id, page_number, vector)
        SELECT firm_id, id, p, to_tsvector('simple', 'common words number ' || p || ' ' || id)
          FROM made, generate_series(1, 4) p
        """,
        mine=firm.id,
    )
    with firm.database.preparer.connect() as connection:
        connection.execution_options(isolation_level="AUTOCOMMIT").execute(text("VACUUM ANALYZE document_search"))
    plan = _plan(firm)
    assert "document_search_vector" in plan
    assert "Seq Scan on document_search" not in plan
    buffers = _buffers(firm)
    assert buffers < 400, "of about 12,000 pages of 61 firms, 200 are this one's"


def _plan(firm: Any) -> str:
    """The plan of the function's own inner statement, as the role that owns it."""
    statement = """
        EXPLAIN SELECT s.document_id FROM (SELECT websearch_to_tsquery('simple', 'common') AS query) q
          JOIN document_search s ON s.vector @@ q.query WHERE s.firm_id = (SELECT app.firm_id())
    """
    with firm.database.preparer.begin() as connection:
        connection.execute(text("SET LOCAL ROLE baton_search"))
        connection.execute(text("SELECT set_config('baton.firm_id', :firm, true)"), {"firm": str(firm.id)})
        return "\n".join(row[0] for row in connection.execute(text(statement)))


def _buffers(firm: Any) -> int:
    with firm_transaction(firm.database.engine(Role.MEMBER_APP), firm.id) as connection:
        connection.execute(text("SELECT count(*) FROM app.search('common', 200)"))
        rows = connection.execute(
            text("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT * FROM app.search('common', 200)")
        ).scalar_one()
    plan = rows[0]["Plan"]
    return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])


def _worst(kind: str) -> str:
    chosen = random.Random(7)
    if kind == "hyphens":
        return "".join(
            "".join(chosen.choices(string.ascii_lowercase, k=3)) + chosen.choice("- ") for _ in range(50_000)
        )
    if kind == "chinese hyphens":
        chars = [chr(0x4E00 + chosen.randrange(20_000)) for _ in range(160_000)]
        return " ".join(
            "-".join(("".join(chars[n : n + 2]), "".join(chars[n + 2 : n + 4]))) for n in range(0, 160_000, 4)
        )
    if kind == "addresses":
        words = ("".join(chosen.choices(string.ascii_lowercase, k=4)) for _ in range(200_000 // 13))
        return " ".join(f"{word}.de/{word}" for word in words)
    if kind == "one word":
        return "x" * 200_000
    first = {"devanagari": 0x0905, "chinese": 0x4E00, "four bytes": 0x20000}[kind]
    spread = 50 if kind == "devanagari" else 20_000
    letters = (chr(first + chosen.randrange(spread)) for _ in range(200_000))
    return "".join(letter if n % 3 else f" {letter}" for n, letter in enumerate(letters))[:200_000]


@pytest.mark.parametrize(
    "kind", ["hyphens", "chinese hyphens", "addresses", "one word", "devanagari", "chinese", "four bytes"]
)
def test_the_longest_page_fits_into_its_vector(firm: Any, stub: Any, kind: str) -> None:
    """200,000 characters of the worst kind are stored whole, and found by their beginning."""
    ticket = firm.upload()
    stub.pages = (_page("beginning " + _worst(kind)[:199_990]),)
    assert firm.worker(stub).handle(ticket) == Ack()
    assert len(firm.search("beginning")) == 1
    (length,) = firm.rows("SELECT length(text) AS n FROM document_page WHERE document_id = :id", id=ticket.document_id)
    assert length.n == len(stub.pages[0].text)


def test_a_cut_never_splits_a_character() -> None:
    """The cut is counted in characters, and what it keeps is no longer than the limit."""
    for letter in ("a", "é", "न", "𠀀"):
        words = letter * 200_000
        kept = searchable(words)
        assert len(words[:kept].encode()) <= VECTOR_BYTES
        assert kept == 200_000 or len(words[: kept + 1].encode()) > VECTOR_BYTES
    assert searchable("short") == 5


def test_many_pages_are_written_in_chunks(firm: Any, stub: Any) -> None:
    """A document of 1,234 pages, each found by its own word, in order and without a gap."""
    ticket = firm.upload()
    stub.pages = tuple(_page(f"page{number} of {uuid4().hex}", number) for number in range(1, 1235))
    assert firm.worker(stub).handle(ticket) == Ack()
    (hit,) = firm.search("page1234")
    assert hit.page_number == 1234
    numbers = firm.rows(
        "SELECT count(*) AS n, min(page_number) AS a, max(page_number) AS z FROM document_page WHERE document_id = :id",
        id=ticket.document_id,
    )
    assert tuple(numbers[0]) == (1234, 1, 1234)
