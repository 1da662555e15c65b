"""Becomes another program, bound to the life of its parent.

Run by path, before anything of Baton is imported: `python -I -S launch.py PARENT SIGNAL UID GID
PROGRAM …`. It gives up its privileges (`-` for an id keeps them), asks the kernel to send SIGNAL
when the parent dies, makes sure that the parent is still there, and executes PROGRAM in its place.

A `preexec_fn` would do the same between fork and exec, where no Python code is safe once the
parent has threads.
"""

import ctypes
import os
import sys

_PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> None:
    """Drop privileges, bind to the parent, execute; never returns."""
    parent, signal_number, uid, gid, *program = arguments
    if gid != "-":
        os.setgroups([])
        os.setgid(int(gid))
    if uid != "-":
        os.setuid(int(uid))
    if sys.platform == "linux":
        # After the change of user, which clears it.
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(signal_number), 0, 0, 0)
    if os.getppid() != int(parent):
        sys.exit("the parent is gone")
    try:
        os.execvp(program[0], program)  # noqa: S606 - there is no shell to avoid
    except OSError as error:
        sys.exit(f"cannot run {program[0]}: {error}")


if __name__ == "__main__":
    main(sys.argv[1:])
