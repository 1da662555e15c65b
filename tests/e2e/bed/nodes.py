"""A whole cluster with one node: control plane on this machine, containerd, kubelet, proxy, DNS and policies in a sandbox.

``python -m e2e.bed.nodes FOLDER`` starts one to look at, which ends with its standard input.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml

from baton.embedded.children import Child, Children, Program
from cluster.bed.asking import Kubernetes
from cluster.bed.servers import ApiServer, write_kubeconfig
from e2e.bed.images import PAUSE, Images
from e2e.bed.programs import Programs, find_or_build_all
from e2e.bed.sandboxes import HOST, NODE, PODS, Sandbox
from support.waiting import wait_until

NAME = "node-1"
SERVICES = "10.96.0.0/16"
_ACCOUNTS = {
    "manager": ("system:kube-controller-manager", ""),
    "scheduler": ("system:kube-scheduler", ""),
    "proxy": ("system:kube-proxy", ""),
    "kubelet": (f"system:node:{NAME}", "system:nodes"),
}
_DNS = """
cluster.local:53 {
  bind %s
  errors
  kubernetes cluster.local {
    kubeconfig %s
    ttl 1
  }
}
.:53 {
  bind %s
  template ANY ANY {
    rcode NXDOMAIN
  }
}
"""


class Node:
    """The cluster. Everything of it is in one folder and one sandbox."""

    def __init__(self, folder: Path, programs: Programs) -> None:
        self.folder = folder
        self._programs = programs
        self._children = Children()
        self._ends = ExitStack()
        self.sandbox = Sandbox(folder)
        users = [f'{name}-of-the-test-bed,{user},{name},"{group}"' for name, (user, group) in _ACCOUNTS.items()]
        certificate, key = folder / "asking.crt", folder / "asking.key"
        flags = {
            "advertise-address": HOST,
            "endpoint-reconciler-type": "lease",
            "authorization-mode": "Node,RBAC",
            "disable-admission-plugins": "",
            "kubelet-client-certificate": certificate,
            "kubelet-client-key": key,
            "kubelet-preferred-address-types": "InternalIP",
        }
        self.server = ApiServer(folder / "server", binaries=programs.servers, host=HOST, users=users, flags=flags)
        self.kubernetes: Kubernetes

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            self._start()
        except BaseException:
            self._ends.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ends.close()

    def restart_kubelet(self) -> None:
        """End it as a crash would, and start it again; pods go on."""
        self._kubelet.kill()
        self._kubelet.start()

    def load(self, archive: Path) -> None:
        """Have the node know an image."""
        self.ctr("images", "import", str(archive))

    def ctr(self, *arguments: str) -> str:
        """What containerd's own client says."""
        return self.sandbox.run("ctr", "--address", str(self._socket), "--namespace", "k8s.io", *arguments)

    @property
    def _socket(self) -> Path:
        return self.folder / "containerd.sock"

    def _start(self) -> None:
        self._ends.enter_context(self.sandbox)
        self._ends.callback(self._kill)
        _certificate(self.folder)
        self._ends.enter_context(self.server)
        self.kubernetes = self._ends.enter_context(Kubernetes.reached(self.server.kubeconfig))
        self._start_control()
        self._start_containerd()
        self._start_network()
        self._start_kubelet()

    def _start_control(self) -> None:
        common = {"leader-elect": "false", "bind-address": "127.0.0.1", "secure-port": 0}
        accounts = {
            "service-account-private-key-file": self.server.accounts_key,
            "root-ca-file": self.server.authority,
            "use-service-account-credentials": "true",
        }
        places = {name: self._kubeconfig(name) for name in _ACCOUNTS}
        self._run("manager", self._programs.manager, {"kubeconfig": places["manager"], **common, **accounts})
        self._run("scheduler", self._programs.scheduler, {"kubeconfig": places["scheduler"], **common})

    def _start_containerd(self) -> None:
        root = self.folder / "containerd"
        network = root / "network"
        network.mkdir(parents=True)
        cri = "io.containerd.grpc.v1.cri"
        settings = f"""
version = 2
root = "{root}/root"
state = "/run/containerd"
disabled_plugins = ["io.containerd.internal.v1.opt"]
[grpc]
  address = "{self._socket}"
[plugins."{cri}"]
  sandbox_image = "{PAUSE}"
  restrict_oom_score_adj = true
  [plugins."{cri}".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{network}"
"""
        (root / "config.toml").write_text(settings, encoding="utf-8")
        # every packet between pods goes by way of the node, where policies are enforced, and keeps its sender
        range_ = {"type": "host-local", "ranges": [[{"subnet": PODS}]], "routes": [{"dst": "0.0.0.0/0"}]}
        plugins = [
            {"type": "ptp", "ipMasq": False, "ipam": range_},
            {"type": "portmap", "capabilities": {"portMappings": True}},
        ]
        chain = {"cniVersion": "1.0.0", "name": "baton", "plugins": plugins}
        (network / "10-baton.conflist").write_text(json.dumps(chain), encoding="utf-8")
        child = self._inside("containerd", "containerd", {"config": root / "config.toml"})
        child.wait_ready(self._containerd_answers, timeout=30)

    def _start_network(self) -> None:
        proxy = {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "mode": "iptables",
            "clusterCIDR": PODS,
            "hostnameOverride": NAME,
            "bindAddress": NODE,
            "oomScoreAdj": 0,
            "conntrack": {"maxPerCore": 0, "min": 0},
            "clientConnection": {"kubeconfig": str(self._kubeconfig("proxy"))},
        }
        self._inside("proxy", self._programs.proxy, {"config": self._written("proxy.yaml", proxy)})
        names = self.folder / "Corefile"
        names.write_text(_DNS % (NODE, self.server.kubeconfig, NODE), encoding="utf-8")
        self._inside("dns", self._programs.dns, {"conf": names})
        policies = {
            "kubeconfig": self.server.kubeconfig,
            "run-router": "false",
            "run-service-proxy": "false",
            "run-firewall": "true",
            "hostname-override": NAME,
            "service-cluster-ip-range": SERVICES,
            "iptables-sync-period": "5s",
            "health-port": 0,
            "metrics-port": 0,
        }
        self._policies = policies

    def _start_kubelet(self) -> None:
        resolve = self.folder / "resolv.conf"
        resolve.write_text(f"nameserver {NODE}\n", encoding="utf-8")
        settings = {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": False},
                "x509": {"clientCAFile": str(self.folder / "asking.crt")},
            },
            "authorization": {"mode": "AlwaysAllow"},
            "cgroupDriver": "cgroupfs",
            # the first version of control groups is what some machines still have
            "failCgroupV1": False,
            "oomScoreAdj": 0,
            "enforceNodeAllocatable": [],
            "evictionHard": dict.fromkeys(
                ("memory.available", "nodefs.available", "nodefs.inodesFree", "imagefs.available"), "0%"
            ),
            "failSwapOn": False,
            "imageGCHighThresholdPercent": 100,
            "imageGCLowThresholdPercent": 99,
            "containerRuntimeEndpoint": f"unix://{self._socket}",
            "resolvConf": str(resolve),
            "clusterDNS": [NODE],
            "clusterDomain": "cluster.local",
            "makeIPTablesUtilChains": False,
            "podLogsDir": str(self.folder / "logs"),
            "volumePluginDir": str(self.folder / "plugins"),
            "localStorageCapacityIsolation": False,
            # so that a pod that waited is tried again soon
            "crashLoopBackOff": {"maxContainerRestartPeriod": "10s"},
            "featureGates": {"KubeletCrashLoopBackOffMax": True},
        }
        flags = {
            "config": self._written("kubelet.yaml", settings),
            "kubeconfig": self._kubeconfig("kubelet"),
            "hostname-override": NAME,
            "node-ip": NODE,
            "root-dir": self.folder / "kubelet",
            "cert-dir": self.folder / "kubelet-certificates",
        }
        self._kubelet = self._inside("kubelet", self._programs.kubelet, flags)
        self._kubelet.wait_ready(self._is_ready, timeout=120)
        # it looks its own node up once, at its start
        self._inside("policies", self._programs.policies, self._policies)

    def _kill(self) -> None:
        for child in self._children:
            child.kill()

    def _is_ready(self) -> bool:
        found = self.kubernetes.http.get(f"/api/v1/nodes/{NAME}")
        if found.status_code != 200:
            return False
        conditions = found.json()["status"].get("conditions", ())
        return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)

    def _containerd_answers(self) -> bool:
        command = self.sandbox.inside("ctr", "--address", str(self._socket), "version")
        return subprocess.run(command, capture_output=True, timeout=60, check=False).returncode == 0

    def _kubeconfig(self, name: str) -> Path:
        file = self.folder / f"{name}.kubeconfig"
        token = f"{name}-of-the-test-bed"
        write_kubeconfig(file, url=self.server.url, authority=self.server.authority, token=token)
        return file

    def _written(self, name: str, content: Mapping[str, Any]) -> Path:
        file = self.folder / name
        file.write_text(yaml.safe_dump(dict(content)), encoding="utf-8")
        return file

    def _run(self, name: str, program: Path, flags: Mapping[str, object]) -> Child:
        return self._children.start(self._program(name, str(program), flags=flags))

    def _inside(self, name: str, program: Path | str, flags: Mapping[str, object]) -> Child:
        return self._children.start(self._program(name, *self.sandbox.inside(str(program)), flags=flags))

    def _program(self, name: str, *command: str, flags: Mapping[str, object]) -> Program:
        given = [f"--{flag}={value}" for flag, value in flags.items()]
        return Program(name, (*command, *given), log=self.folder / f"{name}.log", folder=self.folder)


