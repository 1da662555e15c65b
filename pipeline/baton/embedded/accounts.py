"""The unprivileged account that servers run as when the parent is root.

Postgres refuses to run as root, and nothing embedded needs it.
"""

import os
import pwd
import stat
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Account:
    """A user of this machine, by number."""

    uid: int
    gid: int


def unprivileged() -> Account | None:
    """`nobody` when the parent is root; None, meaning the parent's own account, otherwise."""
    if os.geteuid() != 0:
        return None
    entry = pwd.getpwnam("nobody")
    return Account(uid=entry.pw_uid, gid=entry.pw_gid)


def may_enter(path: Path, *, account: Account | None) -> bool:
    """Whether the account can pass through every folder down to `path`, and enter it.

    Judged by permission bits; None is the parent's own account, which made the path.
    """
    if account is None:
        return True
    resolved = path.resolve()
    return all(_passable(folder, account) for folder in (resolved, *resolved.parents))


def _passable(folder: Path, account: Account) -> bool:
    status = folder.stat()
    if status.st_uid == account.uid:
        return bool(status.st_mode & stat.S_IXUSR)
    if status.st_gid == account.gid:
        return bool(status.st_mode & stat.S_IXGRP)
    return bool(status.st_mode & stat.S_IXOTH)
