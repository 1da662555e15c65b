"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from baton.operator.plugin.asking import Way
from baton.operator.plugin.kubectl import Kubectl
from baton.operator.vocabulary import READING_PORT
from baton.settings.options import Number

#: Seconds; a week.
_LONGEST: Final = 604_800
_F = TypeVar("_F", bound=Callable[..., Any])


def everywhere(command: _F) -> _F:
    """Kubectl's own options: before the command, too, since that is where they stand for kubectl itself."""
    for option in (
        click.option("-n", "--namespace", metavar="NAME", help="Namespace of the resources."),
        click.option("--context", metavar="NAME", help="Context of the kubeconfig."),
        click.option("--kubeconfig", metavar="FILE", help="The kubeconfig."),
        click.option("-o", "--output", type=click.Choice(["json"]), help="One JSON value in the place of columns."),
    )[::-1]:
        command = option(command)
    return command


def reaching(command: Callable[..., Any]) -> Callable[..., Any]:
    """Which cluster and namespace, and how it is printed: ``kubectl`` and ``as_json``."""

    @everywhere
    @wraps(command)
    def with_kubectl(
        *arguments: Any,
        namespace: str | None,
        context: str | None,
        kubeconfig: str | None,
        output: str | None,
        **more: Any,
    ) -> Any:
        said = {"namespace": namespace, "context": context, "kubeconfig": kubeconfig, "output": output}
        before = click.get_current_context().obj or {}
        chosen = {name: before.get(name) if value is None else value for name, value in said.items()}
        kubectl = Kubectl(chosen["kubeconfig"], chosen["context"], chosen["namespace"])
        return command(*arguments, kubectl=kubectl, as_json=chosen["output"] == "json", **more)

    return with_kubectl


def asking(command: Callable[..., Any]) -> Callable[..., Any]:
    """How the operator is reached: ``way``."""

    @click.option("--operator-namespace", metavar="NAME", help="Namespace of the operator, where it is another one.")
    @click.option("--pod", metavar="NAME", help="The operator's pod; left out, one that is ready.")
    @click.option("--port", default=READING_PORT, show_default=True, help="The port that it listens on.")
    @click.option("--service-account", metavar="NAME", help="Ask as this one; a token of ten minutes is created.")
    @click.option("--token-file", type=click.Path(path_type=Path), metavar="FILE", help="Holds the token to be shown.")
    @click.option("--server", hidden=True, help="http://127.0.0.1:PORT, in the place of a forwarded port.")
    @wraps(command)
    def with_way(
        *arguments: Any,
        operator_namespace: str | None,
        pod: str | None,
        port: int,
        service_account: str | None,
        token_file: Path | None,
        server: str | None,
        **more: Any,
    ) -> Any:
        way = Way(port, operator_namespace, pod, service_account, token_file, server)
        return command(*arguments, way=way, **more)

    return with_way


RECONCILER: Callable[[_F], _F] = click.option(
    "-r", "--reconciler", metavar="NAME", help="The RegistrationReconciler; left out, the only one of the namespace."
)
TIMEOUT: Callable[[_F], _F] = click.option(
    "--timeout",
    type=Number(min=1, max=_LONGEST),
    default=120,
    show_default=True,
    metavar="SECONDS",
    help="Wait so long.",
)
