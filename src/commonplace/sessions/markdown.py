"""Sessions as Markdown, for people who want to keep or send one: a turn, or all of it.

Texts are cleaned by the caller's function before they are written. Fences are longer than any in the text, so that
nothing inside can end them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final, assert_never

from commonplace.patterns import regex
from commonplace.protocol.rollout import SessionMeta
from commonplace.sessions import excerpt
from commonplace.sessions.excerpt import Block, ExcerptCall, ExcerptMark, Said

_FENCE: Final = regex(r"`{3,}")
_NAMES: Final = {"user": "Person", "agent": "Agent", "context": "Context", "reasoning": "Reasoning"}


def whole(path: Path, clean: Callable[[str], str]) -> Iterator[str]:
    """Yield a session file as Markdown, a stretch at a time (raises NotASession, LedgerError)."""
    start: int | None = 0
    is_first = True
    while start is not None:
        found = excerpt.following(path, start)
        if is_first:
            yield _head(found.meta, clean)
        is_first = False
        yield "".join(_told(each, clean) for each in found.blocks)
        start = found.after


def turn(path: Path, offset: int, clean: Callable[[str], str]) -> str:
    """Return the turn that holds the line at a byte as Markdown (raises NotASession, LedgerError)."""
    found = excerpt.around(path, offset)
    begins = [each.offset for each in found.blocks if isinstance(each, Said) and each.begins_turn]
    first = max((start for start in begins if start <= offset), default=0)
    end = min((start for start in begins if start > offset), default=found.size)
    return _head(found.meta, clean) + "".join(_told(each, clean) for each in found.blocks if first <= each.offset < end)


def _head(meta: SessionMeta, clean: Callable[[str], str]) -> str:
    place = [f"in `{clean(meta.cwd)}`"] if meta.cwd else []
    facts = [f"Session `{meta.id}`", *place, meta.timestamp[:16].replace("T", " ")]
    return f"# {' '.join(fact for fact in facts if fact)}\n\n"


def _told(block: Block, clean: Callable[[str], str]) -> str:
    match block:
        case Said(who=who, text=text, images=images):
            seen = f"\n\n*{images} image(s)*" if images else ""
            body = fenced(clean(text)) if who == "context" else clean(text)
            return f"## {_NAMES[who]}{_at(block.time)}\n\n{body}{seen}\n\n"
        case ExcerptCall(name=name):
            parts = [f"### {clean(name)}{'' if block.ok in (None, True) else ' (failed)'}{_at(block.time)}\n\n"]
            parts += [fenced(clean(block.input)) + "\n\n"] if block.input else []
            parts += [fenced(clean(block.output)) + "\n\n"] if block.output else []
            return "".join(parts)
        case ExcerptMark(what=what, text=text):
            return f"*{what.replace('_', ' ')}{': ' + clean(text) if text else ''}*\n\n"
        case _:
            assert_never(block)


def _at(time: str | None) -> str:
    return f" · {time[:16].replace('T', ' ')}" if time else ""


def fenced(text: str) -> str:
    """Return a text as a block of code that nothing in it can end."""
    longest = max(_lengths(_FENCE.findall(text)), default=2)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"


def _lengths(found: Iterable[str]) -> Iterator[int]:
    return (len(each) for each in found)
