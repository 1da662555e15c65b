"""Every fault that the fault table lists is met again behind a transaction pooler."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.parts import needs

pytestmark = [pytest.mark.chaos, needs("pgbouncer")]

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
_PYTEST: tuple[str, ...] = (sys.executable, "-m", "pytest", "-q", "-n", "2", "--pooler", "-p", "no:cacheprovider")
_PYTEST += ("-m", "not bench and not check", "--timeout", "300")
_NAMED = re.compile(r"`(integration/[\w/]+\.py::test_\w+)`")


@pytest.mark.timeout(900)
def test_the_fault_table_holds_behind_a_transaction_pooler(capfd: pytest.CaptureFixture[str]) -> None:
    """With pgbouncer between every role and Postgres: no session outlives a transaction, and each answer stands."""
    named = sorted(set(_NAMED.findall((ROOT / "docs" / "faults.md").read_text(encoding="utf-8"))))
    assert len(named) > 70, "the table was not understood"
    with capfd.disabled():
        ran = subprocess.run([*_PYTEST, *(str(TESTS / each) for each in named)], cwd=ROOT, check=False)
    assert ran.returncode == 0
