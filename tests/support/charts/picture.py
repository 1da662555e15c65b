"""The dashboard as a picture, from what a real Prometheus knows; `make e2e` draws one.

It asks the panels' own questions, and lays the answers out as Grafana would. A picture for people; nothing is tested by it.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

import httpx

from support.charts.dashboard import ROWS, Panel, Query

_UNIT, _ROW, _GAP, _MARGIN = 60, 28, 8, 16
_WIDTH = 24 * _UNIT + 2 * _MARGIN
_COLOURS = ("#5794f2", "#73bf69", "#f2cc0c", "#ff780a", "#b877d9", "#e02f44", "#8ab8ff", "#96d98d")
_PAPER, _BOX, _LINE, _TEXT, _FAINT = "#111217", "#181b1f", "#2c3235", "#d8d9da", "#8e8e8e"
_GOOD, _BAD = "#73bf69", "#e02f44"


@dataclass(frozen=True)
class Line:
    """One line of a panel: its name, and moments with values."""

    name: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Box:
    """Where a panel is."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class Asking:
    """Whom to ask, for which namespace and time."""

    url: str
    namespace: str
    begin: float
    end: float

    def lines(self, query: Query) -> list[Line]:
        """What a panel's question finds over the time."""
        span = max(60, round(self.end - self.begin))
        replaced = {"$namespace": self.namespace, "$__rate_interval": "30s", "$__range": f"{span}s"}
        expression = query.expression
        for name, value in replaced.items():
            expression = expression.replace(name, value)
        asked: dict[str, str | float] = {
            "query": expression,
            "start": self.begin,
            "end": self.end,
            "step": max(1, span // 180),
        }
        answer = httpx.get(f"{self.url}/api/v1/query_range", params=asked, timeout=60).raise_for_status().json()
        found = []
        for each in answer["data"]["result"]:
            name = query.legend or "now"
            for label, value in each["metric"].items():
                name = name.replace("{{" + label + "}}", value)
            points = [(float(at), float(value)) for at, value in each["values"] if value not in ("NaN", "+Inf")]
            found.append(Line(name, points))
        return [each for each in found if each.points]


def picture(asking: Asking) -> str:
    """The whole dashboard as SVG."""
    parts: list[str] = []
    top: float = _MARGIN + 36
    for title, row in ROWS:
        parts.append(_words(_MARGIN, top + 18, title, size=15, weight=600))
        top += _ROW
        height = 84 if all(panel.kind == "stat" for panel in row) else 190
        left = 0
        for panel in row:
            if left + panel.width > 24:
                left, top = 0, top + height + _GAP
            box = Box(_MARGIN + left * _UNIT, top, panel.width * _UNIT - _GAP, height)
            parts += _panel(panel, asking, box)
            left += panel.width
        top += height + 2 * _GAP
    head = _words(_MARGIN, _MARGIN + 14, "Baton", size=18, weight=600)
    note = _words(_MARGIN + 70, _MARGIN + 14, f"namespace {asking.namespace}", colour=_FAINT)
    body = "\n".join((head, note, *parts))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {top:.0f}" font-family="Inter, Helvetica, Arial,'
        f' sans-serif">\n<rect width="100%" height="100%" fill="{_PAPER}"/>\n{body}\n</svg>\n'
    )


def _panel(panel: Panel, asking: Asking, box: Box) -> Iterator[str]:
    x, y, width, height = box.x, box.y, box.width, box.height
    yield f'<rect x="{x}" y="{y:.0f}" width="{width}" height="{height}" rx="3" fill="{_BOX}" stroke="{_LINE}"/>'
    yield _words(x + 10, y + 19, panel.title, size=13, weight=500)
    lines = [line for query in panel.queries for line in asking.lines(query)]
    if panel.kind == "stat":
        value = lines[0].points[-1][1] if lines else None
        bad = panel.alarm is not None and value is not None and value >= panel.alarm
        shown = "none" if value is None else dict(panel.words).get(f"{value:g}", _amount(value, panel.unit))
        yield _words(x + width / 2, y + 60, shown, size=30, weight=600, colour=_BAD if bad else _GOOD, anchor="middle")
    elif not lines:
        yield _words(x + width / 2, y + height / 2 + 5, "nothing in this time", colour=_FAINT, anchor="middle")
    elif panel.kind == "bargauge":
        yield from _bars(lines, panel, box)
    else:
        yield from _curves(lines, panel, asking, box)


