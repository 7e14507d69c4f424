"""Rendering: templates with autoescape, the words for times and numbers, and differences of texts as marked pieces.

What comes from sessions or from the memory is cleaned by the page that reads it (`Site.cleaner`) and escaped here.
Characters that reorder what stands beside them, or that a terminal obeys, are shown by their numbers.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final
from urllib.parse import urlencode

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import HTMLResponse

from commonplace.patterns import regex
from commonplace.protocol.ids import parse_time
from commonplace.surfaces.web.access import visitor

NAV: Final = (
    ("today", "/", "Today"),
    ("memory", "/memory", "Memory"),
    ("review", "/review", "Review"),
    ("sessions", "/sessions", "Sessions"),
    ("prompt", "/prompt", "Prompt"),
    ("pipeline", "/pipeline", "Pipeline"),
)
_WORD: Final = regex(r"\s+|[\w'-]+|[^\w\s]")
_CODE: Final = regex(r"`([^`\n]{1,300})`|\*\*([^*\n]{1,300})\*\*")
_UNSEEN: Final = regex("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_LONGEST_DIFF: Final = 4_000
"""Texts with more words than this are shown one after the other: comparing them takes too long."""
_UNITS: Final = ((86_400 * 365, "year"), (86_400 * 30, "month"), (86_400, "day"), (3_600, "hour"), (60, "minute"))


class DiffPiece(msgspec.Struct, frozen=True):
    """A stretch of a text: the same, put in or taken out."""

    kind: str
    """`same`, `ins`, `del`."""
    text: str


def word_diff(before: str, after: str) -> list[DiffPiece]:
    """Return how a text changed, word by word."""
    old, new = _WORD.findall(before), _WORD.findall(after)
    if not before or not after or len(old) + len(new) > _LONGEST_DIFF:
        return [piece for piece in (DiffPiece("del", before), DiffPiece("ins", after)) if piece.text]
    return list(_pieces(old, new))


def _pieces(old: list[str], new: list[str]) -> Iterator[DiffPiece]:
    for kind, low, high, first, last in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            yield DiffPiece("same", "".join(old[low:high]))
            continue
        if high > low:
            yield DiffPiece("del", "".join(old[low:high]))
        if last > first:
            yield DiffPiece("ins", "".join(new[first:last]))


def marked(text: str, words: str) -> list[DiffPiece]:
    """Return a text with the first place that says some words marked, however they are broken into lines."""
    wanted = " ".join(words.removesuffix("…").split())
    flat: list[str] = []
    places: list[int] = []
    for place, letter in enumerate(text):
        if not letter.isspace():
            flat.append(letter)
            places.append(place)
        elif flat and flat[-1] != " ":
            flat.append(" ")
            places.append(place)
    at = "".join(flat).find(wanted) if wanted else -1
    if at < 0:
        return [DiffPiece("same", text)]
    start, end = places[at], places[at + len(wanted) - 1] + 1
    pieces = ("same", text[:start]), ("mark", text[start:end]), ("same", text[end:])
    return [DiffPiece(kind, part) for kind, part in pieces if part]


def line_diff(before: str, after: str) -> list[DiffPiece]:
    """Return how a text changed, line by line; what is far from a change is left out."""
    found: list[DiffPiece] = []
    for line in difflib.unified_diff(before.split("\n"), after.split("\n"), lineterm="", n=1):
        if not line.startswith(("---", "+++")):
            kind = {"+": "ins", "-": "del", "@": "hunk"}.get(line[:1], "same")
            found.append(DiffPiece(kind, "…" if kind == "hunk" else line))
    return found


def visible(text: str) -> str:
    """Return a text with its control characters, and those that reorder others, as numbers that can be read."""
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _finalized(value: Any) -> Any:
    """Return what a template writes for a value; markup stays markup."""
    if isinstance(value, Markup):
        return Markup(visible(str(value)))  # noqa: S704 (only digits and letters come in)
    return visible(value) if isinstance(value, str) else value


def address(path: str, **fields: str) -> str:
    """Return an address with those fields that are set."""
    query = urlencode({name: value for name, value in fields.items() if value})
    return f"{path}?{query}" if query else path


def inline(text: str) -> Markup:
    """Return a text with what stands between backticks as code, and what stands between double stars as strong."""
    parts: list[Markup] = []
    end = 0
    for found in _CODE.finditer(text):
        form = "<code>{}</code>" if found[1] is not None else "<strong>{}</strong>"
        parts += [escape(text[end : found.start()]), Markup(form).format(found[1] or found[2])]  # noqa: S704 (constants)
        end = found.end()
    return Markup("").join([*parts, escape(text[end:])])


def day(text: str | None) -> str:
    """Return a time as a day."""
    return (text or "")[:10]


def minute(text: str | None) -> str:
    """Return a time as a day and a minute (UTC)."""
    return (text or "")[:16].replace("T", " ")


def ago(text: str | None, now: datetime) -> str:
    """Return how long ago a time was."""
    moment = parse_time(text) if text else None
    if moment is None:
        return ""
    seconds = int((now - moment.astimezone(UTC)).total_seconds())
    for size, name in _UNITS:
        if seconds >= size:
            count = seconds // size
            return f"{count} {name}{'' if count == 1 else 's'} ago"
    return "just now"


def number(value: float | None) -> str:
    """Return a number with its thousands apart; a dash where none is known."""
    return "–" if value is None else f"{value:,.0f}"


def environment() -> Environment:
    """Return the templates of this package."""
    made = Environment(
        loader=PackageLoader("commonplace.surfaces.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalized,
    )
    made.filters.update(day=day, minute=minute, number=number, inline=inline)
    shared: dict[str, Any] = {"word_diff": word_diff, "marked": marked, "nav": NAV}
    for name, value in shared.items():
        made.globals[name] = value
    return made


def page(request: Request, name: str, active: str, values: dict[str, Any], status: int = 200) -> HTMLResponse:
    """Return a page made of a template."""
    site: Any = request.app.state.site
    seen = visitor(request.scope)
    whole: dict[str, Any] = {
        "active": active,
        "csrf": seen.csrf,
        "theme": seen.theme,
        "here": request.url.path + (f"?{request.url.query}" if request.url.query else ""),
        "done": site.undos.get(request.query_params.get("done", "")),
        "done_id": request.query_params.get("done", ""),
        "ago": partial(ago, now=site.book.state.now()),
        **values,
    }
    return HTMLResponse(site.templates.get_template(name).render(whole), status)
