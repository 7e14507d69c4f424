"""One report of all that was promised and measured: `bench/results/README.md`, made from the tables beside it.

Nothing is measured here. A number stands in a table that a bench wrote; the report finds it there, says whether the
promise holds, and draws what is compared with other programs. A promise whose table is missing says so.
"""

from __future__ import annotations

import re
from html import escape
from pathlib import Path
from typing import Final, NamedTuple

RESULTS: Final = Path(__file__).parent / "results"
_HEAD: Final = """\
# What was promised, and what was measured

Made by `make bench` from the tables of this folder, which say on which machine and when each was measured. Every
machine has two cores. Times on a shared machine vary by a tenth and more, so where other programs stand beside ours,
both ran in one run and the ratio counts. What our own sets show (gold sets, the catalogue of secrets) is a test of
form, not of quality.
"""
_NUMBER: Final = re.compile(r"-?\d[\d,]*(?:\.\d+)?")
_WIDTH, _BAR, _LEFT = 640, 22, 250


class Promise(NamedTuple):
    """A number that was promised: where it stands, and its bound."""

    what: str
    page: str
    section: str
    row: str
    """How the cells of the row begin, joined by ` | `."""
    column: str
    bound: float
    unit: str
    is_least: bool = False
    """The bound is a least value, not a greatest."""
    part: int = 0
    """Which number of the cell it is."""


PROMISES: Final = (
    Promise(
        "Resuming a session of 1 GB, beside one of 1 MB", "ledger", "Resume, paginated", "1 GB", "× 1 MB", 1.2, "×"
    ),
    Promise("A page of 25 of 50,000 threads", "ledger", "Listing", "newest page of 25", "measured", 50, "ms"),
    Promise("One more item at 10,000 items", "context", "One more item", "10,000", "median", 10, "ms"),
    Promise(
        "Learning from raw sessions, one core",
        "learning",
        "The whole of `learn`",
        "one core, speed",
        "measured",
        40,
        "MB/s",
        is_least=True,
    ),
    Promise("Redaction of sessions", "redact", "Speed", "sessions of Codex", "MB/s", 30, "MB/s", is_least=True),
    Promise(
        "SessionStart, ready, 5,000 entries, 50,000 sessions, worst",
        "session_start",
        "SessionStart",
        "ready",
        "start to end",
        150,
        "ms",
        part=1,
    ),
    Promise(
        "SessionStart, nothing is ready, worst",
        "session_start",
        "SessionStart",
        "nothing is ready",
        "start to end",
        150,
        "ms",
        part=1,
    ),
    Promise(
        "Exact search of 10,000 files, cold, beside ripgrep",
        "exact",
        "10,000 summaries",
        "a rare text",
        "times",
        5,
        "×",
    ),
    Promise(
        "64 sessions read by a model that answers at once", "extraction", "The whole command", "7", "median", 1.3, "s"
    ),
    Promise("Web: first page with 50,000 sessions", "web", "Pages", "Today", "first", 150, "ms"),
    Promise("Web: a session of 500 MB at its last turns", "web", "Pages", "a session of 500 MB", "first", 300, "ms"),
    Promise(
        "App server: slowest of 100 turns beside the median", "app_server", "100 turns", "1", "longest / median", 2, "×"
    ),
    Promise(
        "App server: a thread that rests, after others",
        "app_server",
        "Memory of a thread",
        "302 to 401",
        "after a turn",
        100,
        "KB",
    ),
    Promise("`exec` in a used home beside Codex", "agent", "One turn", "used | Commonplace", "wall", 0, "ms"),
    Promise(
        "Memory server: `initialize`, first start ever, worst",
        "mcp",
        "From starting",
        "first start ever",
        "`initialize`",
        2000,
        "ms",
        part=1,
    ),
    Promise(
        "Claims: 100,000 threads beside 10,000", "state", "One transaction", "SQLite | claim of 8", "ratio", 2, "×"
    ),
)


class Chart(NamedTuple):
    """Bars of one column of a table."""

    title: str
    name: str
    page: str
    section: str
    bars: tuple[tuple[str, str, str], ...]
    """The name of each bar, the beginning of its row, and its column."""


CHARTS: Final = (
    Chart(
        "Resuming a session of 1 GB: milliseconds, less is better",
        "chart-resume",
        "ledger",
        "Resume, paginated",
        (
            ("Commonplace", "1 GB", "Commonplace"),
            ("Codex, the first time", "1 GB", "Codex, first"),
            ("Codex, again", "1 GB", "Codex, again"),
        ),
    ),
    Chart(
        "The same: peak memory in MB",
        "chart-resume-memory",
        "ledger",
        "Resume, paginated",
        (("Commonplace", "1 GB", "peak RSS"), ("Codex", "1 GB", "Codex RSS")),
    ),
    Chart(
        "Items appended in a second, each acknowledged, more is better",
        "chart-append",
        "peers",
        "Appending",
        (("Commonplace", "Commonplace", "items/s"), ("Agents SDK, SQLiteSession", "Agents SDK", "items/s")),
    ),
    Chart(
        'Made-up credentials found, as `name = "…"`, of 377',
        "chart-secrets",
        "peers",
        "Secrets",
        (
            ("Commonplace", 'formats, as `name = "…"`', "Commonplace finds"),
            ("detect-secrets", 'formats, as `name = "…"`', "detect-secrets 1.5.0 finds"),
        ),
    ),
)