def _certificate(folder: Path) -> None:
    """What the API server shows the kubelet, which believes this one certificate."""
    openssl = shutil.which("openssl")
    assert openssl is not None
    files = ("-keyout", str(folder / "asking.key"), "-out", str(folder / "asking.crt"))
    name = ("-days", "2", "-subj", "/O=system:masters/CN=kube-apiserver", "-addext", "extendedKeyUsage=clientAuth")
    subprocess.run(
        (openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", *files, *name), check=True, capture_output=True
    )


def is_up(pod: Mapping[str, Any]) -> bool:
    """Whether a pod is ready, and stays."""
    if "deletionTimestamp" in pod["metadata"]:
        return False
    conditions = pod["status"].get("conditions", ())
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def main() -> None:
    """Start one with a pod that does nothing, say where it is, and wait for the end of the input."""
    folder = Path(sys.argv[1])
    programs = find_or_build_all()
    assert programs is not None
    with Node(folder / "node", programs) as node:
        archive = Images().archive(PAUSE, folder / "pause.tar")
        node.load(archive)
        spec = {"containers": [{"name": "nothing", "image": PAUSE, "imagePullPolicy": "Never"}]}
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "nothing"}, "spec": spec}
        # the account of the namespace is made a moment after it
        wait_until(lambda: "created" in node.kubernetes.kubectl("create", "-f", "-", given=body, code=None), 60)
        node.kubernetes.kubectl("wait", "--for=condition=Ready", "pod/nothing", "--timeout=50s")
        sys.stdout.write(f"{node.sandbox.namespace} {node.server.kubeconfig}\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main()
