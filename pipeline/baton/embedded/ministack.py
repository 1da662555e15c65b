"""SQS and S3 of this process's own, or a setting's in their place."""

import http.client
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from baton.embedded.children import Child, Program
from baton.embedded.errors import EmbeddedError, NotOurs, StartFailed
from baton.embedded.ports import LOOPBACK, answers, free_port

REGION = "us-east-1"
# The secret of every account; the server verifies presigned URLs with it.
_SECRET = "embedded"
_PORT_TRIES = 5
_KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "VIRTUAL_ENV")


class AwsServer(Protocol):
    """What SQS and S3 are to their user, whoever runs them."""

    def start(self) -> None:
        """Make sure that they answer, where they are ours; raises EmbeddedError."""

    def stop(self) -> None:
        """End them in order, when they are ours."""

    def kill(self) -> None:
        """End them at once; raises NotOurs when they are not ours."""

    def environ(self, account: str) -> dict[str, str]:
        """What the AWS SDK reads from the environment to work there."""


class EmbeddedAws:
    """A server that speaks SQS and S3, its state in a folder that survives it.

    Every access key of twelve digits is an account of its own, seeing nothing of the others. A
    kill keeps the objects and takes the queues back to the last orderly stop. `port` 0 takes a
    free one, and keeps it over restarts of the same object. It believes whoever reaches `host`.
    """

    def __init__(self, state_dir: Path, *, host: str = LOOPBACK, port: int = 0) -> None:
        self._folder = Path(state_dir).absolute()
        self._host = host
        self._asked_port = port
        self._port = port
        self._child: Child | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def endpoint(self) -> str:
        """Its base URL; raises EmbeddedError before the first start."""
        if not self._port:
            raise EmbeddedError("the server has no port before its first start")
        return f"http://{self._host}:{self._port}"

    @property
    def running(self) -> bool:
        """Whether the server process lives."""
        return self._child is not None and self._child.running

    def environ(self, account: str) -> dict[str, str]:
        """What the AWS SDK reads from the environment to work in one account (twelve digits)."""
        return {
            "AWS_ACCESS_KEY_ID": account,
            "AWS_SECRET_ACCESS_KEY": _SECRET,
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_ENDPOINT_URL_SQS": self.endpoint,
            "AWS_ENDPOINT_URL_S3": self.endpoint,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        }

    def start(self) -> None:
        """Start it and wait until it answers; nothing happens when it runs. Raises StartFailed."""
        if self.running:
            return
        (self._folder / "objects").mkdir(parents=True, exist_ok=True)
        for attempt in range(_PORT_TRIES):
            self._port = self._port or free_port()
            try:
                self._start_server()
            except StartFailed:
                if self._asked_port or not answers(self._port, host=self._host) or attempt == _PORT_TRIES - 1:
                    raise
                self._port = 0
            else:
                return

    def stop(self) -> None:
        """Stop it in order, queues written down, within 15 s; killed after that."""
        if self._child is not None:
            self._child.stop(how=signal.SIGTERM, timeout=15)

    def kill(self) -> None:
        """End it at once."""
        if self._child is not None:
            self._child.kill()

    def _start_server(self) -> None:
        self._child = Child(
            Program(
                name="ministack",
                argv=(sys.executable, "-m", "ministack"),
                log=self._folder / "ministack.log",
                environ={
                    **{name: os.environ[name] for name in _KEPT if name in os.environ},
                    "AWS_SECRET_ACCESS_KEY": _SECRET,
                    "BIND_HOST": self._host,
                    "GATEWAY_PORT": str(self._port),
                    "SERVICES": "s3,sqs",
                    "PERSIST_STATE": "1",
                    "S3_PERSIST": "1",
                    "STATE_DIR": str(self._folder / "state"),
                    "S3_DATA_DIR": str(self._folder / "objects"),
                    "LOG_LEVEL": "WARNING",
                    # It writes its process id there, and a kill would leave that behind.
                    "TMPDIR": str(self._folder),
                },
                folder=self._folder,
            )
        )
        self._child.start()
        try:
            self._child.wait_ready(self._healthy, timeout=30)
        except StartFailed:
            self._child.kill()
            raise

    def _healthy(self) -> bool:
        # Not urllib: a proxy of the environment has no business here.
        connection = http.client.HTTPConnection(self._host, self._port, timeout=2)
        try:
            connection.request("GET", "/_ministack/health")
            return connection.getresponse().status == http.HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()


class ExternalAws:
    """Servers that settings name; never started, stopped or killed from here."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = dict(environ)

    def start(self) -> None:
        """Nothing: they are not ours, and whoever calls them hears whether they answer."""

    def stop(self) -> None:
        """Nothing: they are not ours."""

    def kill(self) -> None:
        """Refused: raises NotOurs."""
        raise NotOurs("the servers of AWS_ENDPOINT_URL_SQS and AWS_ENDPOINT_URL_S3 are not ours to kill")

    def environ(self, account: str) -> dict[str, str]:
        """The variables as they were given; their credentials are of one account, whichever is asked for."""
        del account
        return dict(self._environ)


def open_aws(state_dir: Path, *, environ: Mapping[str, str] | None = None) -> AwsServer:
    """The servers that `environ` names, or (None) an embedded one in `state_dir`; not yet started."""
    return EmbeddedAws(state_dir) if environ is None else ExternalAws(environ)
