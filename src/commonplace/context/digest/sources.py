"""The lines of a session that may be shown in a digest: findings, failures, edits, definitions, the plan."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final, cast

import msgspec

from commonplace.patterns import regex

LONG_ANSWER: Final = 300
"""An answer of this many characters counts as a long one."""
_SHORTEST_SENTENCE: Final = 25
"""Shorter sentences, in characters, say too little to be kept."""
_LONGEST_SENTENCE: Final = 400
"""How many characters of a sentence are kept."""
_LONGEST_ERROR: Final = 180
"""How many characters of an error line are kept."""
_ERRORS_EACH: Final = 12
"""How many error lines one output gives."""
_EDITS_EACH: Final = 14
"""How many added lines one edit gives."""
_SENTENCE: Final = regex(r"(?<=[.!?])\s+(?=[A-Z0-9`\"'(*-])|\n+")
_STARTS: Final = ("let me", "i'll ", "i will ", "now i", "now let", "next, i", "first, i")
_ERROR: Final = regex(
    r"error|fail|panic|fatal|exception|undefined|cannot|can't|denied|invalid|not found|no such|unexpected|refused"
    r"|timed? ?out|missing|unresolved|^[E>]\s+assert|traceback|abort|segfault|conflict",
    re.IGNORECASE,
)
_PASSES: Final = regex(
    r"^\W{0,4}(?:ok|pass|passed|passing)\b|^--- pass\b|\bpassed\W*$|\.\.\. ?ok\W*$|^[✓✔√]"
    r"|\b(?:0|no) (?:failed|failures?|failing|errors?|problems?)\b",
    re.IGNORECASE,
)
"""A line that tells of a check which passed, whatever the check is called."""
_FAILS: Final = regex(r"\b[1-9]\d* (?:failed|failures?|failing|errors?|problems?)\b", re.IGNORECASE)
_DEFINITION: Final = regex(
    r"^[ \t]*(?:\d+[ \t:|→]+)?("
    r"(?:(?:export|pub(?:\([a-z]+\))?|public|private|protected|static|async|abstract|final|default)[ \t]+){0,4}"
    r"(?:func|function|def|class|type|interface|struct|enum|trait|impl|const|let|var|module|package|fn|record|object)"
    r"[ \t]+\w.*)$",
    re.MULTILINE,
)
_FOUND: Final = regex(r"^([\w./-]{1,200}\.\w{1,8})[:-]\d{1,6}[:-](.{1,200})", re.MULTILINE)
"""A line of `grep -n` and its like: file, number, text."""
_FOUND_EACH: Final = 200
"""How many such lines one output gives."""
_SHELLS: Final = frozenset({"exec_command", "shell", "bash", "local_shell", "shell_command", "run_shell_command"})
_READS: Final = frozenset({"read", "read_file", "view", "open", "cat", "view_file"})
_PLANS: Final = frozenset({"update_plan", "todowrite", "todo_write", "write_todos"})
_STEP_TOOLS: Final = frozenset({"taskcreate", "taskupdate"})
"""Tools that set one step of a plan: steps are numbered from 1 in the order in which they were created."""
_PATCHED: Final = regex(r"^\*\*\* (?:Update|Add|Delete) File: (.+)$")
_SHOWN: Final = regex(r"(?:sed -n|cat|head|tail|nl)\b[^|;&]{0,400}?\s([\w./~-]+\.\w+)")


class PlannedStep(msgspec.Struct, frozen=True):
    """One step of a plan, as a call creates or changes it."""

    text: str
    number: int
    """Which step is changed; 0 for a new one."""
    is_open: bool


class Edit(msgspec.Struct, frozen=True):
    """A file that a call changes, and the lines it puts in."""

    path: str
    lines: tuple[str, ...] = ()


class _FileArguments(msgspec.Struct):
    """The arguments that edits and reads have in one agent or another."""

    file_path: str = ""
    path: str = ""
    filename: str = ""
    patch: str = ""
    input: str = ""
    new_string: str = ""
    new_str: str = ""
    content: str = ""
    file_text: str = ""
    edits: list[dict[str, Any]] = []


class _StepArguments(msgspec.Struct, rename="camel"):
    """The arguments of the tools that set one step."""

    subject: str = ""
    description: str = ""
    task_id: str = ""
    status: str = ""


_LONGEST_NUMBER: Final = 6
_call = msgspec.json.Decoder(_FileArguments, strict=False)
_step = msgspec.json.Decoder(_StepArguments, strict=False)


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of an answer that say something; announcements are left out."""
    for part in _SENTENCE.split(text):
        line = part.strip().lstrip("-*•# ").strip()
        if len(line) < _SHORTEST_SENTENCE or line.endswith(":") or line.lower().startswith(_STARTS):
            continue
        yield " ".join(line[:_LONGEST_SENTENCE].split())


def error_lines(text: str) -> list[str]:
    """Return the lines of an output that tell of a failure."""
    found: list[str] = []
    for line in text.split("\n"):
        flat = line.strip()
        if 12 <= len(flat) <= 300 and _ERROR.search(flat) and (not _PASSES.search(flat) or _FAILS.search(flat)):
            found.append(flat[:_LONGEST_ERROR])
            if len(found) == _ERRORS_EACH:
                break
    return list(dict.fromkeys(found))


