"""``python -m baton.db.freeze TABLE…``: prints what new tables need, as the text of a version.

The text is committed as it is and never made again: a version that has been released is history.
"""

from __future__ import annotations

import sys

from baton.db import ddl
from baton.db.migrations.frozen import SEPARATOR

if __name__ == "__main__":
    sys.stdout.write(f"\n{SEPARATOR}\n".join(ddl.additions(tuple(sys.argv[1:]))) + "\n")
