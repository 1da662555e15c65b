"""``baton agent``."""

from __future__ import annotations

import threading
from importlib.metadata import version

import click

from baton.agent.config import AgentConfig
from baton.agent.server import serve
from baton.cli.processes import run_process
from baton.settings.model import Settings
from baton.telemetry.process import watched


@click.command("agent")
def command() -> int:
    r"""Run the reference agent: rules, no model, no network. Any HTTP agent takes its place by a setting.

    \b
    Example:
        BATON_AGENT_TOKEN=… baton agent
    """
    return run_process(_serve, required=("BATON_AGENT_TOKEN",))


def _serve(settings: Settings, stop: threading.Event) -> None:
    with watched(settings, component="agent", version=version("baton")) as watch:
        watch.progress.started()
        serve(config_of(settings), stop=stop)


def config_of(settings: Settings) -> AgentConfig:
    """The server's bounds, as the settings say."""
    reference, token = settings.reference_agent, settings.agent.token
    return AgentConfig(
        token="" if token is None else token.reveal(),
        host=reference.host,
        port=reference.port,
        workers=reference.workers,
        backlog=reference.backlog,
        misbehave=reference.misbehave,
    )
