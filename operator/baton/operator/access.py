"""How the API server is reached: from inside a pod, or by a kubeconfig file."""

from __future__ import annotations

import base64
import os
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from baton.settings.operating import Operator
from baton.settings.secret import Secret

_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class AccessMissing(Exception):
    """Nothing says how the API server is reached."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Where the API server is, and who asks it."""

    server: str
    namespace: str
    """Where the Lease is, and unless the whole cluster is worked for the resources are."""
    authority_file: str | None = None
    """``None``: the machine's own authorities. This and the other files may be readable by this process alone."""
    certificate_file: str | None = None
    key_file: str | None = None
    token_file: Path | None = None
    """Read anew for each use: the kubelet replaces it."""
    fixed_token: Secret | None = None

    def token(self) -> str | None:
        """The token of now."""
        if self.token_file is not None:
            return self.token_file.read_text(encoding="ascii").strip()
        return None if self.fixed_token is None else self.fixed_token.reveal()

    def tls(self) -> ssl.SSLContext:
        """What the server is checked with, and shown."""
        context = ssl.create_default_context(cafile=self.authority_file)
        if self.certificate_file is not None:
            context.load_cert_chain(self.certificate_file, self.key_file)
        return context


def find(config: Operator) -> Access:
    """The access that the settings lead to.

    :raises AccessMissing: this is no pod, and no kubeconfig is named.
    """
    if config.kubeconfig is not None:
        return from_kubeconfig(Path(config.kubeconfig), namespace=config.namespace)
    if config.api_host is None:
        raise AccessMissing("this is no pod, and KUBECONFIG names no file")
    host = f"[{config.api_host}]" if ":" in config.api_host else config.api_host
    return Access(
        server=f"https://{host}:{config.api_port}",
        namespace=config.namespace or (_ACCOUNT / "namespace").read_text(encoding="ascii").strip(),
        authority_file=str(_ACCOUNT / "ca.crt"),
        token_file=_ACCOUNT / "token",
    )


def identity(config: Operator) -> str:
    """Who this replica is: after a restart another one."""
    return f"{config.identity or socket.gethostname()}_{os.getpid()}"


def from_kubeconfig(file: Path, *, namespace: str | None = None) -> Access:
    """The access of a kubeconfig's current context.

    :raises AccessMissing: the file says nothing that can be used.
    """
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
        context = _named(content, "contexts", content["current-context"], "context")
        cluster = _named(content, "clusters", context["cluster"], "cluster")
        user = _named(content, "users", context["user"], "user")
        server = str(cluster["server"])
    except (OSError, KeyError, TypeError, StopIteration, yaml.YAMLError) as error:
        raise AccessMissing(f"{file} is no kubeconfig that can be used") from error
    if "exec" in user or "auth-provider" in user:
        raise AccessMissing(f"{file} has its credentials made by another program, which is not supported")
    token = user.get("token")
    return Access(
        server=server,
        namespace=namespace or context.get("namespace") or "default",
        authority_file=_file(cluster, "certificate-authority", file),
        certificate_file=_file(user, "client-certificate", file),
        key_file=_file(user, "client-key", file),
        token_file=Path(user["tokenFile"]) if token is None and "tokenFile" in user else None,
        fixed_token=None if token is None else Secret(str(token)),
    )


def _named(content: Mapping[str, Any], kind: str, name: str, part: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = next(each[part] for each in content[kind] if each["name"] == name)
    return found


def _file(entry: Mapping[str, Any], name: str, kubeconfig: Path) -> str | None:
    """A file that is named, or one with what is written in its place: in memory alone, so that no end leaves a key behind."""
    if entry.get(f"{name}-data"):
        made = os.memfd_create(f"baton-{name}")  # open for as long as the process
        with os.fdopen(made, "wb", closefd=False) as file:
            file.write(base64.b64decode(entry[f"{name}-data"]))
        return f"/proc/self/fd/{made}"
    return str(kubeconfig.parent / entry[name]) if entry.get(name) else None
