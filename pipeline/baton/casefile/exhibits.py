"""The case file: every kind of document that a matter brings, and what must become of each."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, time
from pathlib import Path
from typing import Final

from baton.casefile import papers
from baton.casefile.bombs import pdf_bomb
from baton.casefile.matter import CLIENT, OPPONENT, WITNESS, Matter, draw
from baton.casefile.messages import Attached, Letter, Person, make_eml, make_msg
from baton.casefile.pdfs import make_pdf
from baton.casefile.scans import scan_page, to_png
from baton.casefile.worddocs import make_docx

PDF: Final = "application/pdf"
DOCX: Final = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
EML: Final = "message/rfc822"
MSG: Final = "application/vnd.ms-outlook"
TEXT: Final = "text/plain"
PNG: Final = "image/png"

INDEXED: Final = "indexed"
NEEDS_REVIEW: Final = "needs_review"
FAILED: Final = "failed"
REGISTERED: Final = "registered"
REGISTRATION_NEEDS_REVIEW: Final = "registration_needs_review"
NOT_REQUESTED: Final = "not_requested"

_LONG: Final = 300
_USUAL: Final = 40
_CUT_AT: Final = 0.6


@dataclass(frozen=True, slots=True)
class Exhibit:
    """One file of the case file and where it must end."""

    name: str
    path: Path
    kind: str
    """In words, for a table."""
    content_type: str
    """As an uploader would declare it, by the name."""
    expected_processing: str
    expected_registration: str
    why: str


@dataclass(frozen=True, slots=True)
class _Draft:
    name: str
    data: bytes
    kind: str
    content_type: str
    why: str
    processing: str = INDEXED
    registration: str = REGISTERED
    scanned: bool = False


def make_case_file(folder: Path, *, seed: int = 1, ocr: bool = True) -> tuple[Exhibit, ...]:
    """Write the documents of one matter into a folder and say what must become of each.

    The same seed gives the same bytes.

    Args:
        folder: Made if it is not there.
        seed: For names, numbers and dates.
        ocr: Whether a text recogniser is there; without one scans are for a person to see.
    """
    folder.mkdir(parents=True, exist_ok=True)
    return tuple(_written(folder, draft, ocr=ocr) for draft in _drafts(draw(seed)))


def _written(folder: Path, draft: _Draft, *, ocr: bool) -> Exhibit:
    path = folder / draft.name
    path.write_bytes(draft.data)
    unseen = draft.scanned and not ocr
    requested = draft.processing == INDEXED and not unseen
    return Exhibit(
        name=draft.name,
        path=path,
        kind=draft.kind,
        content_type=draft.content_type,
        expected_processing=NEEDS_REVIEW if unseen else draft.processing,
        expected_registration=draft.registration if requested else NOT_REQUESTED,
        why="no text recogniser is installed" if unseen else draft.why,
    )


def _drafts(matter: Matter) -> Iterator[_Draft]:
    claim = make_pdf(papers.complaint(matter, pages=_USUAL), title="Statement of Claim")
    contract_name = f"Carriage Agreement {matter.agreement}.docx"
    opening, rates, closing = papers.agreement(matter)
    contract = make_docx(opening, table=rates, closing=closing, header=matter.agreement)
    yield _Draft("Statement of Claim.pdf", claim, "PDF, 40 pages", PDF, "a pleading with a caption")
    yield _Draft(
        "Shipment Records.pdf",
        make_pdf(papers.shipments(matter, pages=_LONG), title="Shipment Records"),
        "PDF, 300 pages",
        PDF,
        "a long bundle",
    )
    yield _Draft(contract_name, contract, "Word with a table", DOCX, "the contract sued upon")
    yield from _scans(matter)
    yield from _letters(matter)
    yield from _scripts(matter)
    yield from _concerns(matter)
    yield _Draft(f"Copy of {contract_name}", contract, "the same bytes again", DOCX, "uploaded twice")
    yield _Draft(
        "Settlement Proposal.pdf",
        make_docx(papers.proposal(matter)),
        "Word, named .pdf",
        PDF,
        "read as what it is, not as what its name says",
    )
    yield from _unreadable(matter, claim)


def _scans(matter: Matter) -> Iterator[_Draft]:
    rng = matter.rng
    order = [scan_page(page, rng=rng) for page in papers.order(matter)]
    sworn, exhibit = papers.affidavit(matter)
    yield _Draft(
        "Court Order.pdf",
        make_pdf(order, title="Court Order"),
        "PDF, scanned",
        PDF,
        "text by recognition",
        scanned=True,
    )
    yield _Draft(
        f"Affidavit of {WITNESS}.pdf",
        make_pdf([sworn, scan_page(exhibit, rng=rng)], title="Affidavit"),
        "PDF, native and scanned",
        PDF,
        "each page by what it is",
        scanned=True,
    )
    yield _Draft(
        f"Invoice {matter.invoice}.png",
        to_png(scan_page(papers.invoice(matter), rng=rng)),
        "picture of a page",
        PNG,
        "text by recognition",
        scanned=True,
    )


def _letters(matter: Matter) -> Iterator[_Draft]:
    anita = Person(WITNESS, "anita.deshmukh@kestrel.example")
    oliver = Person("Oliver Whitlock", "oliver.whitlock@harbourline.example")
    photos = Attached("photo-list.csv", "text/csv", b"number,bale\n1,wet\n2,stained\n")
    noon = datetime.combine(matter.loss, time(12), UTC)
    claim = Letter(
        anita,
        oliver,
        f"Damage to cargo on {matter.vessel}",
        noon,
        papers.email_to_carrier(matter),
        (photos,),
    )
    answer = Letter(
        oliver,
        anita,
        f"Re: Damage to cargo on {matter.vessel}",
        noon.replace(hour=17),
        papers.reply_of_carrier(matter),
        (Attached("weather-report.txt", TEXT, b"Force 9, south-west.\n"),),
    )
    yield _Draft("Notice of damage.eml", make_eml(claim), "mail", EML, "a message with a file")
    yield _Draft("Reply of carrier.msg", make_msg(answer), "Outlook message", MSG, "the answer")
    yield _Draft(
        "Minutes of survey meeting.txt",
        papers.minutes(matter).encode(),
        "plain text",
        TEXT,
        "no formatting at all",
    )
    named = (f"Carriage Agreement {matter.agreement}.docx", "Minutes of survey meeting.txt")
    yield _Draft(
        "Letter to carrier.txt",
        papers.rejoinder(matter, names=named).encode("utf-16"),
        "plain text in UTF-16",
        TEXT,
        "names other documents of the file",
    )


def _scripts(matter: Matter) -> Iterator[_Draft]:
    yield _Draft(
        "Legal notice (Hindi).txt",
        papers.hindi_notice(matter).encode(),
        "plain text in Devanagari",
        TEXT,
        "another script",
    )
    yield _Draft(
        "Port agent notice (Greek).pdf",
        make_pdf([papers.greek_letter(matter)], title="Notice", other_script=True),
        "PDF in Greek",
        PDF,
        "another script",
    )


def _concerns(matter: Matter) -> Iterator[_Draft]:
    yield _Draft(
        "Advice of counsel.pdf",
        make_pdf(papers.advice(matter), title="Advice"),
        "PDF, privileged",
        PDF,
        "marked privileged: a person decides",
        registration=REGISTRATION_NEEDS_REVIEW,
    )
    yield _Draft(
        "Litigation support agreement.pdf",
        make_pdf(papers.consultancy(matter), title="Agreement"),
        "PDF, contract",
        PDF,
        f"{CLIENT} stands on the side of {OPPONENT}: a person decides",
        registration=REGISTRATION_NEEDS_REVIEW,
    )


def _unreadable(matter: Matter, claim: bytes) -> Iterator[_Draft]:
    secret = f"{matter.rng.randrange(10**9)}"
    locked = make_pdf(papers.order(matter), title="Sealed", password=secret)
    for name, data, kind, content_type, why in (
        ("Sealed exhibit.pdf", locked, "PDF with a password", PDF, "nobody here has the password"),
        (
            "Interrupted upload.pdf",
            claim[: int(len(claim) * _CUT_AT)],
            "PDF, cut off",
            PDF,
            "its end is missing",
        ),
        ("Blank.txt", b"", "empty file", TEXT, "there is nothing in it"),
        ("Plan of hold.pdf", pdf_bomb(), "decompression bomb", PDF, "unpacks to gigabytes"),
    ):
        yield _Draft(name, data, kind, content_type, why, processing=FAILED, registration=NOT_REQUESTED)
