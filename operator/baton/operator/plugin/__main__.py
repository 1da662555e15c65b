"""``python -m baton.operator.plugin``."""

import sys

from baton.operator.plugin.main import main

sys.exit(main())
