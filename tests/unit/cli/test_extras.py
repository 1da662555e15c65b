"""A program without an extra does all the rest."""

import importlib
from types import ModuleType

import pytest
from click.testing import CliRunner

from baton.cli.main import group


def test_help_is_given_where_the_demo_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in the image: the list of commands says so, and the command itself says what it needs."""
    real = importlib.import_module

    def without(name: str, package: str | None = None) -> ModuleType:
        if name == "baton.demo.command":
            raise ModuleNotFoundError("No module named 'reportlab'", name="reportlab")
        return real(name, package)

    monkeypatch.setattr(importlib, "import_module", without)
    told = CliRunner().invoke(group, ["--help"])
    assert told.exit_code == 0
    assert "Not installed here" in told.output
    assert "relay" in told.output
    asked = CliRunner().invoke(group, ["demo"])
    assert asked.exit_code == 2
    assert "baton[demo]" in asked.output


def test_a_fault_of_the_programs_own_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A module of ours that is not there is no missing extra."""

    def without(name: str, package: str | None = None) -> ModuleType:
        raise ModuleNotFoundError("No module named 'baton.demo.acts'", name="baton.demo.acts")

    monkeypatch.setattr(importlib, "import_module", without)
    assert isinstance(CliRunner().invoke(group, ["demo"]).exception, ModuleNotFoundError)
