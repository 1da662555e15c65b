"""Children get what programs need to be found, and nothing else."""

import pytest

from baton.settings.inheriting import in_ci, inherited, starting_with


def test_neither_settings_nor_secrets_are_inherited() -> None:
    """A child knows where programs are, but not what its parent was told."""
    found = inherited(
        {"PATH": "/bin", "LANG": "C.UTF-8", "DATABASE_URL": "x", "BATON_AGENT_TOKEN": "y", "AWS_REGION": "z"}
    )
    assert found == {"PATH": "/bin", "LANG": "C.UTF-8"}


@pytest.mark.parametrize(
    ("value", "expected"), [("true", True), ("1", True), ("", False), ("false", False), ("0", False)]
)
def test_a_build_is_known_by_its_variable(value: str, *, expected: bool) -> None:
    """CI=true is a build; CI set to nothing or false is not."""
    assert in_ci({"CI": value}) is expected
    assert in_ci({}) is False


def test_a_part_of_the_environment_is_handed_on() -> None:
    """Chosen by the beginning of its names; what is set to nothing is not set."""
    environ = {"AWS_REGION": "z", "AWS_PROFILE": " ", "BATON_BUCKET": "b", "PATH": "/bin"}
    assert starting_with("AWS_", "BATON_PRESIGN_", environ=environ) == {"AWS_REGION": "z"}
