"""The chart's values and the comments that belong to them."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

import yaml

from support.charts.places import VALUES


@dataclass(frozen=True)
class Value:
    """One value, or a block of values that has a comment of its own."""

    path: str
    comment: str
    default: object
    block: bool
    """Whether it holds values that are listed by themselves."""


def values() -> list[Value]:
    """Every value in the order of the file."""
    text = VALUES.read_text(encoding="utf-8")
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    assert isinstance(root, yaml.MappingNode)
    return list(_walk(root, yaml.safe_load(text), text.splitlines(), ""))


def _walk(node: yaml.MappingNode, data: dict[str, object], lines: list[str], prefix: str) -> Iterator[Value]:
    for key, value in node.value:
        comment, path, found = _above(lines, key.start_mark.line), prefix + key.value, data[key.value]
        inner = isinstance(value, yaml.MappingNode) and not value.flow_style and bool(value.value)
        # requests and limits belong together
        if inner and key.value != "resources":
            assert isinstance(found, dict)
            yield Value(path, comment, found, block=True)
            yield from _walk(value, found, lines, f"{path}.")
        else:
            yield Value(path, comment, found, block=False)


def _above(lines: list[str], line: int) -> str:
    """The comment right above a line."""
    found: list[str] = []
    while line > 0 and lines[line - 1].lstrip().startswith("# "):
        line -= 1
        found.insert(0, lines[line].strip().removeprefix("# "))
    return " ".join(found)


def shown(value: object) -> str:
    """A default as it stands in a table."""
    return f"`{json.dumps(value, ensure_ascii=False)}`".replace("|", "\\|")
