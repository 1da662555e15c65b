"""kubectl as a child process: it knows every way of logging in to a cluster, and so nothing here has to."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from typing import Any, Final

from baton.operator.plugin.failures import Failed
from baton.settings.exits import Exit

RECONCILERS: Final = "registrationreconcilers.baton.pramaan.dev"
REDRIVES: Final = "registrationredrives.baton.pramaan.dev"
#: Seconds; kubectl gives up before.
_PATIENCE: Final = 60.0
_REQUEST: Final = "--request-timeout=30s"
#: What kubectl says, and what it means; the first that fits.
_SIGNS: Final = (
    (("(Forbidden)", "(Unauthorized)", " is forbidden", "You must be logged in"), Exit.REFUSED),
    (("Unable to connect", "was refused", "i/o timeout", "(ServiceUnavailable)", "(Timeout)"), Exit.UNAVAILABLE),
)


@dataclass(frozen=True, slots=True)
class Kubectl:
    """kubectl, for one cluster and one namespace of it; ``None``: what the kubeconfig says."""

    kubeconfig: str | None = None
    context: str | None = None
    namespace: str | None = None

    def command(self, *arguments: str, namespace: str | None = None) -> list[str]:
        """The whole command line."""
        chosen = {"kubeconfig": self.kubeconfig, "context": self.context, "namespace": namespace or self.namespace}
        return ["kubectl", *(f"--{name}={value}" for name, value in chosen.items() if value is not None), *arguments]

    def text(self, *arguments: str, given: object = None, namespace: str | None = None) -> str:
        """What it prints.

        :param given: an object for its standard input.
        :raises Failed: in kubectl's own words.
        """
        try:
            done = subprocess.run(
                self.command(_REQUEST, *arguments, namespace=namespace),
                input=None if given is None else json.dumps(given),
                stdin=subprocess.DEVNULL if given is None else None,
                capture_output=True,
                text=True,
                check=False,
                timeout=_PATIENCE,
            )
        except FileNotFoundError:
            raise Failed("there is no kubectl on the PATH", code=Exit.UNAVAILABLE) from None
        except subprocess.TimeoutExpired:
            raise Failed("the API server does not answer", code=Exit.UNAVAILABLE) from None
        if done.returncode != 0:
            raise said(done.stderr)
        return done.stdout

    def json(self, *arguments: str, given: object = None, namespace: str | None = None) -> Any:
        """The object that it prints."""
        return json.loads(self.text(*arguments, "--output=json", given=given, namespace=namespace))

    def reconcilers(self, name: str | None = None) -> list[dict[str, Any]]:
        """The RegistrationReconcilers of the namespace, or the one of that name."""
        if name is not None:
            return [self.json("get", RECONCILERS, name)]
        found: list[dict[str, Any]] = self.json("get", RECONCILERS)["items"]
        return found

    def reconciler(self, name: str | None) -> dict[str, Any]:
        """One; where none is named, the only one of the namespace.

        :raises Failed: there is none, or it is not clear which one is meant.
        """
        found = self.reconcilers(name)
        if len(found) == 1:
            return found[0]
        if not found:
            raise Failed("there is no RegistrationReconciler in this namespace")
        names = ", ".join(sorted(each["metadata"]["name"] for each in found))
        raise Failed(f"which one is meant? There are: {names}", code=Exit.SETTINGS)

    def begin(self, *arguments: str, namespace: str | None = None) -> subprocess.Popen[str]:
        """Start it, and leave it running."""
        command = self.command(*arguments, namespace=namespace)
        nothing, pipe, same = subprocess.DEVNULL, subprocess.PIPE, subprocess.STDOUT
        try:
            return subprocess.Popen(command, stdin=nothing, stdout=pipe, stderr=same, text=True)
        except FileNotFoundError:
            raise Failed("there is no kubectl on the PATH", code=Exit.UNAVAILABLE) from None


def said(output: str) -> Failed:
    """A failure in kubectl's own words: its last line."""
    lines = output.strip().splitlines() or ["kubectl failed"]
    codes = (code for signs, code in _SIGNS if any(sign in output for sign in signs))
    return Failed(lines[-1].removeprefix("error: "), code=next(codes, Exit.FAILED))
