"""Where a document's bytes lie."""

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from baton.aws.naming import checked_key
from baton.documents.upload import object_key

FIRM = UUID("0198c0de-0000-7000-8000-00000000000f")
DOCUMENT = UUID("0198c0de-0000-7000-8000-00000000000d")


@given(st.text(min_size=1, max_size=1024))
def test_every_name_makes_a_key_that_the_store_takes(name: str) -> None:
    """Whatever a file is called: one segment below firm and document, within S3's length, climbing nowhere."""
    if any(0xD800 <= ord(each) <= 0xDFFF for each in name):
        return
    key = object_key(firm_id=FIRM, document_id=DOCUMENT, name=name)
    assert checked_key(key) == key
    head, _, last = key.rpartition("/")
    assert head == f"documents/{FIRM}/{DOCUMENT}"
    assert last.strip(".")


def test_names_stay_readable() -> None:
    """Letters of every script stay; what would be special does not."""
    keys = [
        object_key(firm_id=FIRM, document_id=DOCUMENT, name=name)
        for name in ("Brief an Müller.pdf", "../../etc/passwd", "…")
    ]
    assert [key.rpartition("/")[2] for key in keys] == ["Brief_an_Müller.pdf", "etc_passwd", "file"]
