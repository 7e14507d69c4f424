"""Who wrote each stretch of a user record.

What is recorded as said by a user is often not typed by one: plans that an agent wrote and a key press sent, texts of
the harness, pasted logs and reviews. A record is cut into stretches, each with its author. What the fields of the
record and the prompt history of the agent say (`RecordMarks`) decides first; then marks that programs leave in the
text; then the shape of lines. Only words of the person's own (`Author.is_own`) can be a wish, a rule or a fact.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Final, NamedTuple

import msgspec

from commonplace.learning.lasting.shapes import line_rules, lines_of
from commonplace.learning.reading.question_tools import ReplyAnswer, shortened
from commonplace.patterns import regex
from commonplace.protocol import fragments


class Author(Enum):
    """Whose words a stretch is."""

    TYPED = "typed"
    REFUSAL = "refusal"
    """Typed in refusing a tool call; what was refused stands beside it (`PersonMessage.refused`)."""
    ANSWER = "answer"
    """Typed or chosen in answering a question; the question stands beside it (`Stretch.question`)."""
    PASTED = "pasted"
    PLAN = "plan"
    HARNESS = "harness"
    INTERRUPTION = "interruption"
    """The note that the person stopped the agent: an act, not words."""

    @property
    def is_own(self) -> bool:
        """Say whether the words are the person's own."""
        return self in _OWN


_OWN: Final = frozenset({Author.TYPED, Author.REFUSAL, Author.ANSWER})


class Stretch(NamedTuple):
    """A part of a text with one author, and the rule that told so."""

    start: int
    end: int
    author: Author
    rule: str = ""
    question: str = ""
    """For an answer: the question, and the text of the chosen option."""


class RecordMarks(msgspec.Struct, frozen=True):
    """What is known about the author of a record without a look at its text."""

    is_refusal: bool = False
    """The text refuses a tool call and quotes the person."""
    author: Author | None = None
    """Who wrote the whole text."""
    pasted: tuple[tuple[int, int], ...] = ()
    """Stretches that the person pasted, in order."""
    answers: tuple[ReplyAnswer, ...] = ()
    """Answers to questions that a tool asked, in order; all between them is the agent's."""


_HARNESS: Final = regex(
    r"""(?x)\s*+(?:
        <(?:task-notification|teammate-message|system-reminder|command-\w+|local-command[\w-]*|bash-\w+
           |user-prompt-submit-hook|environment_context|user_instructions|permissions|subagent\w*
           |skill\w*|INSTRUCTIONS)\b
      | Operation\ stopped\ by\ hook | UserPromptSubmit\ operation\ blocked
      | This\ session\ is\ being\ continued | Caveat:\ The\ messages | Base\ directory\ for\ this\ skill
      | \#\ AGENTS\.md\ instructions | Stop\ hook\ feedback | PreToolUse: | PostToolUse: | \[Image:\ source
    )"""
)
_INTERRUPTION: Final = regex(r"\s*+(?:\[Request interrupted|<turn_aborted\b)")
_PLAN: Final = regex(r"(?i)\s*+(?:please )?implement (?:the following|this) plan\b\s*:")
_REFUSED_BECAUSE: Final = "the user said:"
_CLARIFY: Final = regex(r"\s*+The user wants to clarify these questions\.")
_ANSWER: Final = regex(r"(?m)^[ \t]*+Answer: *+(?=(\S.*)$)")
_TAG: Final = regex(
    r"<(ide_\w++|system-reminder|task-notification|local-command[\w-]*+|command-\w++|bash-\w++|image|pasted[\w-]*+|file"
    r"|document|selection|attachment)(?=[\s/>])[^<>]{0,200}+>"
)
_RULE: Final = regex(r"(?m)^[ \t]*(?:-{3,}|={3,}|_{3,})[ \t]*$")
_FENCE: Final = regex(r"(?m)^[ \t]*(```|~~~)")


def stretches(
    text: str, *, is_refusal: bool = False, is_plan: bool = False, marks: RecordMarks | None = None
) -> list[Stretch]:
    """Cut a user record into stretches by who wrote them.

    `is_refusal` says that the text refuses a tool call and quotes the person; `is_plan`, that the record is marked as
    a plan; `marks` holds these and all else that is known about the record. The stretches cover the text without gaps.
    """
    known = marks or RecordMarks(is_refusal, Author.PLAN if is_plan else None)
    begin = 0
    found: list[Stretch] = []
    if known.is_refusal and (at := text.find(_REFUSED_BECAUSE)) >= 0:
        begin = at + len(_REFUSED_BECAUSE)
        begin += len(text) - begin - len(text[begin:].lstrip())
        found.append(Stretch(0, begin, Author.HARNESS, "refusal"))
        if _CLARIFY.match(text, begin):
            return found + _clarified(text, begin)
    if known.answers:
        return found + _answered(known.answers, begin, len(text))
    own = Author.REFUSAL if begin else Author.TYPED
    return found + [
        part._replace(author=own) if part.author is Author.TYPED else part for part in _cut(text, begin, known)
    ]


