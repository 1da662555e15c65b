"""Where the program begins: before anything is imported that takes its time, so that Ctrl-C is answered from there on."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the program and exit."""
    try:
        from baton.cli.main import main as program  # noqa: PLC0415 - see above

        program()
    except KeyboardInterrupt:
        sys.stderr.write("baton: stopped\n")
        sys.exit(130)
