"""Each process is told what it needs, and nobody else's secrets."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest

from baton.db.access import Role
from baton.demo.cast import AGENT, EXTRACTOR, PARTS, REGISTRAR, Part, program_of, settings_of
from baton.demo.stage import Stage
from baton.settings.loading import load
from baton.settings.secret import Secret

_TOKEN = "only-for-agent-and-registrar"


@dataclass
class _Servers:
    """What the stage asks its servers for."""

    def url(self, user: str, database: str) -> str:
        return f"postgresql+psycopg://{user}@127.0.0.1:1/{database}"

    def environ(self, account: str) -> dict[str, str]:
        return {"AWS_ACCESS_KEY_ID": account, "AWS_SECRET_ACCESS_KEY": "kept"}


def _environ(part: Part) -> Mapping[str, str]:
    servers = cast("Any", _Servers())
    stage = Stage(folder=Path("/nowhere"), postgres=servers, aws=servers)
    settings = settings_of(part, stage, agent_port=8, token=Secret(_TOKEN))
    environ = program_of(part, stage, settings, more={}).environ
    assert environ is not None
    return environ


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
def test_a_process_logs_in_as_its_own_role(part: Part) -> None:
    """Its database address names its role, and no other role is in its environment."""
    environ = _environ(part)
    found = {role for role in Role if any(f"//{role}@" in value for value in environ.values())}
    assert found == ({part.role} if part.role is not None else set())


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
def test_the_agents_token_is_known_to_two(part: Part) -> None:
    """Whoever calls the agent has its token, and the agent."""
    assert (_TOKEN in _environ(part).values()) == (part.name in {AGENT, REGISTRAR})


def test_the_agent_has_neither_database_nor_store() -> None:
    """It works by the addresses in its invocations."""
    environ = _environ(next(part for part in PARTS if part.name == AGENT))
    assert not [name for name in environ if name.startswith("AWS_") or name == "DATABASE_URL"]


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
def test_what_a_process_is_told_is_valid(part: Part) -> None:
    """Its environment loads without a fault."""
    settings = load(_environ(part))
    assert settings.queues.visibility < 60 or part.name in {AGENT, EXTRACTOR}
