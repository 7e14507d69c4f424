"""Questions that a person answers in the input line: approvals, and which session is meant.

An answer is a letter and Enter, so that nothing is allowed by a key that was meant for a sentence; Esc says no to
everything at once. What is asked about is printed whole: a command that is cut could hide what it does.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from commonplace.agent import events
from commonplace.agent.approvals.requests import Decision
from commonplace.agent.tools.shell_script import typed
from commonplace.surfaces.cli.output import safe

_WHAT: Final = {"run": "May this run?", "change": "May these files be changed?", "call": "May this tool be called?"}
_SAID: Final[dict[Decision, str]] = {
    "approved": "yes, once",
    "approved_for_session": "yes, in this session",
    "approved_always": "yes, always",
    "denied": "no",
    "abort": "no, and the turn is stopped",
}


class ChatQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """Something that waits for an answer."""

    text: str
    """Printed when it is asked."""
    hint: str
    """What can be answered, drawn while it waits."""
    take: Callable[[str], str | None]
    """Acts on an answer and returns what is said about it; None: it is not understood."""
    give_up: Callable[[], str]
    """Acts on Esc."""
    thread_id: str = ""
    """The thread whose turn waits for the answer; empty where none does."""


def consent(
    request: events.Asked, folder: Path, decide: Callable[[Decision], None], agent: str | None = None
) -> ChatQuestion:
    """Return the question whether something may be done, in a conversation that is about a folder.

    `agent` names the sub-agent that asks; None: the agent of the conversation does.
    """
    answers = _answers(request)
    prefixes = ", ".join(f"`{_flat(shlex.join(words))} …`" for words in request.prefixes)
    meanings = {
        "approved": "yes",
        "approved_for_session": "for this session",
        "approved_always": f"always: {prefixes}",
        "denied": "no",
        "abort": "stop (Esc)",
    }
    hint = " · ".join(f"{letter} {meanings[decision]}" for letter, decision in answers.items())

    def take(text: str) -> str | None:
        decision = answers.get(text.strip().lower()[:1]) if text.strip().lower() in _words(answers) else None
        if decision is None:
            return None
        decide(decision)
        return _SAID[decision]

    def give_up() -> str:
        decide("abort")
        return _SAID["abort"]

    text = _question_text(request, folder, agent)
    return ChatQuestion(text=text, hint=hint, take=take, give_up=give_up, thread_id=request.thread_id)


def _answers(request: events.Asked) -> dict[str, Decision]:
    """Return what can be answered: a change is allowed once, and nothing is always allowed that has no first words."""
    found: dict[str, Decision] = {"y": "approved"}
    if request.kind != "change":
        found["s"] = "approved_for_session"
    if request.prefixes:
        found["a"] = "approved_always"
    return {**found, "n": "denied", "q": "abort"}


def _words(answers: dict[str, Decision]) -> set[str]:
    return {*answers, "yes", "no"}


def _question_text(request: events.Asked, folder: Path, agent: str | None) -> str:
    lines = [f"? {_WHAT[request.kind]}" + (f" ({_flat(agent)} asks)" if agent is not None else "")]
    if request.command:
        sign = "$ " if request.kind == "run" else ""
        lines += [f"    {sign if not place else '  '}{line}" for place, line in enumerate(_shown(request).split("\n"))]
    lines += [f"    {_exact(path)}" for path in request.paths]
    reason = f"because: {_flat(request.reason)}" if request.reason else ""
    if request.kind == "run":  # first what is certain: the reason is the model's own text
        elsewhere = "" if request.cwd == str(folder) else " (not the folder of the conversation)"
        programs = ", ".join(map(_exact, request.programs))
        place = f"in {_exact(request.cwd)}{elsewhere}" + (f" with {programs}" if programs else "")
        reason = f"{place} · {reason}" if reason else place
    lines += [f"    {reason}"] if reason else []
    lines += [f"    asked since: {_flat(request.problem)}"] if request.problem else []
    return safe("\n".join(lines))


def _flat(text: str) -> str:
    """Return a text on one line: with lines of its own it could look like another part of the question."""
    return " ".join(text.split())


def _exact(path: str) -> str:
    """Return a path on one line; one with other blanks than another path does not look like that."""
    return path.replace("\n", "\N{REPLACEMENT CHARACTER}").replace("\t", "\N{REPLACEMENT CHARACTER}")


def _shown(request: events.Asked) -> str:
    return typed(request.command) if request.kind == "run" else " ".join(request.command)


def choice(title: str, rows: list[str], take: Callable[[int], None]) -> ChatQuestion:
    """Return the question which of some rows is meant."""

    def chosen(text: str) -> str | None:
        if not text.strip():
            return "none"
        if not text.strip().isdecimal() or not 1 <= int(text) <= len(rows):
            return None
        take(int(text) - 1)
        return text.strip()

    listed = [f"  {number:>2}  {row}" for number, row in enumerate(rows, 1)]
    hint = f"a number from 1 to {len(rows)}; Enter or Esc for none"
    return ChatQuestion(text="\n".join([f"? {title}", *listed]), hint=hint, take=chosen, give_up=lambda: "none")
