"""Head-and-tail truncation of tool outputs, on character boundaries, with a marker that tells how much went.

The result keeps the first and last half of the budget; the marker comes on top of it. One rule serves recording,
replay and the rebuilding of old compactions. A budget is in tokens or in
bytes; the two differ in what the marker counts and in whether parts of a list cost whole tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from commonplace.context.tokens import BYTES_PER_TOKEN, approximate_tokens, audio_tokens
from commonplace.protocol.items import Content


class TruncationPolicy(msgspec.Struct, frozen=True):
    """How much of a tool's output a history keeps."""

    mode: Literal["bytes", "tokens"]
    limit: int

    @property
    def budget(self) -> int:
        """The limit in bytes."""
        return self.limit * BYTES_PER_TOKEN if self.mode == "tokens" else self.limit

    def with_headroom(self) -> TruncationPolicy:
        """Return what recording allows: a fifth more, for what the JSON around a text takes."""
        return TruncationPolicy(self.mode, -(-self.limit * 12 // 10))

    def with_token_limit(self, tokens: int) -> TruncationPolicy:
        """Return the policy with the limit that a person set, which is always in tokens."""
        return TruncationPolicy(self.mode, tokens if self.mode == "tokens" else tokens * BYTES_PER_TOKEN)

    def cost(self, text: str) -> int:
        """Return what a text takes of the limit."""
        return approximate_tokens(text) if self.mode == "tokens" else len(text.encode())

    def audio_cost(self, url: str) -> int:
        """Return what a recording takes of the limit."""
        return audio_tokens(url) * (1 if self.mode == "tokens" else BYTES_PER_TOKEN)


OUTPUT_TOKENS: Final = 10_000
"""Budget of one tool output, in approximate tokens."""
OUTPUT_POLICY: Final = TruncationPolicy("tokens", OUTPUT_TOKENS)


class TruncatedParts(msgspec.Struct, frozen=True):
    """What is left of a list of parts: parts that are not named stay as they are."""

    texts: dict[int, str]
    """New texts by index."""
    dropped: frozenset[int]
    notes: tuple[str, ...]
    """What to append, to tell what was left out."""


def _policy(limit: TruncationPolicy | int) -> TruncationPolicy:
    return TruncationPolicy("tokens", limit) if isinstance(limit, int) else limit


def split_middle(text: str, limit: TruncationPolicy | int) -> tuple[str, str, str] | None:
    """Return head, marker and tail of a text over its budget (a number means tokens), or None if it fits."""
    policy = _policy(limit)
    data = text.encode()
    budget = policy.budget
    if len(data) <= budget:
        return None
    left = budget // 2
    head = data[:left].decode(errors="ignore")
    first = len(data) - (budget - left)
    while first < len(data) and data[first] & 0xC0 == 0x80:  # a continuation byte: its character began before the cut
        first += 1
    tail = data[first:].decode()
    if policy.mode == "bytes":
        return head, f"…{len(text) - len(head) - len(tail)} chars truncated…", tail
    return head, f"…{-(-(len(data) - budget) // BYTES_PER_TOKEN)} tokens truncated…", tail


def truncate(text: str, limit: TruncationPolicy | int) -> str:
    """Return the text, its middle cut out if it is over budget."""
    pieces = split_middle(text, limit)
    return text if pieces is None else "".join(pieces)


def exec_output(code: int, seconds: float, output: str, limit: TruncationPolicy | int) -> str:
    """Return what a model is told of a command that ran."""
    body = truncate(output, limit)
    lines = [f"Exit code: {code}", f"Wall time: {seconds:.1f} seconds"]
    if count_lines(output) != count_lines(body):
        lines.append(f"Total output lines: {count_lines(output)}")
    return "\n".join([*lines, "Output:", body])


def count_lines(text: str) -> int:
    """Return how many lines a text has; a last one need not end."""
    return text.count("\n") + (text != "" and not text.endswith("\n"))


def truncate_parts(parts: Sequence[Content], limit: TruncationPolicy | int) -> TruncatedParts | None:
    """Fit a list of content parts into one shared budget; None means that everything fits as it is.

    Texts are kept until one crosses the budget; that one is cut to the rest, those behind it are left out. Pictures and
    encrypted parts are always kept and cost nothing. A recording costs its estimate and is left out if it does not fit.
    """
    policy = _policy(limit)
    left = policy.limit
    texts: dict[int, str] = {}
    silent: list[int] = []
    mute: list[int] = []
    for index, part in enumerate(parts):
        if part.type == "input_audio" and part.audio_url is not None:
            cost = policy.audio_cost(part.audio_url)
            if cost <= left:
                left -= cost
            else:
                mute.append(index)
        elif part.text is not None and part.type != "encrypted_content":
            cost = policy.cost(part.text)
            if cost <= left:
                left -= cost
            elif left > 0:
                texts[index] = truncate(part.text, TruncationPolicy(policy.mode, left))
                left = 0
            else:
                silent.append(index)
    notes = [f"[omitted {len(gone)} {kind} items ...]" for kind, gone in (("text", silent), ("audio", mute)) if gone]
    return TruncatedParts(texts, frozenset(silent + mute), tuple(notes)) if texts or notes else None
