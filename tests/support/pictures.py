"""Pictures for the documents, of what a program really printed."""

import io
import subprocess
import sys
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

_WIDTH: Final = 132
_THEME: Final = TerminalTheme(
    (22, 27, 34), (215, 221, 228), [(72, 79, 88), (255, 123, 114), (86, 211, 100), (227, 179, 65), (121, 192, 255)] * 2
)
#: Nothing is loaded from elsewhere: any font of fixed width will do.
_FORMAT: Final = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: "DejaVu Sans Mono", Menlo, Consolas, monospace; font-size: {char_height}px;
  line-height: {line_height}px }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal"><rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/></clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""
#: Words of a line, and how it is shown.
_MARKS: Final = {
    "kill -9": "red",
    "is started again": "yellow",
    "ok ": "green",
    "registered": "green",
    "failed": "yellow",
}


def demo(folder: Path) -> Path:
    """Run `baton demo`, and draw what it printed but for the documents one by one.

    Raises subprocess.CalledProcessError where it does not end well.
    """
    program = Path(sys.executable).with_name("baton")
    done = subprocess.run([str(program), "demo"], capture_output=True, text=True, check=True)
    acts, _, rest = done.stdout.partition("\nBatch 1\n")
    _, _, summary = rest.partition("Killed with kill -9\n")
    path = folder / "demo.svg"
    path.write_text(drawn(f"{acts}\nKilled with kill -9\n{summary}", title="make demo"), encoding="utf-8")
    return path


def drawn(printed: str, *, title: str) -> str:
    """The lines as a terminal shows them, as SVG; longer ones are cut."""
    console = Console(record=True, file=io.StringIO(), width=_WIDTH, force_terminal=True)
    for line in printed.strip("\n").splitlines():
        style = next((color for words, color in _MARKS.items() if words in line and "..." not in line), "")
        console.print(Text(line.replace(" ", "\N{NO-BREAK SPACE}"), style=style), no_wrap=True, overflow="ellipsis")
    return console.export_svg(title=title, theme=_THEME, code_format=_FORMAT, unique_id="demo")


if __name__ == "__main__":
    print(demo(Path(sys.argv[1])))  # noqa: T201
