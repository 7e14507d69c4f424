"""Search handles and a name for a session: the words that tell it from others."""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

from commonplace.learning.reading import commands, tables
from commonplace.learning.reading.findings import RuleFinding, SessionTask
from commonplace.patterns import regex

_HANDLE: Final = regex(
    r"`([^`]{2,60})`|\b([\w-]{1,80}/[\w./-]{1,200}|[\w-]{1,80}\.(?:py|ts|tsx|js|go|rs|java|kt|c|h|cpp|rb|php|sql|toml|ya?ml|json|sh|md|tf))\b"
)
_WORD: Final = regex(r"[A-Za-z][A-Za-z0-9_-]{2,}|[\u3400-\u9fff]{2,6}")
_DULL: Final = tables.words("dull_in_keywords")
MAX_KEYWORDS: Final = 12
MAX_SLUG: Final = 28


def keywords(tasks: list[SessionTask], findings: list[RuleFinding]) -> list[str]:
    """Return handles to search by: programs, files, names, then the commonest words; none without a finding."""
    counts: Counter[str] = Counter()
    for finding in findings:
        for code, path in _HANDLE.findall(finding.text):
            counts[(commands.parse(code).program if code else path).strip()] += 3
        for word in _WORD.findall(finding.text):
            counts[word.lower()] += 1
    for task in tasks if findings else ():
        for word in _WORD.findall(task.name):
            counts[word.lower()] += 1
    ranked = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    found: list[str] = []
    for word, _ in ranked:
        clean = word.replace(",", " ").strip()
        if clean and clean.lower() not in _DULL and clean not in found and len(clean) > 1:
            found.append(clean)
    return found[:MAX_KEYWORDS]


def slug(tasks: list[SessionTask], title: str = "") -> str | None:
    """Return a name for files: the first task's words, in lower case; the title's if the task is only announced."""
    name = tasks[0].name if tasks else ""
    name = title if title and name.rstrip().endswith(":") else name
    words = [word.lower() for word in re.findall(r"[A-Za-z0-9]+", name) if word.lower() not in _DULL]
    found = "-".join(words)[:MAX_SLUG].strip("-")
    return found or None
