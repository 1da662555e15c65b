"""What a lawyer must look at: raised once, and not lost."""

from baton.contract.classification import AddTag, Concern, ConcernKind
from baton.db.states import Outcome, RegistrationStatus
from baton.record import messages
from support.matters import Matter, review, turn

CONFLICT = Concern(kind=ConcernKind.SIDE_CONFLICT, note="The firm acts for both sides.", confidence=0.9)
PRIVILEGE = Concern(kind=ConcernKind.PRIVILEGE_SUSPICION, note="Marked as privileged.", confidence=0.8, page=3)
TAG = AddTag(key="add_tag", confidence=0.9, tag="urgent")


def items(matter: Matter) -> list[tuple[str, str]]:
    """Kind and summary of each item of the firm, in order of writing."""
    found = matter.rows(
        "SELECT kind, summary FROM inbox.item WHERE firm_id = :firm ORDER BY created_at, id", firm=matter.firm
    )
    return [(row[0], row[1]) for row in found]


def reextracted(matter: Matter, document: object) -> None:
    """A new pass of the document's text."""
    matter.prepare(
        "UPDATE documents SET extraction_epoch = extraction_epoch + 1, processing_status = 'uploaded',"
        " extraction_run_id = NULL, registration_status = 'not_requested' WHERE id = :id",
        id=document,
    )
    matter.index(document)  # type: ignore[arg-type]


def test_each_concern_becomes_an_item(matter: Matter) -> None:
    """With the agent's own words and the page, whatever the verdict."""
    document = matter.document()
    ticket = matter.deliver(matter.dispatch(document), turn(TAG, concerns=[CONFLICT, PRIVILEGE]))
    assert matter.apply(ticket) is Outcome.DONE
    assert items(matter) == [
        ("side_conflict", "The firm acts for both sides."),
        ("privilege_suspicion", "Marked as privileged. (page 3)"),
    ]


def test_a_retry_within_the_pass_raises_nothing_twice(matter: Matter) -> None:
    """The dedup key holds over runs of one pass, though the item was resolved in between."""
    document = matter.document()
    first = turn(concerns=[CONFLICT], verdict=review())
    assert matter.apply(matter.deliver(matter.dispatch(document), first)) is Outcome.DONE
    matter.prepare("UPDATE inbox.item SET resolved_at = app.clock(), resolved_by = 'counsel'")
    again = turn(concerns=[CONFLICT, PRIVILEGE])
    assert matter.apply(matter.deliver(matter.dispatch(document, explicit=True), again)) is Outcome.DONE
    assert [kind for kind, _ in items(matter)] == ["side_conflict", "privilege_suspicion"]


def test_a_new_pass_raises_again_only_what_is_resolved(matter: Matter) -> None:
    """A text read anew may be looked at anew; an item that still lies open is enough."""
    document = matter.document()
    first = turn(concerns=[CONFLICT, PRIVILEGE])
    assert matter.apply(matter.deliver(matter.dispatch(document), first)) is Outcome.DONE
    matter.prepare(
        "UPDATE inbox.item SET resolved_at = app.clock(), resolved_by = 'counsel' WHERE kind = 'side_conflict'"
    )
    reextracted(matter, document)
    assert matter.apply(matter.deliver(matter.dispatch(document), first)) is Outcome.DONE
    assert [kind for kind, _ in items(matter)] == ["side_conflict", "privilege_suspicion", "side_conflict"]


def test_two_firms_have_an_inbox_each(matter: Matter) -> None:
    """The same concern in two firms is two items."""
    other = Matter(matter.database, firm=matter.id, id=matter.id)
    for each in (matter, other):
        assert each.apply(each.deliver(each.dispatch(each.document()), turn(concerns=[CONFLICT]))) is Outcome.DONE
    assert len(items(matter)) == len(items(other)) == 1


def test_a_review_without_a_concern_is_an_item_of_its_own(matter: Matter) -> None:
    """A person must look, so it lies in the inbox with the verdict's note; a concern that says why is enough."""
    for turned in (turn(verdict=review("Unclear.")), turn(verdict=review("Conflict."), concerns=[CONFLICT])):
        ticket = matter.deliver(matter.dispatch(matter.document()), turned)
        assert matter.apply(ticket) is Outcome.DONE
        status = matter.read(ticket.document_id).registration_status
        assert status is RegistrationStatus.REGISTRATION_NEEDS_REVIEW
    assert items(matter) == [
        ("registration_review", "Unclear."),
        ("side_conflict", "The firm acts for both sides."),
    ]


def test_of_copies_each_later_one_is_reported(matter: Matter) -> None:
    """The same file twice in the firm: the later document is named, wherever the first one lies, whatever the order."""
    checksum = "ab" * 32
    first = matter.document("first.pdf", checksum=checksum)
    second = matter.document("second.pdf", checksum=checksum)
    elsewhere = matter.sibling()
    third = elsewhere.document("third.pdf", checksum=checksum)
    for place, document in ((elsewhere, third), (matter, second), (matter, first)):
        assert place.apply(place.deliver(place.dispatch(document), turn(TAG))) is Outcome.DONE
    found = matter.rows("SELECT document_id, summary FROM inbox.item WHERE kind = 'duplicate_content'")
    assert {row[0]: row[1] for row in found} == {
        second: messages.DUPLICATE_IN_MATTER,
        third: messages.DUPLICATE_IN_FIRM,
    }


def test_a_copy_that_overtakes_the_first_is_reported_all_the_same(matter: Matter) -> None:
    """The later document is registered before the first one's bytes are known: the first is then the one to be named."""
    checksum = "ab" * 32
    first = matter.document("first.pdf")
    second = matter.document("second.pdf", checksum=checksum)
    assert matter.apply(matter.deliver(matter.dispatch(second), turn(TAG))) is Outcome.DONE
    assert items(matter) == []
    matter.prepare("UPDATE documents SET checksum_sha256 = :checksum WHERE id = :id", checksum=checksum, id=first)
    assert matter.apply(matter.deliver(matter.dispatch(first), turn(TAG))) is Outcome.DONE
    found = matter.rows("SELECT document_id FROM inbox.item WHERE kind = 'duplicate_content'")
    assert [row[0] for row in found] == [first]


def test_a_copy_in_another_firm_is_not_found_out(matter: Matter) -> None:
    """That somebody else has the file is nobody's business."""
    Matter(matter.database, firm=matter.id, id=matter.id).document(checksum="ab" * 32)
    matter.registered(TAG, checksum="ab" * 32)
    assert items(matter) == []


def test_a_deleted_copy_is_none(matter: Matter) -> None:
    """Uploading again after deleting is no duplicate."""
    gone = matter.document(checksum="ab" * 32)
    matter.prepare("UPDATE documents SET deleted_at = app.clock() WHERE id = :id", id=gone)
    matter.registered(TAG, checksum="ab" * 32)
    assert items(matter) == []
