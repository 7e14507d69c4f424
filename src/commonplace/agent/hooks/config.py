"""Hooks as values: how they are configured, and what the exit code and output of a command mean. Pure.

The format is that of Codex and Claude Code, so that a script written for either works here: a JSON object on stdin with
`hook_event_name`, an answer on stdout as text or as a JSON object, exit code 2 to refuse, with stderr as the reason.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, Literal, cast

import msgspec

from commonplace.agent.events import EntryKind, HookEntry, HookStatus
from commonplace.errors import BadSetting

Moment = Literal[
    "session_start", "user_prompt_submit", "pre_tool_use", "post_tool_use", "pre_compact", "post_compact", "stop"
]
MOMENTS: Final[tuple[Moment, ...]] = (
    "session_start",
    "user_prompt_submit",
    "pre_tool_use",
    "post_tool_use",
    "pre_compact",
    "post_compact",
    "stop",
)
SECONDS: Final = 60.0
"""How long a hook may take that says nothing about it, as in Claude Code."""
MOST_SECONDS: Final = 600.0
"""The longest time that the settings can give a hook: a session waits for it."""
REFUSED: Final = 2
"""The exit code that refuses, in Codex and Claude Code alike."""
CONTEXT_CHARACTERS: Final = 40_000
"""How much text one hook can add to the conversation."""
_TAKES_TEXT: Final = ("session_start", "user_prompt_submit")
"""Moments at which plain text on stdout is context; at others only JSON counts."""


class HookCommand(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One configured command."""

    command: str | tuple[str, ...]
    matcher: str = ""
    """A pattern that the tool's name (or the source of the start) must match as a whole; empty matches all."""
    timeout: float = SECONDS

    def matches(self, subject: str) -> bool:
        """Return whether the hook applies to a tool's name, or to the source of a start."""
        return not self.matcher or self.matcher == "*" or re.fullmatch(self.matcher, subject) is not None


Hooks = Mapping[Moment, Sequence[HookCommand]]


class HookAnswer(msgspec.Struct, frozen=True):
    """The answer of one hook, or of all hooks of a moment together."""

    refused: str | None = None
    """Why the action is refused; None: it is not."""
    ask: bool = False
    """A person must be asked."""
    context: tuple[str, ...] = ()
    stop: str | None = None
    """Why the turn must end; None: it goes on."""
    warnings: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    """What went wrong with a hook; nothing else of its answer counts then."""

    def __add__(self, other: HookAnswer) -> HookAnswer:
        return HookAnswer(
            self.refused if self.refused is not None else other.refused,
            self.ask or other.ask,
            self.context + other.context,
            self.stop if self.stop is not None else other.stop,
            self.warnings + other.warnings,
            self.errors + other.errors,
        )

    @property
    def status(self) -> HookStatus:
        """What came of it, in one word."""
        if self.errors:
            return "failed"
        return "stopped" if self.stop is not None else "blocked" if self.refused is not None else "completed"

    def entries(self) -> tuple[HookEntry, ...]:
        """Return everything that it says."""
        texts: tuple[tuple[EntryKind, tuple[str, ...]], ...] = (
            ("error", self.errors),
            ("warning", self.warnings),
            ("stop", () if self.stop is None else (self.stop,)),
            ("feedback", () if self.refused is None else (self.refused,)),
            ("context", self.context),
        )
        return tuple(HookEntry(kind, text) for kind, several in texts for text in several)


def configured(table: object) -> dict[Moment, tuple[HookCommand, ...]]:
    """Return the hooks of the settings' table `hooks`.

    Raises:
        BadSetting: a moment does not exist, or a hook cannot be used.
    """
    try:
        lists = msgspec.convert(table or {}, dict[str, list[HookCommand]])
    except msgspec.ValidationError as error:
        hint = 'Write [[hooks.pre_tool_use]] with command = "…".'
        raise BadSetting(f"[hooks] cannot be used: {error}.", hint=hint) from None
    found: dict[Moment, tuple[HookCommand, ...]] = {}
    for name, hooks in lists.items():
        moment = cast("Moment", name)
        if moment not in MOMENTS:
            raise BadSetting(f"There is no hook {name!r}.", hint=f"Use one of {', '.join(MOMENTS)}.")
        for hook in hooks:
            _check(name, hook)
        found[moment] = tuple(hooks)
    return found


def _check(name: str, hook: HookCommand) -> None:
    if not hook.command:
        raise BadSetting(f"A hook of {name} has no command.", hint="Give one.")
    if not 0 < hook.timeout <= MOST_SECONDS:
        raise BadSetting(f"timeout of a hook of {name} is {hook.timeout:g}.", hint=f"Use up to {MOST_SECONDS:g}.")
    try:
        re.compile(hook.matcher)
    except re.error as error:
        raise BadSetting(f"matcher of a hook of {name} is no pattern: {error}.", hint="Correct it.") from None


def wire_name(moment: Moment) -> str:
    """Return the name of a moment in the JSON: `pre_tool_use` is `PreToolUse`."""
    return "".join(part.capitalize() for part in moment.split("_"))


class _Specific(msgspec.Struct):
    permissionDecision: str | None = None  # noqa: N815 (the name on the wire)
    permissionDecisionReason: str | None = None  # noqa: N815
    additionalContext: str | None = None  # noqa: N815


class _HookReply(msgspec.Struct):
    go_on: bool = msgspec.field(name="continue", default=True)
    stopReason: str | None = None  # noqa: N815
    decision: str | None = None
    reason: str | None = None
    systemMessage: str | None = None  # noqa: N815
    additionalContext: str | None = None  # noqa: N815
    hookSpecificOutput: _Specific | None = None  # noqa: N815


def answer_of(moment: Moment, code: int, out: str, err: str) -> HookAnswer:
    """Return the answer that a command's exit code and output mean."""
    if code == REFUSED:
        return HookAnswer(refused=err.strip() or "a hook refused it")
    if code != 0:
        return HookAnswer(errors=(f"A {moment} hook failed with exit code {code}: {err.strip()[:300]}",))
    text = out.strip()
    if not text.startswith("{"):
        return HookAnswer(context=_context(text)) if moment in _TAKES_TEXT else HookAnswer()
    try:
        reply = msgspec.json.decode(text, type=_HookReply)
    except (msgspec.DecodeError, RecursionError) as error:
        return HookAnswer(errors=(f"A {moment} hook gave an answer that cannot be read: {error}",))
    return _answer(reply)


def _answer(reply: _HookReply) -> HookAnswer:
    own = reply.hookSpecificOutput or _Specific()
    verdict = own.permissionDecision or reply.decision
    refused = verdict in ("deny", "block")
    reason = own.permissionDecisionReason or reply.reason or "a hook refused it"
    return HookAnswer(
        refused=reason if refused else None,
        ask=verdict == "ask",
        context=_context(own.additionalContext or reply.additionalContext or ""),
        stop=None if reply.go_on else reply.stopReason or reply.reason or "a hook ended the turn",
        warnings=(reply.systemMessage,) if reply.systemMessage else (),
    )


def _context(text: str) -> tuple[str, ...]:
    if not text.strip():
        return ()
    if len(text) <= CONTEXT_CHARACTERS:
        return (text,)
    half = CONTEXT_CHARACTERS // 2
    return (f"{text[:half]}\n…{len(text) - 2 * half} characters left out…\n{text[-half:]}",)
