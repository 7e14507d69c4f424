"""Pictures of the four flows, drawn from the tables of `docs/how_it_works.md`: a step a row, one box under the other.

A row says what happens and where in the code. The colour of a box is that of its layer, so that a reader sees how a
flow goes down through the layers. The same table always gives the same bytes.
"""

from __future__ import annotations

import re
import textwrap
from html import escape
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parent.parent
PAGE: Final = ROOT / "docs" / "how_it_works.md"
PICTURES: Final = ROOT / "docs" / "pictures"

_ROW: Final = re.compile(r"^\| (?!what happens|---)(.+?) \| `([\w.]+)` \|$", re.MULTILINE)
_FLOW: Final = re.compile(r"^## (.+?)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_HUES: Final = {
    "surfaces": 262, "clients": 250, "app": 232, "learning": 20, "agent": 205, "memory": 140, "search": 165,
    "sessions": 185, "importers": 60, "projects": 48, "context": 90, "models": 310, "state": 330, "rollout": 350,
}  # fmt: skip
"""The colour of each layer, as an angle."""
_WIDTH: Final = 720
_LEFT: Final = 112
"""How much room the names of layers have."""
_LINE: Final = 20
_GAP: Final = 22
_LETTERS: Final = 74
"""How many letters a line of a box holds."""


class FlowStep(NamedTuple):
    """One step of a flow."""

    text: str
    place: str

    @property
    def layer(self) -> str:
        """The package that it stands in."""
        return self.place.partition(".")[0]


def flows(page: str) -> dict[str, list[FlowStep]]:
    """Return the flows of a page, each with its steps."""
    found = {title: [FlowStep(*row) for row in _ROW.findall(text)] for title, text in _FLOW.findall(page)}
    return {title: steps for title, steps in found.items() if steps}


def name(title: str) -> str:
    """Return the name of the picture of a flow."""
    return f"flow-{title.lower().replace(' ', '-')}.svg"


def picture(title: str, steps: list[FlowStep]) -> str:
    """Return a flow as SVG."""
    parts: list[str] = []
    top = 12
    for number, step in enumerate(steps):
        lines = textwrap.wrap(step.text, _LETTERS)
        height = _LINE * (len(lines) + 1) + 14
        hue = _HUES.get(step.layer, 0)
        if number:
            parts.append(f'<path class="a" d="M{_LEFT + 40} {top - _GAP + 2}v{_GAP - 8}" marker-end="url(#h)"/>')
        parts.append(
            f'<rect x="{_LEFT}" y="{top}" width="{_WIDTH - _LEFT - 12}" height="{height}" rx="8"'
            f' fill="hsl({hue} 60% 50% / .12)" stroke="hsl({hue} 50% 50%)"/>'
        )
        parts.append(f'<text class="l" x="{_LEFT - 12}" y="{top + 25}" text-anchor="end">{escape(step.layer)}</text>')
        parts += [
            f'<text x="{_LEFT + 16}" y="{top + 25 + _LINE * place}">{escape(line)}</text>'
            for place, line in enumerate(lines)
        ]
        parts.append(
            f'<text class="c" x="{_LEFT + 16}" y="{top + 25 + _LINE * len(lines)}">{escape(step.place)}</text>'
        )
        top += height + _GAP
    return _frame(title, top - _GAP + 12, "\n".join(parts))


def _frame(title: str, height: int, body: str) -> str:
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{escape(title)}">
<style>
text {{ font: 15px system-ui, sans-serif; fill: #1f2328 }}
.l {{ font-size: 13px; fill: #656d76 }}
.c {{ font: 12px ui-monospace, monospace; fill: #656d76 }}
.a {{ stroke: #8b949e; stroke-width: 2; fill: none }}
@media (prefers-color-scheme: dark) {{ text {{ fill: #e6edf3 }} .l, .c {{ fill: #9198a1 }} }}
</style>
<defs><marker id="h" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="6" markerHeight="6" orient="auto">
<path d="M0 0L8 4L0 8z" fill="#8b949e"/></marker></defs>
{body}
</svg>
"""


def pictures() -> dict[Path, str]:
    """Return every picture by where it belongs."""
    found = flows(PAGE.read_text("utf-8"))
    return {PICTURES / name(title): picture(title, steps) for title, steps in found.items()}
