"""The resources, field by field, as a page: what `kubectl explain` tells of a cluster, for whoever has none at hand."""

from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from support.charts.places import KINDS

_HEAD = """# The resources, field by field

Generated from `crds/` by `make generated`; on a cluster `kubectl explain regrec.spec --recursive` tells the same. What they
do stands in [operator](operator.md) and [redrive](redrive.md). `[]` behind a name is a list, `{}` a map, `*` a field that
must be there.
"""
_BOUNDS = (
    ("minimum", "at least {}"),
    ("maximum", "at most {}"),
    ("minLength", "{} or more characters"),
    ("maxLength", "at most {} characters"),
    ("minItems", "{} or more entries"),
    ("maxItems", "at most {} entries"),
    ("maxProperties", "at most {} entries"),
    ("format", "{}"),
    ("pattern", "`{}`"),
)


def kinds_page() -> str:
    """The whole page."""
    return _HEAD + "".join(map(_kind, (yaml.safe_load(each.read_text(encoding="utf-8")) for each in KINDS)))


def _kind(definition: Mapping[str, Any]) -> str:
    spec = definition["spec"]
    names, (version,) = spec["names"], spec["versions"]
    schema = version["schema"]["openAPIV3Schema"]
    short = ", ".join(f"`{each}`" for each in names["shortNames"])
    parts = [
        (
            f"\n## {names['kind']}\n\n`{spec['group']}/{version['name']}`, in a namespace; for short {short}."
            f" {_line(schema['description'])}\n"
        ),
        "\n| column | shows |\n|---|---|\n",
        *(
            f"| {each['name']}{' (`-o wide`)' if each.get('priority') else ''} | {_line(each.get('description', ''))} |\n"
            for each in version["additionalPrinterColumns"]
        ),
    ]
    for block in ("spec", "status"):
        parts.append(f"\n### `{block}`\n\n{_line(schema['properties'][block]['description'])}\n")
        parts.append("\n| field | type | default | what it must be | meaning |\n|---|---|---|---|---|\n")
        parts += [f"| {' | '.join(row)} |\n" for row in _rows(schema["properties"][block], "")]
        parts += [f"\n{rule}\n" for rule in _rules(schema["properties"][block], block)]
    return "".join(parts)


def _rows(schema: Mapping[str, Any], path: str) -> Iterator[tuple[str, ...]]:
    required = schema.get("required", ())
    for name, field in schema.get("properties", {}).items():
        inner, mark = field, ""
        while inner.get("type") == "array" or isinstance(inner.get("additionalProperties"), dict):
            mark += "[]" if inner["type"] == "array" else "{}"
            inner = inner["items"] if inner["type"] == "array" else inner["additionalProperties"]
        here = f"{path}{name}{mark}"
        default = f"`{_shown(field['default'])}`" if "default" in field else ""
        bounds = "; ".join([*_bounds(field), *(_bounds(inner) if inner is not field else ())])
        shown = f"`{here}`{'*' if name in required else ''}"
        yield shown, inner["type"], default, bounds, _line(field.get("description", ""))
        yield from _rows(inner, f"{here}.")


def _bounds(field: Mapping[str, Any]) -> list[str]:
    told = [words.format(_line(str(field[name]))) for name, words in _BOUNDS if name in field]
    if "enum" in field:
        told.append("one of " + ", ".join(f"`{each}`" for each in field["enum"]))
    return told + [_line(each["message"]) for each in field.get("x-kubernetes-validations", ())]


def _rules(schema: Mapping[str, Any], block: str) -> Iterator[str]:
    for each in schema.get("x-kubernetes-validations", ()):
        yield f"`{block}` as a whole: {_line(each['message'])}."


def _shown(value: object) -> str:
    return yaml.safe_dump(value, default_flow_style=True, width=1000).strip().removesuffix("...").strip()


def _line(words: str) -> str:
    return " ".join(words.split()).replace("|", "\\|")
