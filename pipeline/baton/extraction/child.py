"""What the confined child does with its one file: find out what it is, read it, say so."""

from collections.abc import Callable

from baton.extraction.jobs import Content, Job
from baton.extraction.outcomes import Kind, Note, ReasonCode, Unreadable
from baton.extraction.readers import docx, images, mail, markup, outlook, pdf, plain
from baton.extraction.sniffing import contradicts, sniff
from baton.extraction.wire import Answer

_READERS: dict[Kind, Callable[[Job], Content]] = {
    Kind.PDF: pdf.read,
    Kind.DOCX: docx.read,
    Kind.EML: mail.read,
    Kind.MSG: outlook.read,
    Kind.TEXT: plain.read,
    Kind.HTML: markup.read,
    Kind.PNG: images.read,
    Kind.JPEG: images.read,
    Kind.TIFF: images.read,
}
_REFUSED = {
    Kind.EMPTY: ReasonCode.EMPTY,
    Kind.ENCRYPTED_OFFICE: ReasonCode.ENCRYPTED,
}


def read(job: Job) -> Answer:
    """Read the file; every outcome that is the file's own becomes an answer."""
    kind = Kind.UNKNOWN
    content = Content()
    try:
        kind = sniff(job.file, name=job.name, content_type=job.content_type.lower())
        reader = _READERS.get(kind)
        content = reader(job) if reader else _refused(kind)
        if content.reason is None and not content.has_words:
            content.reason = ReasonCode.NO_TEXT
    except Unreadable as given_up:
        content = Content(reason=given_up.reason)
    except MemoryError:
        content = Content(reason=ReasonCode.TOO_MUCH_MEMORY)
    except RecursionError:
        content = Content(reason=ReasonCode.CORRUPT)
    if contradicts(kind, name=job.name) and content.pages:
        content.notes.add(Note.OTHER_TYPE)
    return Answer(
        kind=kind,
        reason=content.reason,
        pages=content.pages,
        attachments=content.attachments,
        notes=sorted(content.notes),
    )


def _refused(kind: Kind) -> Content:
    return Content(reason=_REFUSED.get(kind, ReasonCode.UNSUPPORTED))
