"""What happens to single documents of the release."""

import tempfile
from pathlib import Path

from sqlalchemy import text

from baton.casefile import papers
from baton.casefile.exhibits import INDEXED, PDF, REGISTERED, REGISTRATION_NEEDS_REVIEW, TEXT, Exhibit
from baton.casefile.matter import draw
from baton.casefile.pdfs import make_pdf
from baton.demo.arrivals import Filed, Firm
from e2e.bed.releases import Release
from support.waiting import wait_until

_PAPER = """MINUTES OF A MEETING

Held on 7 March 2023 at the office of the carrier. Present: Anita Deshmukh for Kestrel Textiles Private Limited.
The container was opened and its contents were counted. Twelve bales were wet.
"""
_LOSE = "DELETE FROM ops.document_ingest_outbox WHERE document_id = :id AND lane = 'registrar'"
_AGE = (
    "UPDATE documents SET registration_ticket_id = NULL, processing_status_since = app.clock() - interval '1 day',"
    " registration_status_since = app.clock() - interval '1 day' WHERE id = :id"
)


def plain_paper(folder: Path) -> Exhibit:
    """A short text."""
    path = folder / "Minutes.txt"
    path.write_text(_PAPER, encoding="utf-8")
    return Exhibit(path.name, path, "plain text", TEXT, INDEXED, REGISTERED, "nothing is unusual about it")


def private_paper(folder: Path) -> Exhibit:
    """Advice of counsel, which a person must look at."""
    path = folder / "Advice of counsel.pdf"
    path.write_bytes(make_pdf(papers.advice(draw(7)), title="Advice"))
    why = "marked privileged: a person decides"
    return Exhibit(path.name, path, "PDF, privileged", PDF, INDEXED, REGISTRATION_NEEDS_REVIEW, why)


def stranded(release: Release, firm: Firm) -> Filed:
    """A document whose request is lost without a trace, while repairs are held back; it looks a day old."""
    suspend(release, "a trial")
    release.scale("registrar-relay", 0)
    with tempfile.TemporaryDirectory() as folder:
        (filed,) = firm.upload([plain_paper(Path(folder))], batch=1)
    database = release.grounds.database

    def queued() -> bool:
        with database.preparer.connect() as connection:
            told = connection.execute(
                text("SELECT registration_status FROM documents WHERE id = :id"), {"id": filed.id}
            ).scalar_one()
        return bool(told == "queued")

    wait_until(queued, 120, interval=0.2, what="the request")
    with database.preparer.begin() as connection:
        for statement in (_LOSE, _AGE):
            connection.execute(text(statement), {"id": filed.id})
    release.scale("registrar-relay", 1)
    return filed


def suspend(release: Release, reason: str | None) -> None:
    """Hold repairs back, or (None) let them go."""
    told = "null" if reason is None else f'{{"reason": "{reason}"}}'
    patch = f'{{"spec": {{"suspend": {told}}}}}'
    release.kubernetes.kubectl("patch", "regrec", "default", "--type=merge", f"--patch={patch}")
    wanted = "False" if reason is None else "True"
    release.kubernetes.kubectl(
        "wait", "regrec/default", f"--for=jsonpath={{.status.conditions[?(@.type=='Suspended')].status}}={wanted}"
    )
