"""The canonical form of a simple command: what two runs of the same command have in common.

A form has no assignments, no wrappers, no filters of tests, no files and no flags that only change how much is printed.
Carriers stay in front of it. The key is the form without what does not make another command; the scope is what the
command works on. Paths of the project are relative; commands on temporary files, with a part that a shell puts in, or
with a hash have no form.
"""

from __future__ import annotations

import posixpath
import re
import shlex
import sys
from collections.abc import Sequence
from typing import Final

import msgspec

from commonplace.learning.commands import paths, roles, tables, task_runners, tools
from commonplace.learning.commands.calls import SimpleCommand, program_name
from commonplace.learning.commands.carriers import carried
from commonplace.learning.commands.roles import Role
from commonplace.patterns import regex

_INTERPRETERS: Final = tables.words("forms", "scripts", "programs")
_CARRIED_FILES: Final = tables.words("forms", "scripts", "carried")
_ENDINGS: Final = tuple(tables.words("forms", "scripts", "endings"))
_SCRIPT_VALUES: Final = tables.words("forms", "scripts", "value_flags")
_CODE_FLAGS: Final = tables.words("forms", "scripts", "code_flags")
_ONE_LINERS: Final[dict[str, list[tuple[re.Pattern[str], Role]]]] = {
    program: [(regex(expression), role) for expression, role in rows]
    for program, rows in tables.table("forms")["one_liners"].items()
}
_LONGEST_ONE_LINER: Final = 120
_MODULE: Final = regex(r"[a-z_]\w{0,60}(?:\.[a-z_]\w{0,60}){1,6}")
_BARE_WORD: Final = regex(r"[a-z][\w:-]{0,40}")
_HASH: Final = regex(
    r"(?<![\w-])(?=[a-f]*+\d)(?=\d*+[a-f])[0-9a-f]{7,40}(?![\w-])|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-"
)
_MAY_HAVE_HASH: Final = frozenset({"test", "integration", "e2e", "lint"})
_TASK_CARRIERS: Final = frozenset({"hatch run", "pdm run", "rye run", "pixi run"})
"""Carriers that also run tasks of the project."""
_COMPOSE_OPTIONS: Final = frozenset({"-f", "--file", "-p", "--project-name", "--profile", "--env-file"})
"""Options with a value that stand before the subcommand."""
_MAX_FORM: Final = 120
"""A longer form is no line that anybody would type."""


class Canonical(msgspec.Struct, frozen=True):
    """A simple command in its canonical form."""

    role: Role
    program: str
    """The program that decides what the command is for."""
    name: str
    """The name of the task or the script, else the tool."""
    key: str
    form: str
    folder: str | None
    """The absolute folder."""
    component: str = ""
    scope: str = ""
    is_task: bool = False
    is_script: bool = False
    is_binary: bool = False
    """It writes a program to a place that the person names."""
    is_narrowed: bool = False
    """Files, names of tests or other words choose a part of what the command can do."""


def canonical(command: SimpleCommand, roots: Sequence[str]) -> Canonical | None:
    """Return the canonical form of a command that ran in a project; None if it has no role or is thrown away."""
    if command.folder is None or paths.is_temporary(command.folder):
        return None
    inner = carried(command.words)
    if not inner.words:
        return None
    folder = _moved(command.folder, inner.folder)
    words, is_elsewhere = _local_words(inner.words, folder, roots)
    if not words or "$" in words[0]:
        return None
    called = _called(words)
    form = " ".join(filter(None, (inner.carrier, called.shown)))
    key = " ".join(filter(None, (inner.key, called.program)))
    found = _carried_task(inner.carrier, words, form, folder) or _module(inner.carrier, words, folder)
    found = found or _one_liner(called.program, words, folder)
    found = found or _task(called.program, called.arguments, form, key, folder)
    found = found or _script(words, called.program, inner.carrier, folder, roots)
    found = found or _tool(called.program, called.arguments, form, key, folder)
    if found is None or _is_thrown_away(found):
        return None
    return msgspec.structs.replace(found, is_narrowed=True) if is_elsewhere else found


class _Called(msgspec.Struct, frozen=True):
    """A program by its name, as it is written, and its arguments."""

    program: str
    shown: str
    arguments: Sequence[str]


def _called(words: Sequence[str]) -> _Called:
    """Return the program that decides: `docker compose`, `cargo make` and `python manage.py` are one each."""
    program, first = program_name(words[0]).partition("@")[0] or words[0], words[1] if len(words) > 1 else ""
    carried_file = program_name(first) if first else ""
    name = {"docker compose": "docker-compose", "cargo make": "cargo-make", "cargo xtask": "xtask"}.get(
        f"{program} {first}", carried_file if program in _INTERPRETERS and carried_file in _CARRIED_FILES else ""
    )
    if name:
        at = 2
        while name == "docker-compose" and at + 1 < len(words) and words[at] in _COMPOSE_OPTIONS:
            at += 2
        return _Called(name, " ".join((words[0], *words[1:at])), words[at:])
    return _Called(program, words[0], words[1:])


def _is_thrown_away(found: Canonical) -> bool:
    """Return whether a form is for one time only: temporary files, what a shell puts in, a hash, too long."""
    text = f"{found.form} {found.scope}"
    is_hashed = found.role not in _MAY_HAVE_HASH and _HASH.search(text) is not None
    return is_hashed or _is_put_in(text) or len(found.form) > _MAX_FORM


def is_for_once(text: str) -> bool:
    """Return whether a command line is for one time only: temporary files, what a shell puts in, a hash."""
    return _HASH.search(text) is not None or _is_put_in(text)


