"""Snapshots of a server's rate limits, read from the headers of its answer.

Three families of headers say the same: Codex's service (`x-codex-primary-used-percent`), the OpenAI API
(`x-ratelimit-remaining-tokens`, reset as `6m0s`) and Anthropic (`anthropic-ratelimit-tokens-remaining`, reset as a
time). A header that cannot be read is passed over: a snapshot is advice, never a reason to fail.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from commonplace.models.base import Limit, RateLimits
from commonplace.patterns import regex

_REMAINING: Final = regex(r"x-ratelimit-remaining-(?P<openai>.+)|anthropic-ratelimit-(?P<anthropic>.+)-remaining")
_CODEX: Final = regex(r"x-codex-(?P<name>primary|secondary)-used-percent")
_SPAN: Final = regex(r"(\d{1,12}(?:\.\d{1,12})?)(ms|s|m|h|d)")
_SECONDS: Final = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}


def snapshot(headers: Mapping[str, str], now: float) -> RateLimits | None:
    """Return what the headers of an answer (names in lower case) say of limits, or None if they say nothing."""
    limits: list[Limit] = []
    for name in sorted(headers):
        if found := _CODEX.fullmatch(name):
            limit = _share(found["name"], headers)
        elif found := _REMAINING.fullmatch(name):
            limit = _count(found["openai"], found["anthropic"], headers, now)
        else:
            continue
        if limit is not None:
            limits.append(limit)
    return RateLimits(tuple(limits)) if limits else None


def _share(name: str, headers: Mapping[str, str]) -> Limit | None:
    used = _float(headers.get(f"x-codex-{name}-used-percent"))
    if used is None:
        return None
    minutes = _float(headers.get(f"x-codex-{name}-window-minutes"))
    resets = _float(headers.get(f"x-codex-{name}-reset-at"))
    return Limit(name, used, window_minutes=None if minutes is None else int(minutes), resets_at=resets)


def _count(openai: str | None, anthropic: str | None, headers: Mapping[str, str], now: float) -> Limit | None:
    names = (
        [f"x-ratelimit-{part}-{openai}" for part in ("limit", "remaining", "reset")]
        if openai
        else [f"anthropic-ratelimit-{anthropic}-{part}" for part in ("limit", "remaining", "reset")]
    )
    whole, left = _float(headers.get(names[0])), _float(headers.get(names[1]))
    if whole is None or left is None or whole <= 0:
        return None
    used = round(min(max(100 * (whole - left) / whole, 0.0), 100.0), 2)
    return Limit(openai or anthropic or "", used, int(whole), int(left), resets_at=_reset(headers.get(names[2]), now))


def _reset(text: str | None, now: float) -> float | None:
    if not text:
        return None
    spans = _SPAN.findall(text)
    if spans and "".join(number + unit for number, unit in spans) == text:
        return now + sum(float(number) * _SECONDS[unit] for number, unit in spans)
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None


def _float(text: str | None) -> float | None:
    try:
        value = float(text) if text else None
    except ValueError:
        return None
    return value if value is not None and abs(value) < 1e15 else None
