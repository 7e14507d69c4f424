"""Identifiers and times, as functions of what they are made from; only `new_id` adds randomness.

Threads, turns and windows are UUIDv7: they sort by time and tell when they were made. Times on the wire are UTC with
exactly three digits of a second.
"""

from __future__ import annotations

import secrets
import uuid
from datetime import UTC, datetime
from typing import Final

from commonplace.patterns import regex

_UUID: Final = regex(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def uuid7(millis: int, entropy: bytes) -> str:
    """Return the UUIDv7 for a Unix time in milliseconds and ten bytes of randomness."""
    value = (millis & (2**48 - 1)) << 80 | int.from_bytes(entropy[:10], "big")
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    return str(uuid.UUID(int=value))


def new_id(now: datetime) -> str:
    """Return an id that nothing else has, made at a time: of a thread, a turn, a window or an item."""
    return uuid7(int(now.timestamp() * 1000), secrets.token_bytes(10))


def uuid7_time(text: str) -> datetime | None:
    """Return when a UUIDv7 was made, or None for any other text."""
    if not is_uuid(text) or text[14] != "7":
        return None
    try:
        return datetime.fromtimestamp(int(text[:8] + text[9:13], 16) / 1000, UTC)
    except ValueError:  # the bits reach beyond the year 9999
        return None


def is_uuid(text: str) -> bool:
    """Say whether the text is a UUID in lower-case hyphenated form."""
    return bool(_UUID.fullmatch(text))


def wire_time(moment: datetime) -> str:
    """Return a time as `YYYY-MM-DDTHH:MM:SS.mmmZ`."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


def wire_second(seconds: int) -> str:
    """Write a time in whole seconds the way wire_time does, without fractions."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_time(text: str) -> datetime | None:
    """Return the moment that a wire time (or any ISO-8601 time) names, or None."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
