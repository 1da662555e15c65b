"""What can go wrong with an embedded part.

EmbeddedError
├── BinariesMissing       no program to run
├── FolderUnreachable     the account that runs the server cannot enter its folder
├── StateMismatch         the folder was written by another version
├── StartFailed           the program ended, or did not answer in time
├── Unreachable           a server that a setting names does not answer
└── NotOurs               the server is somebody else's: it cannot be killed from here
"""


class EmbeddedError(Exception):
    """An embedded part cannot be used."""


class BinariesMissing(EmbeddedError):
    """No usable program was found."""


class FolderUnreachable(EmbeddedError):
    """The unprivileged account that must run the server cannot enter the folder."""


class StateMismatch(EmbeddedError):
    """The folder holds the state of another major version."""


class StartFailed(EmbeddedError):
    """The program ended while starting, or did not answer in time; the end of its log is in the message."""


class Unreachable(EmbeddedError):
    """A server that a setting names does not answer, or does not let its user in."""


class NotOurs(EmbeddedError):
    """The server was started by somebody else, and stays theirs."""
