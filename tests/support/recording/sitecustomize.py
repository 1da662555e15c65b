"""Put on a process's PYTHONPATH, this notes each call of the AWS SDK that the process makes.

One line of JSON for each: the operation, and the queue, bucket and key that it names. Addresses that are signed for
somebody else are noted as `Presign` and the operation.
"""

import json
import os
from pathlib import Path
from typing import Any

import botocore.client
import botocore.signers

_FILE = Path(os.environ["BATON_TEST_AWS_CALLS"])
_NAMED = ("QueueUrl", "QueueName", "Bucket", "Key", "Prefix")

_client: Any = botocore.client.BaseClient
_signers: Any = botocore.signers
_call = _client._make_api_call
_presign = _signers.generate_presigned_url


def _note(operation: str, parameters: dict[str, Any]) -> None:
    named = {name: str(parameters[name]) for name in _NAMED if name in parameters}
    with _FILE.open("a") as file:
        file.write(json.dumps({"operation": operation, **named}) + "\n")


def _noted_call(self: Any, operation_name: str, api_params: dict[str, Any]) -> Any:
    _note(operation_name, api_params)
    return _call(self, operation_name, api_params)


def _noted_presign(self: Any, ClientMethod: str, Params: Any = None, **options: Any) -> Any:  # noqa: N803
    _note(f"Presign {ClientMethod}", Params or {})
    return _presign(self, ClientMethod, Params, **options)


_client._make_api_call = _noted_call
# clients take the function over when their class is made
_signers.generate_presigned_url = _noted_presign
