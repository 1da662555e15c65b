"""The operator: which resources it works for, and how it reaches the Kubernetes API server.

Durations are seconds. What is done for a resource stands in the resource.
"""

from __future__ import annotations

from dataclasses import dataclass

from baton.settings import parsers
from baton.settings.fields import setting


@dataclass(frozen=True, slots=True)
class Operator:
    """One replica. In a cluster the service account's own files say where the API server is."""

    namespace: str | None = setting(
        "BATON_OPERATOR_NAMESPACE",
        parsers.text,
        default=None,
        unset="that of the operator's own service account, or of the kubeconfig",
        meaning="Namespace whose resources are worked for, and where the Lease is.",
    )
    cluster_wide: bool = setting(
        "BATON_OPERATOR_CLUSTER_WIDE",
        parsers.flag,
        default=False,
        meaning="Whether the resources of every namespace are worked for; it takes the rights of operator/rbac-cluster.yaml.",
    )
    identity: str | None = setting(
        "BATON_OPERATOR_IDENTITY",
        parsers.text,
        default=None,
        unset="the host's name, which is the pod's",
        meaning="Who this replica is, in the Lease.",
    )
    lease: str = setting(
        "BATON_OPERATOR_LEASE",
        parsers.text,
        default="baton-operator",
        meaning="Name of the Lease that says which replica works.",
    )
    lease_duration: float = setting(
        "BATON_OPERATOR_LEASE_DURATION",
        parsers.seconds(1, 3600),
        default=30.0,
        meaning="Time after which a Lease that nobody renewed is taken over.",
        unit="seconds",
    )
    roll_call: float = setting(
        "BATON_OPERATOR_ROLL_CALL",
        parsers.seconds(1, 86_400),
        default=300.0,
        meaning="Wait between two lists of the resources, which make up for an event that never came.",
        unit="seconds",
    )
    reading_port: int | None = setting(
        "BATON_OPERATOR_READING_PORT",
        parsers.port,
        default=None,
        unset="it is closed",
        meaning="Port of the read-only API, on the loopback address; `kubectl baton` looks for 8642.",
    )
    default_reconciler: str | None = setting(
        "BATON_OPERATOR_DEFAULT_RECONCILER",
        parsers.text,
        default=None,
        unset="none is made",
        meaning="A RegistrationReconciler that the operator makes in its own namespace, as JSON: its `name` and `spec`.",
    )
    kubeconfig: str | None = setting(
        "KUBECONFIG",
        parsers.text,
        default=None,
        unset="the service account's files",
        meaning="File that says how the API server is reached, outside a cluster.",
    )
    api_host: str | None = setting(
        "KUBERNETES_SERVICE_HOST",
        parsers.text,
        default=None,
        unset="this is no pod",
        meaning="Address of the API server; Kubernetes sets it in every pod.",
    )
    api_port: int = setting(
        "KUBERNETES_SERVICE_PORT",
        parsers.port,
        default=443,
        meaning="Port of the API server; Kubernetes sets it in every pod.",
    )
