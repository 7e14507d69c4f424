"""What hooks are: how they are configured, what they are told, what their answers mean. Pure.

The words are those of Codex and Claude Code, so that a script written for either works here: a JSON object on stdin
with `hook_event_name`, an answer on stdout as text or as a JSON object, exit code 2 to refuse, with stderr as the
reason.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, Literal, cast

import msgspec

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
MOST_SECONDS: Final = 600.0
REFUSED: Final = 2
"""The exit code that refuses."""
CONTEXT_CHARACTERS: Final = 40_000
"""The most that one hook can add to the conversation."""
_SPEAKS_PLAINLY: Final = ("session_start", "user_prompt_submit")
"""Moments at which text that is no JSON is context."""


class Hook(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One configured command."""

    command: str | tuple[str, ...]
    matcher: str = ""
    """A pattern that the tool's name (or the source of the start) must match as a whole; empty matches all."""
    timeout: float = SECONDS

    def matches(self, subject: str) -> bool:
        """Say whether it wants to hear of something."""
        return not self.matcher or self.matcher == "*" or re.fullmatch(self.matcher, subject) is not None


Hooks = Mapping[Moment, Sequence[Hook]]


class Answer(msgspec.Struct, frozen=True):
    """What one hook, or all hooks of a moment, said."""

    refused: str | None = None
    """Why not; None: go on."""
    ask: bool = False
    """A person is to be asked."""
    context: tuple[str, ...] = ()
    stop: str | None = None
    """The turn is to end, and why."""
    warnings: tuple[str, ...] = ()

    def __add__(self, other: Answer) -> Answer:
        return Answer(
            self.refused if self.refused is not None else other.refused,
            self.ask or other.ask,
            self.context + other.context,
            self.stop if self.stop is not None else other.stop,
            self.warnings + other.warnings,
        )


def configured(table: object) -> dict[Moment, tuple[Hook, ...]]:
    """Return the hooks of the settings' table `hooks`.

    Raises:
        BadSetting: a moment does not exist, or a hook cannot be used.
    """
    try:
        lists = msgspec.convert(table or {}, dict[str, list[Hook]])
    except msgspec.ValidationError as error:
        hint = 'Write [[hooks.pre_tool_use]] with command = "…".'
        raise BadSetting(f"[hooks] cannot be used: {error}.", hint=hint) from None
    found: dict[Moment, tuple[Hook, ...]] = {}
    for name, hooks in lists.items():
        moment = cast("Moment", name)
        if moment not in MOMENTS:
            raise BadSetting(f"There is no hook {name!r}.", hint=f"Use one of {', '.join(MOMENTS)}.")
        for hook in hooks:
            _check(name, hook)
        found[moment] = tuple(hooks)
    return found


def _check(name: str, hook: Hook) -> None:
    if not hook.command:
        raise BadSetting(f"A hook of {name} has no command.", hint="Give one.")
    if not 0 < hook.timeout <= MOST_SECONDS:
        raise BadSetting(f"timeout of a hook of {name} is {hook.timeout:g}.", hint=f"Use up to {MOST_SECONDS:g}.")
    try:
        re.compile(hook.matcher)
    except re.error as error:
        raise BadSetting(f"matcher of a hook of {name} is no pattern: {error}.", hint="Correct it.") from None


def wire_name(moment: Moment) -> str:
    """Return a moment as scripts know it: `pre_tool_use` is `PreToolUse`."""
    return "".join(part.capitalize() for part in moment.split("_"))


class _Specific(msgspec.Struct):
    permissionDecision: str | None = None  # noqa: N815 (the name on the wire)
    permissionDecisionReason: str | None = None  # noqa: N815
    additionalContext: str | None = None  # noqa: N815


class _Said(msgspec.Struct):
    go_on: bool = msgspec.field(name="continue", default=True)
    stopReason: str | None = None  # noqa: N815
    decision: str | None = None
    reason: str | None = None
    systemMessage: str | None = None  # noqa: N815
    additionalContext: str | None = None  # noqa: N815
    hookSpecificOutput: _Specific | None = None  # noqa: N815


def meaning(moment: Moment, code: int, out: str, err: str) -> Answer:
    """Return what a command's end means."""
    if code == REFUSED:
        return Answer(refused=err.strip() or "a hook refused it")
    if code != 0:
        return Answer(warnings=(f"A {moment} hook failed with exit code {code}: {err.strip()[:300]}",))
    text = out.strip()
    if not text.startswith("{"):
        return Answer(context=_context(text)) if moment in _SPEAKS_PLAINLY else Answer()
    try:
        said = msgspec.json.decode(text, type=_Said)
    except (msgspec.DecodeError, RecursionError) as error:
        return Answer(warnings=(f"A {moment} hook gave an answer that cannot be read: {error}",))
    return _meant(said)


def _meant(said: _Said) -> Answer:
    own = said.hookSpecificOutput or _Specific()
    verdict = own.permissionDecision or said.decision
    refused = verdict in ("deny", "block")
    reason = own.permissionDecisionReason or said.reason or "a hook refused it"
    return Answer(
        refused=reason if refused else None,
        ask=verdict == "ask",
        context=_context(own.additionalContext or said.additionalContext or ""),
        stop=None if said.go_on else said.stopReason or said.reason or "a hook ended the turn",
        warnings=(said.systemMessage,) if said.systemMessage else (),
    )


def _context(text: str) -> tuple[str, ...]:
    if not text.strip():
        return ()
    if len(text) <= CONTEXT_CHARACTERS:
        return (text,)
    half = CONTEXT_CHARACTERS // 2
    return (f"{text[:half]}\n…{len(text) - 2 * half} characters left out…\n{text[-half:]}",)
