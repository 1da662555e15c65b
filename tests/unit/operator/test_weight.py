"""What an operator weighs before it has any work: its share of a pod's memory, and most of its start."""

import subprocess
import sys

import pytest

#: Megabytes and tenths of a second each, for a process that needs none of them until it meets an artifact, or never.
UNWANTED = ("pydantic", "httpx", "rich", "click", "s3transfer", "sqlalchemy.orm", "alembic", "pypdfium2", "PIL")


@pytest.mark.parametrize("module", ["baton.operator.process", "baton.reconcilers.process"])
def test_nothing_is_imported_that_is_not_needed(module: str) -> None:
    """Neither by the operator nor by a loop without Kubernetes."""
    script = f"import sys, {module}; print(*(each for each in {UNWANTED} if each in sys.modules))"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == []
