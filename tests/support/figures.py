"""Figures of the benchmarks: told at once, kept in `build/bench.json`, and laid out for a page."""

import json
import os
import platform
import sys
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

BUILD: Final = Path(__file__).parents[2] / "build"
_COMMAND: Final = "make bench"
_BEGIN, _END = "<!-- figures -->", "<!-- /figures -->"


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured value, and whether it is what it should be."""

    name: str
    value: float
    unit: str
    target: str
    """In words; blank: none, the figure is for orientation."""
    peer: tuple[str, float] | None = None
    """What it is measured against in the same run, and its value in the same unit."""
    ratio: float | None = None
    """Of the value to the peer's, or however the target says."""
    holds: bool = True

    def __str__(self) -> str:
        beside = "" if self.peer is None else f"; {self.peer[0]}: {_short(self.peer[1])}"
        ratio = "" if self.ratio is None else f"; ratio {_short(self.ratio)}"
        target = "" if not self.target else f"; target {self.target}: {'holds' if self.holds else 'MISSED'}"
        return f"{self.name}: {_short(self.value)} {self.unit}{beside}{ratio}{target}"


@dataclass(slots=True)
class Figures:
    """All of a run, by what they are about."""

    part: str = ""
    """What the figures that are recorded now are about."""
    found: dict[str, list[Figure]] = field(default_factory=dict)

    def record(self, figure: Figure) -> None:
        """Keep a figure and show it; one of the same name takes its place."""
        print(f"\n  {figure}", flush=True)  # noqa: T201
        kept = [each for each in self.found.get(self.part, ()) if each.name != figure.name]
        self.found[self.part] = [*kept, figure]

    @property
    def missed(self) -> list[Figure]:
        """Those that have a target and do not reach it."""
        return [each for part in self.found.values() for each in part if each.target and not each.holds]

    def write(self, folder: Path = BUILD) -> Path:
        """Write what was found; parts that were not run keep their earlier figures."""
        path = folder / "bench.json"
        folder.mkdir(exist_ok=True)
        parts = json.loads(path.read_text(encoding="utf-8"))["parts"] if path.exists() else {}
        for part, figures in self.found.items():
            parts[part] = {
                "at": datetime.now(UTC).isoformat(timespec="seconds"),
                "machine": machine(),
                "figures": list(map(_member, figures)),
            }
        document = {"command": _COMMAND, "parts": parts}
        new = path.with_suffix(".new")
        new.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        new.replace(path)
        return path


def machine() -> dict[str, Any]:
    """What was measured on: processor, cores, memory in GiB, kernel, Python."""
    facts = Path("/proc/cpuinfo").read_text(encoding="utf-8") if Path("/proc/cpuinfo").exists() else ""
    models = [line.partition(":")[2].strip() for line in facts.splitlines() if line.startswith("model name")]
    return {
        "processor": models[0] if models else platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "memory": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "kernel": platform.release(),
        "python": platform.python_version(),
    }


def page(document: dict[str, Any]) -> str:
    """The figures as Markdown tables, a section for each part."""
    lines = [f"Measured with `{document['command']}`."]
    for part, found in sorted(document["parts"].items()):
        at, on = found["at"][:16].replace("T", " "), found["machine"]
        where = (
            f"{on['cores']} cores ({on['processor']}), {on['memory']} GiB, Linux {on['kernel']}, Python {on['python']}"
        )
        lines += ["", f"### {part}", "", f"{at} UTC, on {where}.", ""]
        lines += ["| figure | value | beside it | ratio | target | holds |", "|---|---:|---|---:|---|---|"]
        for each in found["figures"]:
            beside = "" if each["peer"] is None else f"{each['peer']['name']}: {_short(each['peer']['value'])}"
            ratio = "" if each["ratio"] is None else _short(each["ratio"])
            holds = "" if not each["target"] else "yes" if each["holds"] else "**no**"
            value = f"{_short(each['value'])} {each['unit']}"
            lines.append(f"| {each['name']} | {value} | {beside} | {ratio} | {each['target']} | {holds} |")
    return "\n".join(lines) + "\n"


def lay_out(path: Path, *, folder: Path = BUILD) -> None:
    """Put the tables of `build/bench.json` between the markers of a page."""
    document = json.loads((folder / "bench.json").read_text(encoding="utf-8"))
    head, _, rest = path.read_text(encoding="utf-8").partition(_BEGIN)
    _, end, foot = rest.partition(_END)
    if not end:
        raise ValueError(f"{path} has no markers")
    path.write_text(f"{head}{_BEGIN}\n\n{page(document)}\n{_END}{foot}", encoding="utf-8")


def _member(figure: Figure) -> dict[str, Any]:
    peer = figure.peer
    return asdict(figure) | {"peer": None if peer is None else {"name": peer[0], "value": peer[1]}}


def _short(value: float) -> str:
    if value == int(value) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) < 1 else f"{value:,.2f}".rstrip("0").rstrip(".")


if __name__ == "__main__":
    lay_out(Path(sys.argv[1]))
