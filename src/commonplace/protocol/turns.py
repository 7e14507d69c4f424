"""The rule for where user turns begin, which rollback, fork cuts and turn counts share.

A boundary is mail between agents, a user message that is neither injected nor a compaction's summary, or an assistant
message whose only part is a piece of inter-agent mail in JSON. (The older source counted summaries; Codex 0.166 does
not, so that rolling back one turn after a compaction takes one turn.)
"""

from __future__ import annotations

import msgspec

from commonplace.protocol import fragments, items


class _Mail(msgspec.Struct):
    author: str
    recipient: str
    other_recipients: list[str]
    content: str
    trigger_turn: bool


_mail = msgspec.json.Decoder(_Mail)


def is_boundary(item: items.View) -> bool:
    """Say whether a user turn begins with this item."""
    match item:
        case items.AgentMessage():
            return True
        case items.Message(role="user"):
            return not fragments.is_contextual(item) and not fragments.is_summary_message(item)
        case items.Message(role="assistant", content=[only]):
            return only.text is not None and _is_mail(only.text)
        case _:
            return False


def _is_mail(text: str) -> bool:
    if not text.startswith("{"):
        return False
    try:
        _mail.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


class TurnCounter:
    """Counts user turns over lines in order: the numbers that people see (`--at 3`, `turns: 7`).

    Where turns are marked by events, all that a person says inside one turn (steering, say) belongs to it; where they
    are not, each message of theirs starts one. A turn that a person said nothing in is not counted.
    """

    def __init__(self) -> None:
        self.turns = 0
        self._counted = False
        self._marked = False

    @property
    def state(self) -> int:
        """What a count that goes on later must know besides the number: 0 idle, 1 in a turn, 2 in a counted one."""
        return self._marked + self._counted

    @state.setter
    def state(self, value: int) -> None:
        self._marked, self._counted = value > 0, value > 1

    def started(self) -> None:
        """Count an event that marks the start of a turn."""
        self._marked, self._counted = True, False

    def ended(self) -> None:
        """Count an event that marks the end of a turn."""
        self._marked = self._counted = False

    def boundary(self) -> bool:
        """Count a message of a person or another agent; return whether it begins a new user turn."""
        if self._counted:
            return False
        self.turns += 1
        self._counted = self._marked
        return True

    def rolled_back(self, count: int) -> None:
        """Take the last turns out of the count: they were undone."""
        self.turns = max(0, self.turns - max(0, count))
        self._counted = False
