"""Why an apply could not even begin.

    RecordError
    └── UnseenDocument      the ticket's document is hidden from this role

What is wrong with a result is no error here: it ends on the document, where counsel looks.
"""


class RecordError(Exception):
    """An apply could not begin."""


class UnseenDocument(RecordError):
    """The ticket names a document that this role cannot see: a policy or a grant is missing."""
