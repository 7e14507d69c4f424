"""Plots as SVG, made on the server: pure functions from values to markup. Colours are classes of the style sheet.

Every text in a plot is escaped. A plot has a title for those who do not see it; the numbers stand in the page, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Final

from markupsafe import Markup, escape

from commonplace.memory.life import Moment
from commonplace.protocol.ids import parse_time

WORDS: Final = {
    "taught": "taught",
    "changed": "changed",
    "injected": "told",
    "retrieved": "found",
    "cited": "cited",
}
"""How each kind of moment is called for people."""
_WIDTH: Final = 720
_ROWS: Final = ("taught", "changed", "injected", "retrieved", "cited")
_LEFT: Final = 76
"""Where the time axis of a timeline begins; its row names stand before that."""
_ROW_HEIGHT: Final = 22
_MOST_DOTS: Final = 400
_SHORTEST_SECONDS: Final = 3_600
"""The time that a timeline spans at least."""


def timeline(moments: Sequence[Moment], now: datetime, clean: Callable[[str], str]) -> Markup:
    """Return moments as dots on lines through time, one line for each kind."""
    timed = [(moment, at) for moment in moments if (at := parse_time(moment.time)) is not None][-_MOST_DOTS:]
    if not timed:
        return Markup("")
    first = min(at.timestamp() for _, at in timed)
    last = max(now.astimezone(UTC).timestamp(), *(at.timestamp() for _, at in timed))
    first = min(first, last - _SHORTEST_SECONDS)  # what happened just now stands at the end
    span = last - first
    used = [row for row in _ROWS if any(moment.what == row for moment, _ in timed)]
    height = _ROW_HEIGHT * len(used) + 26
    parts = [_open(height, "The entry's life: when it was taught, changed and used")]
    for place, row in enumerate(used):
        y = 14 + place * _ROW_HEIGHT
        parts.append(Markup('<text class="t" x="0" y="{}">{}</text>').format(y + 4, WORDS[row]))
        parts.append(Markup('<line class="g" x1="{}" x2="{}" y1="{}" y2="{}"/>').format(_LEFT, _WIDTH - 8, y, y))
    for moment, at in timed:
        x = _LEFT + 6 + (at.timestamp() - first) / span * (_WIDTH - _LEFT - 20)
        y = 14 + used.index(moment.what) * _ROW_HEIGHT
        told = f"{moment.time[:10]} {WORDS[moment.what]}: {clean(moment.text)[:140]}"
        parts.append(_DOT.format(moment.what, f"{x:.1f}", y, told))
    for text, x, anchor in (
        (datetime.fromtimestamp(first, UTC).strftime("%Y-%m-%d"), _LEFT, "start"),
        ("now", _WIDTH - 8, "end"),
    ):
        parts.append(_LABEL.format(x, height - 4, anchor, text))
    return Markup("").join([*parts, Markup("</svg></div>")])


_DOT: Final = Markup('<circle class="d d-{}" cx="{}" cy="{}" r="5"><title>{}</title></circle>')
_LABEL: Final = Markup('<text class="t" x="{}" y="{}" text-anchor="{}">{}</text>')


def _open(height: int, title: str) -> Markup:
    return Markup(
        '<div class="plotbox" tabindex="0" role="region" aria-label="{}">'
        '<svg class="plot" viewBox="0 0 {} {}" role="img" aria-label="{}" preserveAspectRatio="xMinYMin meet">'
    ).format(title, _WIDTH, height, title)


def bars(values: Sequence[tuple[str, float]], title: str) -> Markup:
    """Return values as bars, each with its label and number as a tooltip."""
    if not values:
        return Markup("")
    height, top = 120, max((value for _, value in values), default=0) or 1
    step = _WIDTH / len(values)
    parts = [_open(height, title), Markup('<line class="g" x1="0" x2="{}" y1="100" y2="100"/>').format(_WIDTH)]
    for place, (label, value) in enumerate(values):
        size = value / top * 90
        parts.append(
            Markup('<rect class="b" x="{}" y="{}" width="{}" height="{}"><title>{}: {}</title></rect>').format(
                f"{place * step + step * 0.1:.1f}", f"{100 - size:.1f}", f"{step * 0.8:.1f}", f"{size:.1f}", label,
                f"{value:,.0f}",
            )
        )  # fmt: skip
    parts += [_LABEL.format(0, 116, "start", values[0][0]), _LABEL.format(_WIDTH, 116, "end", values[-1][0])]
    return Markup("").join([*parts, Markup("</svg></div>")])


def curve(points: Sequence[tuple[str, float]], marks: Sequence[int], title: str) -> Markup:
    """Return values in their order as a line; `marks` are the places of compactions."""
    if len(points) < 2:
        return Markup("")
    height, top = 130, max(value for _, value in points) or 1
    spots = [(place / (len(points) - 1) * _WIDTH, 108 - value / top * 92) for place, (_, value) in enumerate(points)]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in spots)
    parts = [_open(height, title), Markup('<line class="g" x1="0" x2="{}" y1="108" y2="108"/>').format(_WIDTH)]
    for mark in marks:
        if 0 <= mark < len(spots):
            x = f"{spots[mark][0]:.1f}"
            parts.append(
                Markup('<line class="m" x1="{}" x2="{}" y1="8" y2="108"><title>compacted</title></line>').format(x, x)
            )
    parts.append(Markup('<polyline class="l" points="{}"/>').format(escape(line)))
    parts.append(_LABEL.format(0, 12, "start", f"{top:,.0f}"))
    parts += [_LABEL.format(0, 126, "start", points[0][0]), _LABEL.format(_WIDTH, 126, "end", points[-1][0])]
    return Markup("").join([*parts, Markup("</svg></div>")])