def _bars(lines: Sequence[Line], panel: Panel, box: Box) -> Iterator[str]:
    x, y, width = box.x, box.y, box.width
    most = max(line.points[-1][1] for line in lines) or 1
    for index, line in enumerate(lines[:5]):
        top = y + 36 + index * 30
        share = line.points[-1][1] / most
        yield _words(x + 10, top + 14, line.name)
        yield f'<rect x="{x + 110}" y="{top}" width="{(width - 190) * share:.0f}" height="18" fill="{_COLOURS[index]}"/>'
        yield _words(x + width - 12, top + 14, _amount(line.points[-1][1], panel.unit), anchor="end")


def _curves(lines: Sequence[Line], panel: Panel, asking: Asking, box: Box) -> Iterator[str]:
    x, y, width, height = box.x, box.y, box.width, box.height
    inner_x, inner_y, inner_w, inner_h = x + 56, y + 30, width - 68, height - 72
    most = _round_up(max(value for line in lines for _, value in line.points))
    for step in range(5):
        level = inner_y + inner_h * (1 - step / 4)
        yield f'<path d="M{inner_x} {level:.1f}h{inner_w}" stroke="{_LINE}"/>'
        yield _words(inner_x - 6, level + 4, _amount(most * step / 4, panel.unit), size=10, colour=_FAINT, anchor="end")
    span = asking.end - asking.begin
    for index, line in enumerate(lines):
        colour = _COLOURS[index % len(_COLOURS)]
        path, before = "", -math.inf
        for at, value in line.points:
            place = f"{inner_x + inner_w * (at - asking.begin) / span:.1f} {inner_y + inner_h * (1 - value / most):.1f}"
            # where nothing was measured there is no line
            path += f"{'L' if at - before <= span / 40 else 'M'}{place}"
            before = at
        yield f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="2" stroke-linecap="round"/>'
    at_x = inner_x - 40
    for index, line in enumerate(lines[:8]):
        named = 24 + 6.6 * len(line.name)
        if at_x + named > x + width:
            break
        yield f'<rect x="{at_x}" y="{y + height - 24}" width="10" height="4" fill="{_COLOURS[index % len(_COLOURS)]}"/>'
        yield _words(at_x + 14, y + height - 18, line.name, size=11)
        at_x += named
    minutes = f"{span / 60:.0f} min"
    yield _words(x + width - 12, y + 19, minutes, size=10, colour=_FAINT, anchor="end")


def _words(
    x: float, y: float, text: str, *, size: int = 12, weight: int = 400, colour: str = _TEXT, anchor: str = "start"
) -> str:
    look = f'font-size="{size}" font-weight="{weight}" fill="{colour}" text-anchor="{anchor}"'
    return f'<text x="{x:.0f}" y="{y:.0f}" {look}>{escape(text)}</text>'


def _amount(value: float, unit: str) -> str:
    if unit == "s" and value >= 3600:
        return f"{value / 3600:.1f} h"
    if unit == "s" and value >= 60:
        return f"{value / 60:.1f} min"
    text = f"{value:.0f}" if value >= 100 or value == int(value) else f"{value:.2g}"
    return text + {"s": " s", "ops": "/s"}.get(unit, "")


def _round_up(value: float) -> float:
    if value <= 0:
        return 1.0
    scale = 10.0 ** math.floor(math.log10(value))
    return next(scale * step for step in (1, 2, 4, 5, 8, 10) if scale * step >= value)