def cell(page: str, section: str, row: str, column: str) -> str | None:
    """Return a cell of a table; None if there is none such."""
    path = RESULTS / f"{page}.md"
    if not path.exists():
        return None
    for part in path.read_text("utf-8").split("\n## ")[1:]:
        lines = [line[1:].rstrip(" |") for line in part.splitlines() if line.startswith("|")]
        if not part.startswith(section) or len(lines) < 3:
            continue
        header = [name.strip() for name in lines[0].split("|")]
        at = next((place for place, name in enumerate(header) if name.startswith(column)), None)
        for line in lines[2:]:
            cells = [text.strip() for text in line.split("|")]
            if at is not None and line.strip().startswith(row) and at < len(cells):
                return cells[at]
    return None


def number(text: str | None, part: int = 0) -> float | None:
    """Return a number of a cell, in the unit that most cells have: seconds become milliseconds beside those."""
    found = _NUMBER.findall(text or "")
    if len(found) <= part:
        return None
    value = float(found[part].replace(",", ""))
    return value * 1000 if text is not None and text.endswith(" s") else value


def write() -> None:
    """Write the report and its charts."""
    for path, text in made().items():
        path.write_text(text, "utf-8")


def made() -> dict[Path, str]:
    """Return the report and its charts, by where they belong."""
    files: dict[Path, str] = {}
    text = _HEAD + "\n## Promises\n\n| what | promised | measured | |\n|---|---|---|---|\n"
    text += "".join(_line(each) for each in PROMISES)
    text += "\n## Beside other programs\n"
    for chart in CHARTS:
        bars = [(name, number(cell(chart.page, chart.section, row, column))) for name, row, column in chart.bars]
        known = [(name, value) for name, value in bars if value is not None]
        if len(known) == len(bars):
            files[RESULTS / f"{chart.name}.svg"] = svg(chart.title, known)
            text += f"\n{chart.title} ([table]({chart.page}.md)):\n\n![{chart.title}]({chart.name}.svg)\n"
    text += "\n## All tables\n\n"
    for path in sorted(RESULTS.glob("*.md")):
        if path.name != "README.md":
            title = path.read_text("utf-8").partition("\n")[0].removeprefix("# ").removesuffix(", measured")
            text += f"* [{title}]({path.name})\n"
    return {**files, RESULTS / "README.md": text}


def _line(each: Promise) -> str:
    shown = cell(each.page, each.section, each.row, each.column)
    value, bound = number(shown, each.part), each.bound
    if each.page == "agent":  # the promise is the other program's time
        bound = number(cell("agent", each.section, "used | Codex", each.column)) or 0.0
    if each.unit == "s" and value is not None:
        value /= 1000
    sign = "at least" if each.is_least else "at most"
    holds = value is not None and (value >= bound if each.is_least else value <= bound)
    said = "not measured" if value is None else f"{value:g} {each.unit}"
    verdict = "holds" if holds else "**does not hold**" if value is not None else ""
    return f"| [{each.what}]({each.page}.md) | {sign} {bound:g} {each.unit} | {said} | {verdict} |\n"


def svg(title: str, bars: list[tuple[str, float]]) -> str:
    """Return bars as SVG, one under the other."""
    most = max(value for _, value in bars) or 1.0
    parts: list[str] = []
    for place, (name, value) in enumerate(bars):
        top = 8 + place * (_BAR + 10)
        length = max(2.0, (_WIDTH - _LEFT - 90) * value / most)
        fill = "#3f6fd8" if place == 0 else "#9aa4b2"
        parts.append(f'<text x="{_LEFT - 10}" y="{top + 16}" text-anchor="end">{escape(name)}</text>')
        parts.append(f'<rect x="{_LEFT}" y="{top}" width="{length:.0f}" height="{_BAR}" rx="3" fill="{fill}"/>')
        parts.append(f'<text x="{_LEFT + length + 8:.0f}" y="{top + 16}">{value:,.6g}</text>')
    height = 8 + len(bars) * (_BAR + 10)
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img"'
        f' aria-label="{escape(title, quote=True)}">\n<style>text {{ font: 14px system-ui, sans-serif; fill: #57606a }}'
        f"</style>\n{body}\n</svg>\n"
    )
