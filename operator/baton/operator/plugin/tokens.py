"""The caller's bearer token, from where kubectl would take it.

A client certificate proves somebody to the API server alone, since the key never leaves; who logs in by one names a
service account, for which kubectl asks a token that is good for this API only, and for ten minutes.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from baton.operator.plugin.failures import Failed
from baton.operator.plugin.kubectl import Kubectl
from baton.operator.vocabulary import AUDIENCE
from baton.settings.exits import Exit
from baton.settings.secret import Secret

_FORM: Final = re.compile(r"[A-Za-z0-9._~+/-]+=*", re.ASCII)
_GOOD_FOR: Final = "10m"
#: Seconds; a program that asks the person for something needs them.
_LOGIN: Final = 300.0


def token(kubectl: Kubectl, *, file: Path | None, service_account: str | None, namespace: str) -> Secret:
    """The token to show to the operator.

    :param file: holds it; otherwise it is the kubeconfig's.
    :param service_account: who is to ask in the caller's place; one of ``namespace``.
    :raises Failed: there is none.
    """
    if file is not None:
        return _checked(_read(file), "the file")
    if service_account is not None:
        asked = ("create", "token", service_account, f"--audience={AUDIENCE}", f"--duration={_GOOD_FOR}")
        return _checked(kubectl.text(*asked, namespace=namespace), "kubectl")
    config = kubectl.json("config", "view", "--raw", "--minify")
    user = _part(config, "users", "user")
    if user.get("token"):
        return _checked(str(user["token"]), "the kubeconfig")
    if user.get("tokenFile"):
        return _checked(_read(Path(user["tokenFile"])), "the kubeconfig's token file")
    if user.get("exec"):
        return _checked(_executed(user["exec"], _part(config, "clusters", "cluster")), "the kubeconfig's program")
    raise Failed(
        "the kubeconfig has no token, which the operator needs to know who asks: name a service account that you may"
        " create tokens for (--service-account), or a file with a token (--token-file)",
        code=Exit.SETTINGS,
    )


def _part(config: Mapping[str, Any], kind: str, part: str) -> Mapping[str, Any]:
    entries = config.get(kind) or [{}]
    return entries[0].get(part) or {}


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        raise Failed(f"{file} cannot be read", code=Exit.SETTINGS) from None


def _checked(found: str, whose: str) -> Secret:
    if _FORM.fullmatch(found.strip()) is None:
        raise Failed(f"{whose} gives no bearer token", code=Exit.SETTINGS)
    return Secret(found.strip())


def _executed(told: Mapping[str, Any], cluster: Mapping[str, Any]) -> str:
    """Ask the program that the kubeconfig names, as kubectl does (``client.authentication.k8s.io``)."""
    version = str(told.get("apiVersion", ""))
    spec: dict[str, Any] = {"interactive": sys.stdin.isatty()}
    if told.get("provideClusterInfo"):
        spec["cluster"] = cluster
    asked = json.dumps({"apiVersion": version, "kind": "ExecCredential", "spec": spec})
    variables = [f"{each['name']}={each['value']}" for each in told.get("env") or ()]
    # env(1) adds to the environment, which is not read here
    command = ["env", f"KUBERNETES_EXEC_INFO={asked}", *variables, str(told["command"]), *(told.get("args") or ())]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=_LOGIN)
        found = json.loads(done.stdout)["status"].get("token")
    except (OSError, subprocess.SubprocessError, ValueError, KeyError, TypeError):
        raise Failed(f"{told['command']}, which the kubeconfig names, gives no credentials") from None
    return str(found or "")