def found_lines(text: str) -> Iterator[tuple[str, str]]:
    """Yield the lines of an output that a search found, each with the file that it stands in."""
    for found in islice(_FOUND.finditer(text), _FOUND_EACH):
        yield found[1], found[2]


def definitions(text: str) -> Iterator[str]:
    """Yield the lines of a file that define something."""
    for found in _DEFINITION.finditer(text):
        line = found[1].strip()
        if 15 <= len(line) <= 160:
            yield line


def edits(name: str, arguments: str) -> list[Edit]:
    """Return the files that a call changes, with the lines it puts in."""
    if "*** Begin Patch" in arguments:
        return list(_patched(_patch_of(arguments)))
    found = _decoded(arguments)
    if found is None or _bare(name) in _READS:
        return []
    path = found.file_path or found.path or found.filename
    texts = [found.new_string or found.new_str or found.content or found.file_text]
    texts += [str(each.get("new_string", "")) for each in found.edits]
    lines = [line for text in texts for line in _worth(text.split("\n"))]
    return [Edit(path, tuple(lines[:_EDITS_EACH]))] if path and any(texts) else []


def reads(name: str, arguments: str) -> str:
    """Return the file that a call reads; nothing if it reads none, or several."""
    if _bare(name) in _SHELLS:
        shown = _SHOWN.findall(arguments)
        return shown[0] if len(shown) == 1 else ""
    if _bare(name) not in _READS:
        return ""
    found = _decoded(arguments)
    return (found.file_path or found.path or found.filename) if found is not None else ""


def plan(name: str, arguments: str) -> list[tuple[bool, str]] | None:
    """Return the steps of a plan, each with whether it is still open; None if the call sets none."""
    if _bare(name) not in _PLANS:
        return None
    try:
        given: Any = msgspec.json.decode(arguments)
    except (msgspec.DecodeError, RecursionError):
        return None
    if not isinstance(given, dict):
        return None
    table = cast("dict[str, Any]", given)
    steps = table.get("plan") or table.get("todos") or table.get("items")
    if not isinstance(steps, list):
        return None
    found: list[tuple[bool, str]] = []
    for step in cast("list[Any]", steps):
        row = cast("dict[str, Any]", step) if isinstance(step, dict) else {}
        text = row.get("step") or row.get("content") or row.get("description") or row.get("title") or ""
        if isinstance(text, str) and text.strip():
            found.append((row.get("status") not in ("completed", "done"), " ".join(text.split())[:300]))
    return found


def planned_step(name: str, arguments: str) -> PlannedStep | None:
    """Return the step of a plan that a call creates or changes; None if it does neither."""
    if _bare(name) not in _STEP_TOOLS:
        return None
    try:
        given = _step.decode(arguments)
    except (msgspec.DecodeError, RecursionError):
        return None
    number = int(given.task_id) if given.task_id.isdecimal() and len(given.task_id) < _LONGEST_NUMBER else 0
    if _bare(name) == "taskupdate" and not number:
        return None
    text = " ".join((given.subject or given.description).split())[:300]
    return PlannedStep(text, number, given.status not in ("completed", "done", "deleted"))


def argument_strings(arguments: str) -> str:
    """Return the strings of a call's arguments as plain text, so that escapes do not hide names."""
    if not arguments.lstrip().startswith(("{", "[")):
        return arguments
    try:
        given: Any = msgspec.json.decode(arguments)
    except (msgspec.DecodeError, RecursionError):
        return arguments
    found: list[str] = []
    left: list[Any] = [given]
    while left:
        value = left.pop()
        if isinstance(value, str):
            found.append(value)
        elif isinstance(value, dict):
            left.extend(reversed(list(cast("dict[str, Any]", value).values())))
        elif isinstance(value, list):
            left.extend(reversed(cast("list[Any]", value)))
    return "\n".join(found)


def _bare(name: str) -> str:
    return name.lower().rpartition("__")[2]


def _decoded(arguments: str) -> _FileArguments | None:
    try:
        return _call.decode(arguments)
    except (msgspec.DecodeError, RecursionError):
        return None


def _patch_of(arguments: str) -> str:
    if not arguments.lstrip().startswith("{"):
        return arguments
    return argument_strings(arguments)


def _patched(patch: str) -> Iterator[Edit]:
    path, lines = "", list[str]()
    for line in [*patch.split("\n"), "*** End"]:
        if line.startswith("*** "):
            if path:
                yield Edit(path, tuple(_worth(lines))[:_EDITS_EACH])
            named = _PATCHED.match(line)
            path, lines = named[1].strip() if named else "", []
        elif path and line.startswith("+"):
            lines.append(line[1:])


def _worth(lines: list[str]) -> list[str]:
    """Return the lines that are long enough to say something and short enough to show."""
    return [line.strip() for line in lines if 15 <= len(line.strip()) <= 160]
