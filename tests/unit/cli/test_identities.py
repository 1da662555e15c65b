"""Ids that names and files stand for."""

from typing import Any
from uuid import UUID, uuid4

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from baton.cli.identities import document_id, firm_id, matter_id

FIRM, MATTER = uuid4(), uuid4()
FILE: dict[str, Any] = {
    "firm": FIRM,
    "matter": MATTER,
    "name": "a.pdf",
    "digest": b"x" * 32,
    "changed_at": 1_700_000_000.5,
}


def test_an_id_stands_for_itself() -> None:
    """Written in either of the usual ways."""
    assert firm_id(str(FIRM)) == firm_id(f" {str(FIRM).upper()} ") == FIRM
    assert matter_id(str(MATTER), firm=FIRM) == MATTER


@pytest.mark.parametrize("blank", ["", "  ", "\t\n"])
def test_a_blank_is_no_name(blank: str) -> None:
    """It would put every document of a forgotten variable into one matter."""
    with pytest.raises(click.UsageError, match="blank"):
        matter_id(blank, firm=FIRM)
    with pytest.raises(click.UsageError, match="blank"):
        firm_id(blank)


def test_a_name_always_stands_for_the_same_id() -> None:
    """Today and with the next release; spaces and the way an accent is written make no difference, letters do."""
    assert firm_id("Doe & Partners") == UUID("092fc0a6-3bef-5f8a-90ea-f090822b8718")
    assert firm_id("Doe  & Partners ") == firm_id("Doe & Partners")
    assert firm_id("Müller") == firm_id("Mu\u0308ller")
    assert firm_id("Doe") != firm_id("doe")


def test_a_matters_name_is_its_firms() -> None:
    """Two firms with a matter of one name have two matters."""
    assert matter_id("Lease", firm=FIRM) != matter_id("Lease", firm=uuid4())


@given(moment=st.floats(min_value=-1e12, max_value=1e15), digest=st.binary(min_size=32, max_size=32))
def test_a_files_id_is_a_uuid_of_version_7(moment: float, digest: bytes) -> None:
    """Whatever the file's time of change; its milliseconds are the first 48 bits."""
    made = document_id(**FILE | {"digest": digest, "changed_at": moment})
    assert made.version == 7
    assert made.variant == "specified in RFC 4122"
    assert made.int >> 80 == min(max(int(moment * 1000), 0), 2**48 - 1)


@pytest.mark.parametrize(
    "change",
    [{"firm": uuid4()}, {"matter": uuid4()}, {"name": "b.pdf"}, {"digest": b"y" * 32}, {"changed_at": 1_700_000_001.5}],
)
def test_anything_else_is_another_document(change: dict[str, Any]) -> None:
    """Firm, matter, name, content and time of change make a file what it is."""
    assert document_id(**FILE) == document_id(**FILE)
    assert document_id(**FILE | change) != document_id(**FILE)
