"""The artifact: the one JSON object that an agent leaves behind for a run.

    {"schema": …, "run_id": …, "effects": [ … ], "digest": "sha256:…"}

The digest is taken over the RFC 8785 form of `{"schema": …, "effects": …}`, so it does not depend on how the agent
spaces or orders its JSON. The artifact never says which document it is about: the run knows.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final
from uuid import UUID

from pydantic import BaseModel, Field, ValidationError

from baton.contract import limits, strictjson
from baton.contract.classification import LinkDocument, Turn
from baton.contract.errors import (
    ArtifactMalformed,
    ArtifactNamesDocument,
    ArtifactNotJson,
    ArtifactTooLarge,
    ArtifactWrongDigest,
    ArtifactWrongRun,
    ArtifactWrongSchema,
    InvalidEffect,
    UnknownEffect,
)
from baton.contract.invocations import describe, looks_like_id
from baton.contract.model import ContractModel
from baton.contract.purposes import SchemaName
from baton.contract.understanding import Brief, Card, Sections

Effect = Turn | Card | Sections | Brief

EFFECT_OF: Final[Mapping[SchemaName, type[Effect]]] = MappingProxyType(
    {
        SchemaName.CLASSIFICATION_V1: Turn,
        SchemaName.CARD_V1: Card,
        SchemaName.SECTIONS_V1: Sections,
        SchemaName.BRIEF_V1: Brief,
    }
)
"""The kind of effect in each schema. Each version so far has exactly one effect."""

_MEMBERS: Final = frozenset({"schema", "run_id", "effects", "digest"})
# Compared without case and punctuation, so that documentId and document_id are one.
_IDENTITIES: Final = frozenset({"document", "doc", "firm", "tenant", "matter"})
_IDENTITY_ENDS: Final = (
    *(kind + suffix for kind in sorted(_IDENTITIES) for suffix in ("id", "uuid", "key", "ref")),
    "extractionrunid",
    "objectkey",
)


class Artifact(ContractModel):
    """A verified artifact."""

    schema_name: SchemaName = Field(alias="schema")
    run_id: UUID
    effects: tuple[Effect, ...]
    digest: str


def digest(effects: Sequence[Effect | Mapping[str, Any]], *, schema: str) -> str:
    """`sha256:` and the hex digest over the canonical JSON of schema and effects.

    Raises strictjson.NotStrictJson where the effects have no canonical form.
    """
    value = {"schema": str(schema), "effects": _plain(effects)}
    return "sha256:" + hashlib.sha256(strictjson.canonical(value)).hexdigest()


def dump_effects(effects: Sequence[Effect]) -> list[dict[str, Any]]:
    """Effects as plain JSON values, without members that are None: the form that is digested and stored."""
    return [effect.model_dump(mode="json", exclude_none=True) for effect in effects]


def build_artifact(effects: Sequence[Effect], *, schema: SchemaName, run_id: UUID) -> bytes:
    """The bytes an agent delivers."""
    plain = dump_effects(effects)
    artifact = {
        "schema": str(schema),
        "run_id": str(run_id),
        "effects": plain,
        "digest": digest(plain, schema=schema),
    }
    return json.dumps(artifact, ensure_ascii=False, separators=(",", ":")).encode()


def parse_artifact(
    data: bytes,
    *,
    expected_schema: SchemaName,
    run_id: UUID,
    max_bytes: int = limits.DEFAULT_ARTIFACT_BYTES,
) -> Artifact:
    """Verify an artifact for a run, from its size to the last member of its effects.

    Raises the ArtifactError that names the first fault, and nothing else, whatever the bytes. The effects come back as
    models; `artifact.digest` is the one that was verified.
    """
    if len(data) > max_bytes:
        raise ArtifactTooLarge(f"{len(data)} bytes of {max_bytes}")
    try:
        value = strictjson.loads(data)
    except strictjson.NotStrictJson as error:
        raise ArtifactNotJson(str(error)) from None
    if not isinstance(value, dict):
        raise ArtifactMalformed("not an object")
    _refuse_identities(value)
    if value.keys() != _MEMBERS:
        missing = sorted(_MEMBERS - value.keys())
        raise ArtifactMalformed(f"missing: {missing}" if missing else "members that are not known")
    if not isinstance(value["effects"], list):
        raise ArtifactMalformed("effects: not an array")
    if value["schema"] != expected_schema:
        raise ArtifactWrongSchema(f"not {expected_schema}")
    if value["run_id"] != str(run_id):
        raise ArtifactWrongRun("run_id: another run")
    try:
        expected = digest(value["effects"], schema=expected_schema)
    except strictjson.NotStrictJson as error:
        raise ArtifactNotJson(str(error)) from None
    if value["digest"] != expected:
        raise ArtifactWrongDigest("the digest is not that of the effects")
    effects = parse_effects(value["effects"], schema=expected_schema)
    return Artifact(schema=expected_schema, run_id=run_id, effects=effects, digest=expected)


def parse_effects(value: Any, *, schema: SchemaName) -> tuple[Effect, ...]:
    """Effects as models, from plain JSON values such as a database's JSON column gives.

    Raises UnknownEffect, InvalidEffect or ArtifactNamesDocument, and nothing else.
    """
    if not isinstance(value, list) or len(value) != 1:
        raise InvalidEffect("effects: not an array of exactly one effect")
    model = EFFECT_OF[schema]
    raw = value[0]
    if not isinstance(raw, dict):
        raise InvalidEffect("effects.[0]: not an object")
    if raw.get("kind") != model.model_fields["kind"].default:
        raise UnknownEffect(f"effects.[0].kind: not of {schema}")
    try:
        # JSON mode: arrays become tuples and strings become dates and enums, yet nothing else is converted
        effect = model.model_validate_json(strictjson.canonical(raw))
    except strictjson.NotStrictJson as error:
        raise InvalidEffect(str(error)) from None
    except ValidationError as error:
        if any(fault["type"] == "union_tag_invalid" for fault in error.errors()):
            raise UnknownEffect("effects.[0].intents: a tool that is not known") from None
        raise InvalidEffect(describe(error)) from None
    if isinstance(effect, Turn):
        _refuse_ids_as_targets(effect)
    return (effect,)


def _plain(effects: Sequence[Effect | Mapping[str, Any]]) -> list[Any]:
    return [
        effect.model_dump(mode="json", exclude_none=True) if isinstance(effect, BaseModel) else effect
        for effect in effects
    ]


def _refuse_identities(value: Any) -> None:
    for _depth, node in strictjson.walk(value):
        if isinstance(node, dict):
            for name in node:
                bare = "".join(filter(str.isalnum, name)).lower()
                if bare in _IDENTITIES or bare.endswith(_IDENTITY_ENDS):
                    raise ArtifactNamesDocument("a member that says what the result is about")


def _refuse_ids_as_targets(turn: Turn) -> None:
    for intent in turn.intents:
        if isinstance(intent, LinkDocument) and looks_like_id(intent.target.value):
            raise ArtifactNamesDocument("a link whose target is an id")
