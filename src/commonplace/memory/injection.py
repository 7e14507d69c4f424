"""Prompt injection: texts that try to steer their reader are never kept, whoever wrote them."""

from __future__ import annotations

import re
from typing import Final

_INJECTION: Final = re.compile(
    r"ignore (?:all |any )?(?:previous|prior|above|earlier)"
    r"|disregard (?:the |all )?(?:previous|above)"
    r"|system prompt"
    r"|you are now"
    r"|as an ai"
    r"|</?(?:system|instructions?|assistant|memory)\b",
    re.IGNORECASE,
)


_FETCHES: Final = re.compile(
    r"(?<![\w./-])(?:curl|wget|aria2c|lynx|iwr|irm|invoke-webrequest|invoke-restmethod|ncat"
    r"|netcat|nc|socat|tftp|base64|xxd)(?![\w/-])|\.download(?:string|file)\b",
    re.IGNORECASE,
)
"""Programs that bring a text from elsewhere, or out of a disguise."""
_FETCHERS: Final = (
    "curl", "wget", "aria2c", "lynx", "iwr", "irm", "invoke-", "nc", "netcat", "socat", "tftp", "base64", "xxd",
    ".download",
)  # fmt: skip
"""Each match of the expression has one of these: a quick look before it is tried."""
_RUNS: Final = re.compile(
    r"(?<![\w.-])(?:(?:ba|z|da|k|c|tc|fi|a)?sh|eval|source|exec|iex|invoke-expression|pwsh|powershell|osascript"
    r"|(?:python[\d.]{0,5}|node|deno|bun|perl|ruby|php|lua)(?! +-[cemn]))(?![\w.=-])|(?<![\w./])\./|(?<![^\s`;&|(])\. "
    r"|\bchmod ",
    re.IGNORECASE,
)
"""Programs that run a text."""
_REMOTE: Final = re.compile(
    r"\b(?:npx|bunx|uvx|dlx|pipx run|deno run|go run|pip3? install|npm (?:i|install|exec)|cargo install|gem install)\b"
    r"[^\n;&|]{0,200}(?:https?://|git\+|--git\b)",
    re.IGNORECASE,
)
"""Programs that fetch and run in one."""
_REMOTE_SIGNS: Final = ("://", "git+", "--git")
"""The same for the expression above."""
_SEPARATE: Final = re.compile(r"[|;\n]|&&")
_OPENS: Final = re.compile(r"<\(|\$\(|`|\(")
_REACH: Final = 400
"""How far apart the two may stand."""
_MOST: Final = 20_000


def fetches_and_runs(text: str) -> bool:
    """Say whether a text holds a command that runs what it fetches from elsewhere; such commands are never kept."""
    looked = text[:_MOST]
    lower = looked.lower()
    is_odd = not looked.isascii()  # the expressions take a few other letters for those of a name
    if (is_odd or any(sign in lower for sign in _REMOTE_SIGNS)) and _REMOTE.search(looked):
        return True
    if not is_odd and not any(name in lower for name in _FETCHERS):
        return False
    fetches = [found.span() for found in _FETCHES.finditer(looked)]
    runs = [found.span() for found in _RUNS.finditer(looked)] if fetches else []
    for start, end in fetches:
        for first, last in runs:
            if end <= first <= end + _REACH and _SEPARATE.search(looked, end, first):
                return True
            if last <= start <= last + _REACH and _OPENS.search(looked, last, start):
                return True
    return False


def is_injection(text: str) -> bool:
    """Say whether a text tries to steer its reader, or holds a command that runs what it fetches."""
    return bool(_INJECTION.search(text)) or fetches_and_runs(text)
