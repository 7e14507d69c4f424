"""Questions that an agent asks with a tool, and what the person answered.

Claude Code asks with `AskUserQuestion`, Codex with `request_user_input`, OpenCode with `question`, Copilot with
`ask_user`; the arguments name each question, and mostly its options. A reply is kept as lines `QUESTION ANSWER`, so
questions and answers can be told apart again by the arguments.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

CLAUDE: Final = "AskUserQuestion"
CODEX: Final = "request_user_input"
TOOLS: Final = frozenset({CLAUDE, CODEX, "question", "ask_user"})
_NOTE: Final = "user_note: "
"""How Codex marks words that a person adds to an option."""
LONGEST: Final = 300
"""How many characters of a question with its option are kept."""


class Option(msgspec.Struct, gc=False):
    """An option of a question."""

    label: str = ""
    description: str = ""


class ToolQuestion(msgspec.Struct, gc=False):
    """A question with its options."""

    question: str = ""
    id: str = ""
    options: list[Option] | None = None

    def with_option(self, answer: str) -> str:
        """Return the question, with what the options say that an answer names."""
        names = {name.strip() for name in answer.split(",")} | {answer.strip()}
        chosen = [option for option in self.options or () if option.label.strip() in names]
        told = [f"{option.label.strip()}: {option.description.strip()}".rstrip(": ") for option in chosen]
        return shortened(" / ".join([self.question.strip(), *told]))


class ReplyAnswer(NamedTuple):
    """Where an answer stands in a reply, and what it answers."""

    start: int
    end: int
    question: str
    """The question, and the text of the chosen option."""


class _Asked(msgspec.Struct, gc=False):
    questions: list[ToolQuestion] = []
    question: str = ""
    """The only question of a tool that asks one."""


class _CodexAnswer(msgspec.Struct, gc=False):
    answers: list[str] = []


class _CodexAnswers(msgspec.Struct, gc=False):
    answers: dict[str, _CodexAnswer] = {}


def questions(arguments: str) -> list[ToolQuestion]:
    """Return what a call asks; nothing if its arguments cannot be read."""
    try:
        asked = msgspec.json.decode(arguments, type=_Asked)
    except (msgspec.DecodeError, RecursionError):
        return []
    alone = [ToolQuestion(asked.question)] if asked.question else []
    return [each for each in (*asked.questions, *alone) if each.question.strip()]


def codex_reply(arguments: str, output: str) -> str:
    """Return what a person answered in Codex, as lines `QUESTION ANSWER`."""
    try:
        given = msgspec.json.decode(output, type=_CodexAnswers).answers
    except (msgspec.DecodeError, RecursionError):
        return ""
    lines = (
        f"{each.question} {', '.join(answer.removeprefix(_NOTE) for answer in given[each.id].answers)}"
        for each in questions(arguments)
        if each.id in given and given[each.id].answers
    )
    return "\n".join(lines)


def answers(reply: str, asked: list[ToolQuestion]) -> tuple[ReplyAnswer, ...]:
    """Return the answers in a reply that has a line `QUESTION ANSWER` for each question, in any order."""
    found: list[tuple[int, ToolQuestion]] = []
    taken: set[int] = set()
    for each in sorted(asked, key=lambda question: -len(question.question)):  # one may begin with another
        start = f"\n{reply}".find(f"\n{each.question} ")
        while start in taken:
            start = f"\n{reply}".find(f"\n{each.question} ", start + 1)
        if start >= 0:
            found.append((start, each))
            taken.update(at for at in range(start, start + len(each.question) + 1))
    found.sort(key=lambda place: place[0])
    ends = [start - 1 for start, _ in found[1:]] + [len(reply)]
    return tuple(
        ReplyAnswer(begin, end, each.with_option(reply[begin:end]))
        for (start, each), end in zip(found, ends, strict=False)
        if (begin := start + len(each.question) + 1) < end
    )


def shortened(text: str) -> str:
    """Return a question in one line, not longer than one that is kept."""
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else line[: LONGEST - 1].rstrip() + "…"
