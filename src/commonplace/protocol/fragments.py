"""The one registry of injected texts: what agents put into a conversation that nobody typed.

Each `Fragment` says how a text is recognised (markers, or a rule), in which role it appears, which agent injects
it, whether it still carries a person's own words, and whether memory may learn from it. Everything that asks "who
said this?" asks here: turn boundaries, rollback, listings, previews, extraction.

Recognition is on trimmed text and only *leading* markers count, so that a person who quotes a tag stays a person.
A user message is *contextual* as soon as any of its parts is; arbitrary unknown tags are never hidden.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable
from typing import Final, Literal

import msgspec

from commonplace.patterns import regex
from commonplace.protocol import items, memory_traces

Role = Literal["user", "developer"]


class Fragment(msgspec.Struct, frozen=True):
    """One kind of injected text."""

    name: str
    role: Role
    agent: str
    start: str = ""
    """Leading marker; compared without regard to case unless `exact`."""
    end: str = ""
    """Trailing marker; empty means that the leading one decides."""
    exact: bool = False
    kind: str = "injected"
    """What an importer notes about such a text: `injected`, or a word for whose doing it is."""
    rule: Callable[[str], bool] | None = None
    """For kinds that markers cannot describe; gets trimmed text."""

    def matches(self, text: str) -> bool:
        """Say whether the text is of this kind."""
        trimmed = text.strip()
        if self.rule is not None:
            return self.rule(trimmed)
        if not self.start:
            return False
        head, tail = trimmed[: len(self.start)], trimmed[len(trimmed) - len(self.end) :]
        if not self.exact:
            return head.lower() == self.start.lower() and tail.lower() == self.end.lower()
        return head == self.start and tail == self.end


def _tag(name: str, role: Role, *, agent: str = "codex") -> Fragment:
    slug = name.replace(" ", "_")
    return Fragment(slug, role, agent, f"<{name}>", f"</{name}>")


def _opening(name: str, start: str) -> Fragment:
    return Fragment(name, "developer", "codex", start)


_INTERNAL = regex(r'<codex_internal_context source="[a-z][a-z0-9_]*">')
_HOOK_PROMPT = regex(r"""<hook_prompt\b(?>(?:(?!\bhook_run_id=)[^>])*)\bhook_run_id=(["'])\s*[^\s"'][^"']*\1[^>]*>""")


def _is_internal_context(text: str) -> bool:
    return bool(_INTERNAL.match(text)) and text.endswith("</codex_internal_context>")


def _is_hook_prompt(text: str) -> bool:
    return bool(_HOOK_PROMPT.match(text)) and text.endswith("</hook_prompt>")


def _is_external_context(text: str) -> bool:
    """Say whether a text is `<external_KEY>…</external_KEY>` with the same key, in the same case, at both ends."""
    if not text.startswith("<external_"):
        return False
    key, closed, rest = text[1:].partition(">")
    return bool(closed) and rest.endswith(f"</{key}>")


def _is_old_warning(text: str) -> bool:
    return text.startswith(_OLD_WARNINGS)


_HOOK_FEEDBACK = regex(r"[\w-]+ (?:hook|operation) (?:feedback|blocked by hook|stopped by hook):\n")


def _is_hook_feedback(text: str) -> bool:
    return bool(_HOOK_FEEDBACK.match(text))


def _is_unknown_command(text: str) -> bool:
    """Say whether a text is Claude Code's one-line answer to a command that it does not know, or that prints
    nothing.
    """
    if text == "(no content)":
        return True
    return text.startswith(("Unknown skill: ", "Unknown slash command: ", "Unknown command: ")) and "\n" not in text


_OLD_WARNINGS: Final = (
    "Warning: The maximum number of unified exec processes",
    "Warning: apply_patch was requested via",
    "Warning: Your account was flagged for potentially high-risk",
)
"""Openings of warnings that earlier Codex versions stored as user messages."""

USER_FRAGMENTS: Final = (
    Fragment("agents_md", "user", "codex", "# AGENTS.md instructions", "</INSTRUCTIONS>"),
    _tag("environment_context", "user"),
    Fragment("additional_context", "user", "codex", rule=_is_external_context),
    _tag("skill", "user"),
    _tag("user_shell_command", "user"),
    _tag("turn_aborted", "user"),
    _tag("subagent_notification", "user"),
    Fragment("internal_context", "user", "codex", rule=_is_internal_context),
    _tag("goal_context", "user"),
    _tag("recommended_plugins", "user"),
    Fragment("old_warning", "user", "codex", rule=_is_old_warning),
    Fragment("hook_prompt", "user", "codex", rule=_is_hook_prompt),
    _tag("user_instructions", "user"),  # the 2025 form of AGENTS.md
)

DEVELOPER_FRAGMENTS: Final = (
    _opening("permissions", "<permissions instructions>"),
    _opening("approved_prefix", "Approved command prefix saved:"),
    _opening("model_switch", "<model_switch>"),
    _opening("managed_instructions", "<managed_developer_instructions>"),
    _opening("apps", "<apps_instructions>"),
    _opening("collaboration_mode", "<collaboration_mode>"),
    _opening("multi_agent_role", "<multi_agent_role>"),
    _opening("multi_agent_mode", "<multi_agent_mode>"),
    _opening("environments", "<environments_instructions>"),
    _opening("git_attribution", "<git_attribution>"),
    _opening("plugins", "<plugins_instructions>"),
    _opening("realtime", "<realtime_conversation>"),
    _opening("skills", "<skills_instructions>"),
    _opening("tools", "<tools>"),
    _opening("persistent_mode", "<persistent_mode>"),
    _opening("personality", "<personality_spec>"),
    _opening("token_budget", "<token_budget>"),
    _opening("context_window", "<context_window>"),
    _opening("context_window_guidance", "<context_window_guidance>"),
    _opening("rollout_budget", "<rollout_budget>"),
)


def _claude(start: str, *, kind: str = "injected") -> Fragment:
    name = "claude_" + re.sub(r"[^a-z0-9]+", "_", start.lower()).strip("_")[:40]
    return Fragment(name, "user", "claude-code", start, exact=True, kind=kind)


def _gemini(start: str) -> Fragment:
    return Fragment("gemini_" + start.strip("<>"), "user", "gemini", start, exact=True)


CLAUDE_FRAGMENTS: Final = (
    _claude("[Request interrupted by user", kind="interrupt"),
    _claude("<command-name>", kind="slash_command"),
    _claude("<command-message>", kind="slash_command"),
    _claude("<user-memory-input>", kind="user_memory"),
    _claude("<bash-input>", kind="user_shell"),
    _claude("<bash-stdout>"),
    _claude("<bash-stderr>"),
    _claude("<local-command-caveat>"),
    _claude("<local-command-stdout>"),
    _claude("<local-command-stderr>"),
    _claude("<command-contents>"),
    _claude("<system-reminder>"),
    _claude("<task-notification>"),
    _claude("<ide_selection>"),
    _claude("<ide_opened_file>"),
    _claude("<ide_diagnostics>"),
    _claude("<new-diagnostics>"),
    _claude("<teammate-message"),
    _claude("<user-prompt-submit-hook>", kind="hook"),
    _claude("<session-start-hook>", kind="hook"),
    _claude("<post-tool-use-hook>", kind="hook"),
    Fragment("claude_hook_feedback", "user", "claude-code", kind="hook", rule=_is_hook_feedback),
    Fragment("claude_unknown_command", "user", "claude-code", rule=_is_unknown_command),
    Fragment("claude_warmup", "user", "claude-code", rule="Warmup".__eq__),
    _claude("Caveat: The messages below "),
    _claude("This session is being continued from a previous conversation", kind="compact_summary"),
)
"""What Claude Code puts into user records; by the order of its decision table, leading markers only."""

GEMINI_FRAGMENTS: Final = (
    _gemini("<session_context>"),
    _gemini("<hook_context>"),
    _gemini("<state_snapshot>"),
)

_TABLES: Final[dict[tuple[str, str], tuple[Fragment, ...]]] = {
    ("codex", "user"): USER_FRAGMENTS,
    ("codex", "developer"): DEVELOPER_FRAGMENTS,
    ("claude-code", "user"): CLAUDE_FRAGMENTS,
    ("gemini", "user"): GEMINI_FRAGMENTS,
}

_FIRST_CHARS: Final = frozenset({"<", *(start[0].lower() for start in _OLD_WARNINGS)}) | {
    fragment.start[0].lower() for fragment in (*USER_FRAGMENTS, *DEVELOPER_FRAGMENTS) if fragment.start
}
"""How Codex's injected texts begin: every rule that is not a marker looks for a tag or an old warning."""

OWN_SUMMARY_PREFIX: Final = "What follows is a summary of this session's earlier part; the full record is kept."
"""Opens the summary message of our own compactions."""
_CODEX_PREFIX_BYTES: Final = 399
"""The length of the text that Codex puts before a summary, without its newline."""
_CODEX_PREFIX_SHA256: Final = "e9b088e794a6bb9082ac053fcc760bd818d7e720ee4bcdc72c6e480de7b7cb0e"

_IMPORTED: Final = ("imported.", "memory.")
"""Kinds that importers note for what an agent put there and for what came out of a memory."""

_PLAN_FEEDBACK: Final = "\n\nUser feedback on this plan: "
"""Claude Code puts what a person adds in accepting a plan behind this, at the end of the plan that it sends."""

STDIN_PROMPT: Final = "user.stdin"
"""The kind of a prompt that came on standard input: it is what was asked, and may be a program's text."""
_PIPED: Final = "\n\n<stdin>\n"
"""What Codex puts between a prompt and what is piped into `codex exec` beside it."""
_PIPED_END: Final = "\n</stdin>"
REQUEST_HEADER: Final = "## My request for Codex:"
"""Editors put context above this line; the person's words stand below the last one, for the context may quote it."""
EDITOR_PREAMBLE: Final = "# Context from my IDE setup:"
"""How a message begins to which an editor added context; in any other message the header is part of what was said."""


def recognise(text: str, role: str, agent: str = "codex") -> Fragment | None:
    """Return the kind of injected text this is in an agent's sessions, or None for free text."""
    # This spares nearly every text that a person typed the whole list.
    if agent == "codex" and text.lstrip()[:1].lower() not in _FIRST_CHARS:
        return None
    trimmed = text.strip()
    return next((fragment for fragment in _TABLES.get((agent, role), ()) if fragment.matches(trimmed)), None)


def is_summary(text: str) -> bool:
    """Say whether a user message is a compaction's summary (ours, or Codex's by the hash of its opening)."""
    if text.startswith(OWN_SUMMARY_PREFIX + "\n"):
        return True
    head = text[: _CODEX_PREFIX_BYTES + 1]
    if len(head) <= _CODEX_PREFIX_BYTES or head[-1] != "\n" or not head.isascii():
        return False
    return hashlib.sha256(head[:-1].encode()).hexdigest() == _CODEX_PREFIX_SHA256


def is_summary_message(message: items.Message) -> bool:
    """Say whether a user message is a compaction's summary, by its writer's note or by its opening."""
    if message.role != "user" or not message.content:
        return False
    return "compaction.summary" in _kinds(message) or is_summary(message.content[0].text or "")


def _kinds(message: items.Message) -> list[str]:
    noted = message.internal_chat_message_metadata_passthrough
    return (noted.content_item_kinds if noted else None) or []


def is_contextual(message: items.Message) -> bool:
    """Say whether any part of a user or developer message is an injected text.

    An importer noted the kind of each part; there, a message is the person's as soon as one part is.
    """
    kinds = _kinds(message)
    if any(kind.startswith(_IMPORTED) for kind in kinds):
        return not any(kind.startswith("user.") for kind in kinds)
    return any(part.text is not None and recognise(part.text, message.role) for part in message.content)


def is_recalled(message: items.Message) -> bool:
    """Say whether a message holds a text that came out of a memory: as its writer noted, or by how it begins."""
    kinds = _kinds(message)
    if any(kind.startswith("memory.") for kind in kinds):
        return True
    return not own_words(message) and any(
        memory_traces.is_memory_text(part.text) for part in message.content if part.text
    )


def own_words(message: items.Message) -> str:
    """Return what the person said in a user message: nothing for injected texts and summaries.

    Where the writer noted the kind of each part (`user.text`, `environments.…`) that is believed before the text.
    """
    if message.role != "user":
        return ""
    kinds = _kinds(message)
    if kinds and len(kinds) == len(message.content) and "unknown" not in kinds:
        said = [part.text for part, kind in zip(message.content, kinds, strict=True) if kind.startswith("user.")]
    elif is_contextual(message) or is_summary_message(message):
        return ""
    else:
        said = [part.text for part in message.content]
    return join_words(said)


def is_from_stdin(message: items.Message) -> bool:
    """Say whether a message is a prompt that came on standard input, so that nobody knows who wrote it."""
    return STDIN_PROMPT in _kinds(message)


def further_words(message: items.Message) -> list[str]:
    """Return what the person said in parts of a message that are no prompt: answers to tools, arguments of commands."""
    found: list[str] = []
    for kind, part in zip(_kinds(message), message.content, strict=False):
        text = part.text or ""
        if kind == "imported.reply":
            found.append(text.strip())
        elif kind == "imported.slash_command":
            found.append(inside(text, "command-args"))
    return [text for text in found if text]


def join_words(texts: Iterable[str | None]) -> str:
    """Return the person's words out of the texts of a message: joined, without what an editor put above them, and
    without what was piped into `codex exec`.
    """
    text = "\n".join(part for part in texts if part and not _is_media_label(part)).strip()
    if text.endswith(_PIPED_END):  # what is piped may hold such tags itself: it begins with the first one
        text = text.partition(_PIPED)[0].strip()
    if not text.startswith((EDITOR_PREAMBLE, REQUEST_HEADER)):
        return text
    _, header, request = f"\n{text}".rpartition(f"\n{REQUEST_HEADER}")
    return request.strip() if header else ""


def plan_end(text: str) -> int:
    """Return where a plan ends that Claude Code sends, and what the person added to it begins."""
    at = text.rfind(_PLAN_FEEDBACK)
    return at + len(_PLAN_FEEDBACK) if at >= 0 else len(text)


def inside(text: str, tag: str) -> str:
    """Return what stands between a tag and its end, without the space around it; nothing if it is not there."""
    _, opened, rest = text.partition(f"<{tag}>")
    found, closed, _ = rest.partition(f"</{tag}>")
    return found.strip() if opened and closed else ""


_MEDIA_LABEL = regex(r'<(image|audio) name=\[[^\]]*\](?: path="[^"]*")?>|</(image|audio)>')


def _is_media_label(text: str) -> bool:
    """Say whether a text only labels an attached file and was not typed."""
    return bool(_MEDIA_LABEL.fullmatch(text.strip()))
