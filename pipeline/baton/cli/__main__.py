"""``python -m baton.cli``: the program, by whichever interpreter runs this one."""

from __future__ import annotations

from baton.cli.entry import main

main()
