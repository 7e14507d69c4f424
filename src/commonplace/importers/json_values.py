"""Single values of another program's JSON: a value of the wrong type is no value, never an error.

Files of other programs may hold anything anywhere, so that fields are taken undecoded and looked at one by one. Long
texts stay undecoded to the end, because a text with a single emoji takes four times its bytes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final, TypeVar

import msgspec

from commonplace.importers import json_lines
from commonplace.importers.converter import TORN
from commonplace.importers.items import Text
from commonplace.patterns import regex
from commonplace.protocol import ids
from commonplace.protocol.rollout import Skipped

T = TypeVar("T")

_MAX_OBJECTS: Final = 2**20
"""Most braces in one value: each object takes one, however small it is, and all of a list are built at once."""
MANY: Final = 2**14
"""Most parts or calls of one message."""
_SMALL: Final = 2**20
"""Values up to this size are decoded without counting their objects first."""
_LONG_TEXT: Final = 2**16
"""Longer strings are passed on as raw JSON and not decoded."""
_LONGEST_CHARACTER: Final = 12
"""Bytes of the longest character in JSON: two halves, six bytes each."""
_SPAN: Final = regex(r"[+-]?\d+(?:\.\d*)?")
_MILLIS_FROM: Final = 1e11
"""A number of seconds this large is in the year 5138; as milliseconds it is in 1973."""


class TooDense(ValueError):
    """A list has more elements than may be looked at together."""


class _Object(msgspec.Struct, gc=False):
    """Any object at all, in the least space."""


_objects = msgspec.json.Decoder(list[_Object])
_raws = msgspec.json.Decoder(list[msgspec.Raw])


def is_dense(raw: bytes) -> bool:
    """Say whether JSON holds more objects than may be built at once."""
    return len(raw) > _SMALL and raw.count(b"{") > _MAX_OBJECTS


def elements_of(raw: bytes | msgspec.Raw, most: int = _MAX_OBJECTS) -> list[msgspec.Raw]:
    """Return the elements of a list, each undecoded; nothing for any other value, or for a long list of scalars.

    Raises:
        TooDense: the list is longer than `most`.
    """
    if first_byte(raw) != b"[":
        return []
    try:
        if len(memoryview(raw)) > _SMALL:
            _objects.decode(raw)  # millions of numbers would each become a value; as objects they are refused
        found = _raws.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return []
    if len(found) > most:
        raise TooDense
    return found


def first_byte(raw: bytes | msgspec.Raw) -> bytes:
    """Return the byte that tells which kind of value this is."""
    return bytes(memoryview(raw)[:1])


def as_text(raw: bytes | msgspec.Raw) -> Text:
    """Return any value as text: a string's own, and the JSON of anything else, without its white space."""
    text = text_of(raw)
    if text is not None:
        return text
    compact = msgspec.json.format(bytes(raw), indent=-1)
    if len(compact) <= _LONG_TEXT:
        return compact.decode()
    return msgspec.Raw(b'"' + compact.replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b'"')


def text_of(raw: bytes | msgspec.Raw) -> Text | None:
    """Return a JSON string, decoded unless it is long; None for any other value."""
    if first_byte(raw) != b'"':
        return None
    if len(memoryview(raw)) > _LONG_TEXT:
        return raw if isinstance(raw, msgspec.Raw) else msgspec.Raw(raw)
    return msgspec.json.decode(raw, type=str)


def opening(text: Text, characters: int = 400) -> str:
    """Return how a text begins, whatever its length."""
    if isinstance(text, str):
        return text[:characters]
    start = bytes(memoryview(text)[1 : characters + 1])
    for cut in range(_LONGEST_CHARACTER + 1):  # the end may fall inside a character
        try:
            return msgspec.json.decode(b'"' + json_lines.repair(start[: len(start) - cut]) + b'"', type=str)
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
    return ""


def is_blank(text: Text | None) -> bool:
    """Say whether a text has nothing in it to read; one that is long has."""
    return not text.strip() if isinstance(text, str) else text is None


def joined(texts: list[Text], between: str = "") -> Text:
    """Return texts as one."""
    short = [text for text in texts if isinstance(text, str)]
    if len(short) == len(texts):
        return between.join(short)
    inner = (bytes(msgspec.json.encode(text) if isinstance(text, str) else text)[1:-1] for text in texts)
    return msgspec.Raw(b'"' + msgspec.json.encode(between)[1:-1].join(inner) + b'"')


def word_of(raw: bytes | msgspec.Raw) -> str:
    """Return a short scalar as text (`"a"` and `1` are both names in some program); empty for anything else."""
    if not raw or len(memoryview(raw)) > _LONG_TEXT:
        return ""
    try:
        value = msgspec.json.decode(raw, type=str | int | float | None)
    except (msgspec.DecodeError, RecursionError):
        return ""
    return "" if value is None else str(value)


def time_of(raw: bytes | msgspec.Raw) -> str:
    """Return a time as the ledger writes it, from ISO text (without a zone: UTC) or a Unix time in s or ms."""
    text = word_of(raw).strip()
    if _SPAN.fullmatch(text):
        return time_at(float(text))
    moment = ids.parse_time(text) if text else None
    return _wire(moment) if moment is not None else ""


def time_at(seconds: float) -> str:
    """Return a Unix time in seconds (or, if it is too large for that, in milliseconds) as the ledger writes it."""
    if not math.isfinite(seconds):
        return ""
    seconds = seconds / 1000 if abs(seconds) >= _MILLIS_FROM else seconds
    try:
        return _wire(datetime.fromtimestamp(seconds, UTC))
    except (OverflowError, OSError, ValueError):
        return ""


def _wire(moment: datetime) -> str:
    try:
        return ids.wire_time(moment) if moment.year >= 1900 else ""
    except OverflowError:  # the last day of the year 9999, in a zone behind UTC
        return ""


def decoded(decode: Callable[[bytes], T], offset: int, raw: bytes) -> T | Skipped:
    """Return a line as a value, or what is wrong with it."""
    try:
        return json_lines.decode_repaired(decode, raw)
    except msgspec.ValidationError:
        return Skipped(offset, len(raw), json_lines.NOT_A_RECORD)
    except (msgspec.DecodeError, RecursionError):
        return Skipped(offset, len(raw), json_lines.NOT_JSON)


def decoded_document(decode: Callable[[bytes], T], raw: bytes) -> T | Skipped:
    """Return a whole document as a value, or what is wrong with it: one that is torn may be whole later."""
    if is_dense(raw):
        return Skipped(0, len(raw), json_lines.TOO_DENSE)
    try:
        return decode(raw)
    except msgspec.ValidationError:
        return Skipped(0, len(raw), json_lines.NOT_A_RECORD)
    except (msgspec.DecodeError, RecursionError) as error:
        return Skipped(0, len(raw), TORN if not raw.strip() or "truncated" in str(error) else json_lines.NOT_JSON)
