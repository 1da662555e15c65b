"""An SQS and S3 account for each test, on one server for the session."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import botocore.session
from botocore.config import Config

from baton.embedded.ministack import REGION, EmbeddedAws


@dataclass(frozen=True, slots=True)
class AwsAccount:
    """One account, seeing nothing of the others."""

    server: EmbeddedAws
    account: str
    """Twelve digits; they are the access key, too."""

    @property
    def endpoint(self) -> str:
        """The server's base URL."""
        return self.server.endpoint

    @property
    def environ(self) -> Mapping[str, str]:
        """What a child process needs in its environment to work in this account."""
        return self.server.environ(self.account)

    def client(self, service: str) -> Any:
        """A plain client for preparing and looking; what is under test makes its own."""
        return botocore.session.get_session().create_client(
            service,
            region_name=REGION,
            endpoint_url=self.endpoint,
            aws_access_key_id=self.account,
            aws_secret_access_key="embedded",
            config=Config(retries={"total_max_attempts": 2}, connect_timeout=5, read_timeout=30),
        )


def new_account(server: EmbeddedAws) -> AwsAccount:
    """An account that nobody has used."""
    return AwsAccount(server=server, account=str(secrets.randbelow(9 * 10**11) + 10**11))
