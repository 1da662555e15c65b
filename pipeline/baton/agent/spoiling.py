"""Artifacts as they must not be, one fault in each and everything else right."""

import json
import uuid
from typing import Any, Final

from baton.agent.misbehaviour import Misbehaviour
from baton.contract.artifacts import Effect, build_artifact, digest, dump_effects
from baton.contract.invocations import Invocation

_NOTHING_OF_OURS: Final = "registrar.horoscope.v1"


def artifact_for(invocation: Invocation, *, effect: Effect, act: Misbehaviour | None) -> bytes:
    """The bytes to deliver: right, or spoiled in the way of the act."""
    delivery = invocation.result_delivery
    right = build_artifact([effect], schema=delivery.schema_name, run_id=invocation.run_id)
    schema: str = delivery.schema_name
    run_id = str(invocation.run_id)
    plain: list[dict[str, Any]] = dump_effects([effect])
    seal: str | None = None
    match act:
        case Misbehaviour.NOT_JSON:
            return b"<html><body>504 Gateway Time-out</body></html>"
        case Misbehaviour.HUGE:
            return right + b" " * (delivery.max_bytes + 1 - len(right))
        case Misbehaviour.WRONG_DIGEST:
            seal = digest([], schema=schema)
        case Misbehaviour.WRONG_SCHEMA:
            schema = _NOTHING_OF_OURS
        case Misbehaviour.OTHER_RUN:
            run_id = str(uuid.uuid5(invocation.run_id, "another run"))
        case Misbehaviour.UNKNOWN_EFFECT:
            plain = [{"kind": "shred", "thoroughly": True}]
        case Misbehaviour.NAMES_DOCUMENT:
            plain = [{**first, "document_id": str(uuid.uuid5(invocation.run_id, "a document"))} for first in plain]
        case _:
            return right
    value = {"schema": schema, "run_id": run_id, "effects": plain, "digest": seal or digest(plain, schema=schema)}
    return json.dumps(value, ensure_ascii=False).encode()