def _cut(text: str, begin: int, known: RecordMarks) -> list[Stretch]:
    """Cut what stands behind a place; what the person wrote is `TYPED`."""
    if known.author is Author.PLAN:
        return _plan(text, begin, "field")
    if known.author is not None:
        return [Stretch(begin, len(text), known.author, "field")]
    noted = [Stretch(max(start, begin), min(end, len(text)), Author.PASTED, "noted") for start, end in known.pasted]
    noted = [hole for hole in noted if hole.start < hole.end]
    if not noted or text[begin : noted[0].start].strip():
        if _PLAN.match(text, begin):
            return _plan(text, begin, "plan")
        if _INTERRUPTION.match(text, begin):
            return [Stretch(begin, len(text), Author.INTERRUPTION, "interruption")]
        if _HARNESS.match(text, begin):
            return [Stretch(begin, len(text), Author.HARNESS, "harness")]
    found: list[Stretch] = []
    at = begin
    for hole in noted:
        if hole.start > at:
            found += _by_shape(text, at, hole.start)
            at = hole.start
        if hole.end > at:
            found.append(hole._replace(start=at))
            at = hole.end
    return found + (_by_shape(text, at, len(text)) if at < len(text) else [])


def _plan(text: str, begin: int, rule: str) -> list[Stretch]:
    """Return a plan, and what the person added in accepting it."""
    end = max(begin, fragments.plan_end(text))
    added = [Stretch(end, len(text), Author.TYPED, "feedback")] if end < len(text) else []
    return [Stretch(begin, end, Author.PLAN, rule), *added]


def _by_shape(text: str, begin: int, end: int) -> list[Stretch]:
    """Cut a part of a text by tags, fences and the shape of lines."""
    found: list[Stretch] = []
    at = begin
    for hole in _holes(text[:end], begin):
        if hole.end <= at:
            continue
        start = max(hole.start, at)
        if start > at:
            found += _by_lines(text, at, start)
        found.append(hole._replace(start=start))
        at = hole.end
    return found + (_by_lines(text, at, end) if at < end else [])


def _clarified(text: str, begin: int) -> list[Stretch]:
    """Return the answers that a refused question quotes, each with its question; all between them is the harness."""
    found: list[Stretch] = []
    at = begin
    for answer in _ANSWER.finditer(text, begin):
        line = text.rfind("\n", begin, max(begin, answer.start() - 1)) + 1
        asked = text[max(line, at) : answer.start()].strip().removeprefix("Question:").strip('-" \t')
        found.append(Stretch(at, answer.start(1), Author.HARNESS, "question"))
        found.append(Stretch(answer.start(1), answer.end(1), Author.ANSWER, "answer", shortened(asked)))
        at = answer.end(1)
    return [*found, Stretch(at, len(text), Author.HARNESS, "question")]


def _answered(answers: tuple[ReplyAnswer, ...], begin: int, end: int) -> list[Stretch]:
    """Return the answers of a reply, each with its question; the questions are the agent's, so no words of a person."""
    found: list[Stretch] = []
    at = begin
    for answer in answers:
        if at < answer.start:
            found.append(Stretch(at, answer.start, Author.HARNESS, "question"))
        found.append(Stretch(answer.start, answer.end, Author.ANSWER, "answer", answer.question))
        at = answer.end
    return [*found, Stretch(at, end, Author.HARNESS, "question")] if at < end else found


def _holes(text: str, begin: int) -> list[Stretch]:
    """Return what tags and fences enclose, in order."""
    found: list[Stretch] = []
    if "</" in text:
        found += _tagged(text, begin)
    if "```" in text or "~~~" in text:
        found += _fenced(text, begin)
    if "---" in text or "===" in text:
        found += _ruled(text, begin)
    return sorted(found)


def _tagged(text: str, begin: int) -> Iterator[Stretch]:
    closing: dict[str, int] = {}
    for tag in _TAG.finditer(text, begin):
        close = f"</{tag[1]}>"
        end = closing.get(close, 0)
        if 0 <= end <= tag.end():
            end = closing[close] = text.find(close, tag.end())
        if end >= 0:
            yield Stretch(tag.start(), end + len(close), Author.HARNESS, "tag")


def _ruled(text: str, begin: int) -> Iterator[Stretch]:
    """Yield what stands between two lines of dashes."""
    rules = list(_RULE.finditer(text, begin))
    for first, last in zip(rules[::2], rules[1::2], strict=False):
        yield Stretch(first.start(), last.end(), Author.PASTED, "ruled")


def _fenced(text: str, begin: int) -> Iterator[Stretch]:
    """Yield fenced blocks; one that is not closed reaches to the end."""
    at = begin
    while fence := _FENCE.search(text, at):
        close = text.find(f"\n{fence[1]}", fence.end())
        line_end = text.find("\n", close + 1) if close >= 0 else -1
        at = line_end + 1 if line_end >= 0 else len(text)
        yield Stretch(fence.start(), at, Author.PASTED, "fence")
    at = begin
    while (start := text.find("```", at)) >= 0:
        close = text.find("```", start + 3)
        at = close + 3 if close >= 0 else len(text)
        yield Stretch(start, at, Author.PASTED, "fence")


def _by_lines(text: str, begin: int, end: int) -> list[Stretch]:
    """Tell the lines that look like output, quotations, documents and reviews from the person's own."""
    lines = list(lines_of(text, begin, end))
    found: list[Stretch] = []
    for line, rule in zip(lines, line_rules(lines), strict=True):
        author = Author.PASTED if rule else Author.TYPED
        stop = min(end, line.end + 1)
        if line.start == stop:
            continue
        if found and (found[-1].author, found[-1].rule) == (author, rule):
            found[-1] = found[-1]._replace(end=stop)
        else:
            found.append(Stretch(line.start, stop, author, rule))
    return found
