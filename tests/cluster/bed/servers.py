"""An API server of this session's own, as child processes that never outlive it."""

import signal
import ssl
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx
import yaml

from baton.embedded.children import Child, Children, Program
from baton.embedded.ports import LOOPBACK, free_port
from cluster.bed.building import Binaries

ADMIN = "admin-of-the-test-bed"


class ApiServer:
    """etcd and kube-apiserver in one folder; memory-fast, not durable."""

    def __init__(
        self,
        folder: Path,
        *,
        binaries: Binaries,
        host: str = LOOPBACK,
        users: Sequence[str] = (),
        flags: Mapping[str, object] | None = None,
    ) -> None:
        """Nothing is started yet.

        :param host: the address that it listens on.
        :param users: who else it knows, each as ``token,name,id,"groups"``.
        :param flags: of the server, in the place of those that it has for itself.
        """
        self._folder = folder
        self._binaries = binaries
        self._host = host
        self._users = users
        self._flags = flags or {}
        self._children = Children()
        self._api: Child | None = None
        self.port = free_port()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"https://{self._host}:{self.port}"

    @property
    def authority(self) -> Path:
        """What its certificate is checked with."""
        return self._folder / "certificates" / "apiserver.crt"

    @property
    def accounts_key(self) -> Path:
        """What service accounts' tokens are signed with."""
        return self._folder / "certificates" / "accounts.key"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's way to it."""
        return self._folder / "admin.kubeconfig"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._children.stop(timeout=5)

    def start(self) -> None:
        """Start both, and wait until it is ready."""
        self._folder.mkdir(parents=True, exist_ok=True)
        client, peer = (f"http://{LOOPBACK}:{free_port()}" for _ in range(2))
        self._run(
            "etcd",
            self._binaries.etcd,
            **{"data-dir": self._folder / "etcd", "listen-client-urls": client, "advertise-client-urls": client},
            **{"listen-peer-urls": peer, "initial-advertise-peer-urls": peer, "initial-cluster": f"default={peer}"},
            **{"unsafe-no-fsync": "true", "log-level": "warn"},
        )
        tokens = self._folder / "tokens.csv"
        tokens.write_text("\n".join((f'{ADMIN},admin,admin,"system:masters"', *self._users, "")))
        tokens.chmod(0o600)
        certificates = self._folder / "certificates"
        certificates.mkdir(exist_ok=True)
        make_key(self.accounts_key)
        flags: dict[str, object] = {
            "etcd-servers": client,
            "bind-address": self._host,
            "secure-port": self.port,
            "advertise-address": "10.255.255.1",
            "endpoint-reconciler-type": "none",
            # its own certificate, made at the first start; the address is among its names
            "cert-dir": certificates,
            "token-auth-file": tokens,
            "authorization-mode": "RBAC",
            "service-account-issuer": "https://kubernetes.default.svc",
            "service-account-key-file": self.accounts_key,
            "service-account-signing-key-file": self.accounts_key,
            "service-cluster-ip-range": "10.96.0.0/16",
            "disable-admission-plugins": "ServiceAccount",
            "profiling": "false",
        }
        self._api = self._run("kube-apiserver", self._binaries.apiserver, **{**flags, **self._flags})
        self._api.wait_ready(self._ready, timeout=120)
        write_kubeconfig(self.kubeconfig, url=self.url, authority=self.authority, token=ADMIN)

    def away(self) -> None:
        """End the API server at once; what it keeps stays."""
        assert self._api is not None
        self._api.kill()

    def back(self) -> None:
        """Start it again where it was, and wait until it is ready."""
        assert self._api is not None
        self._api.start()
        self._api.wait_ready(self._ready, timeout=120)

    def freeze(self, *, frozen: bool) -> None:
        """Stop it in its tracks, connections open and unanswered; or let it go on."""
        assert self._api is not None
        self._api.send(signal.SIGSTOP if frozen else signal.SIGCONT)

    def _ready(self) -> bool:
        if not self.authority.exists():
            return False
        try:
            context = ssl.create_default_context(cafile=str(self.authority))
            headers = {"Authorization": f"Bearer {ADMIN}"}
            return httpx.get(f"{self.url}/readyz", headers=headers, verify=context, timeout=5).status_code == 200
        except (httpx.HTTPError, ssl.SSLError):
            return False

    def _run(self, name: str, binary: Path, **flags: object) -> Child:
        arguments = (f"--{flag}={value}" for flag, value in flags.items())
        return self._children.start(
            Program(name, (str(binary), *arguments), log=self._folder / f"{name}.log", folder=self._folder)
        )


def make_key(file: Path) -> None:
    """The key that service accounts' tokens are signed with."""
    if not file.exists():
        subprocess.run(["openssl", "genrsa", "-out", str(file), "2048"], check=True, capture_output=True)


def write_kubeconfig(file: Path, *, url: str, authority: Path | None, token: str) -> None:
    """Write a way to the server for whoever has the token."""
    checked = {} if authority is None else {"certificate-authority": str(authority)}
    content: Mapping[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "bed", "cluster": {"server": url, **checked}}],
        "users": [{"name": "admin", "user": {"token": token}}],
        "contexts": [{"name": "bed", "context": {"cluster": "bed", "user": "admin"}}],
        "current-context": "bed",
    }
    file.write_text(yaml.safe_dump(content))
    file.chmod(0o600)
