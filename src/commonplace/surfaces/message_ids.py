"""The id of a message that cannot be read whole: a line that is too long, ends early or nests too deeply. Pure.

Whoever sent it waits for an answer with that id.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from commonplace.patterns import regex

_TOKEN: Final = regex(r'"[^"\\]*+(?:\\.[^"\\]*+)*"?|[{}\[\],:]|[^\s"{}\[\],:]++')
_LOOKED_THROUGH: Final = 2**20
"""How much of a line is looked through for its id."""
_INT64: Final = 2**63


def usable(value: Any) -> str | int | None:
    """Return an id that can be answered; None for what is none."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    return value if isinstance(value, str) or -_INT64 <= value < _INT64 else None


def of_broken(line: bytes | str) -> str | int | None:
    """Return the last id at the top of the first object of a line."""
    begin = line[:_LOOKED_THROUGH]
    text = begin if isinstance(begin, str) else begin.decode("utf-8", "replace")
    found, depth, last = None, 0, ("", "", "")
    for token in _TOKEN.finditer(text):
        last = (*last[1:], token[0])
        if token[0] in ("{", "["):
            depth += 1
        elif token[0] in ("}", "]"):
            depth -= 1
            if not depth:
                break  # what follows is another object, or nothing that can be read
        if last[0] == '"id"' and last[1] == ":" and depth == 1:
            found = token
    if found is None or text[found.end() :].lstrip()[:1] not in (",", "}"):
        return None
    try:
        return usable(msgspec.json.decode(found[0]))
    except (msgspec.DecodeError, UnicodeError):
        return None