def _is_put_in(text: str) -> bool:
    return paths.is_temporary(text) or "$(" in text or "`" in text


def _moved(folder: str, given: str) -> str:
    return posixpath.normpath(posixpath.join(folder, given)) if given else folder


def _local_words(words: Sequence[str], folder: str, roots: Sequence[str]) -> tuple[list[str], bool]:
    """Return words with the project's paths made relative, and whether a path of somewhere else was left out."""
    found: list[str] = []
    is_elsewhere = False
    for number, word in enumerate(words):
        name, equals, value = word.partition("=")
        path = value if equals and word.startswith("-") else word
        if not paths.is_absolute(path) or paths.is_temporary(path):
            found.append(word)
            continue
        local = paths.local(path, folder, roots)
        if local is None and number:
            is_elsewhere = True
            found += [word] if equals or _is_value(words, number) else []
        elif local is not None:
            program = local if number or "/" in local else f"./{local}"
            found.append(f"{name}={local}" if path is value else program)
        else:
            found.append(word)
    return found, is_elsewhere


def _is_value(words: Sequence[str], number: int) -> bool:
    """Return whether a word may be the value of the flag before it, which then takes it away."""
    return words[number - 1].startswith("-")


def _task(runner: str, arguments: Sequence[str], form: str, key: str, folder: str) -> Canonical | None:
    if not task_runners.is_runner(runner):
        return None
    task = task_runners.task_of(runner, arguments)
    if task is None or paths.is_temporary(task.folder):
        return None
    shown = f"{form} {task.form}".strip()
    moved = _moved(folder, task.folder)
    role = roles.role_of_name(task.name)
    word = "run " if runner == "bun" else ""
    name = task.name
    return Canonical(
        role, runner, name, f"{key} {word}{name}", shown, moved, task.component, "",
        is_task=True, is_narrowed=task.is_narrowed,
    )  # fmt: skip


def _carried_task(carrier: str, words: Sequence[str], form: str, folder: str) -> Canonical | None:
    """Return the task of a project that a carrier runs by its name: `hatch run test`."""
    name = words[0]
    if carrier not in _TASK_CARRIERS or roles.is_development_tool(program_name(name)) or not _BARE_WORD.fullmatch(name):
        return None
    role = roles.role_of_name(name)
    if role == "task":
        return None
    program = carrier.split(maxsplit=1)[0]
    return Canonical(role, program, name, f"{carrier} {name}", form, folder, is_task=True, is_narrowed=len(words) > 1)


def _module(carrier: str, words: Sequence[str], folder: str) -> Canonical | None:
    """Return a module of the project that Python runs by its name: `python -m shop.validate`."""
    name = words[0]
    first = name.partition(".")[0]
    if not carrier.endswith(" -m") or not _MODULE.fullmatch(name) or first in sys.stdlib_module_names:
        return None
    role = roles.role_of_name(name.replace("_", "-"))
    return Canonical(
        "task" if role in ("setup", "run") else role,
        "script",
        name,
        f"script {name}",
        f"{carrier} {name}",
        folder,
        is_script=True,
        is_narrowed=len(words) > 1,
    )


def _one_liner(program: str, words: Sequence[str], folder: str) -> Canonical | None:
    """Return the code that some languages check a package with: `julia --project -e 'using Pkg; Pkg.test()'`."""
    rows = _ONE_LINERS.get(program)
    if rows is None or "-e" not in words[1:-1]:
        return None
    at = words.index("-e")
    code = words[at + 1]
    for expression, role in rows:
        if len(code) <= _LONGEST_ONE_LINER and expression.search(code):
            return Canonical(role, program, code, f"{program} {code}", shlex.join(words[: at + 2]), folder)
    return None


def _script(words: Sequence[str], program: str, carrier: str, folder: str, roots: Sequence[str]) -> Canonical | None:
    """Return the form of a script of the project, given to an interpreter or called by itself."""
    at = 0
    if program in _INTERPRETERS:
        at = 1
        while at < len(words) and words[at].startswith("-"):
            if words[at] in _CODE_FLAGS:
                return None
            at += 2 if words[at] in _SCRIPT_VALUES else 1
    if at >= len(words) or not words[at].endswith(_ENDINGS):
        return None
    path = words[at]
    inside = paths.relative(posixpath.normpath(posixpath.join(folder, path)), roots)
    if not inside or paths.is_absolute(path) or any(sign in path for sign in "$`*"):
        return None
    following = words[at + 1] if at + 1 < len(words) else ""
    word = following if _BARE_WORD.fullmatch(following) else ""
    role = roles.role_of_name(f"{posixpath.splitext(inside)[0]}/{word}".rstrip("/"))
    shown = [carrier, *words[: 1 if at else 0], path, word]
    return Canonical(
        "task" if role in ("setup", "run") else role,
        "script",
        inside,
        " ".join(filter(None, ("script", inside, word))),
        " ".join(filter(None, shown)),
        folder,
        is_script=True,
        is_narrowed=len(words) > at + 1 + bool(word),
    )


def _tool(tool: str, arguments: Sequence[str], form: str, key: str, folder: str) -> Canonical | None:
    run = tools.tool_run(tool, arguments)
    if run is None:
        return None
    return Canonical(
        run.role,
        tool,
        f"{tool} {run.subcommand}".strip(),
        f"{key} {run.key}".strip(),
        f"{form} {run.form}".strip(),
        _moved(folder, run.folder),
        scope=" ".join(run.scope),
        is_binary=run.is_binary,
        is_narrowed=run.is_narrowed,
    )
