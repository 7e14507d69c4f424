"""Task runners: which task of the project a command runs, of which part of it, in which folder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from commonplace.learning.commands import tables
from commonplace.patterns import regex
from commonplace.protocol import shell

_TABLE: Final = tables.table("forms")
_RUNNERS: Final[dict[str, str]] = _TABLE["runners"]
_NONE: Final = "∅"
_NAME: Final = regex(r"[\w@+:./*-]++")
_BEFORE_ANOTHER: Final = tables.words("forms", "runner_tasks", "before_another")
_SHOWS_ONLY: Final = tables.words("forms", "runner_tasks", "shows_only")
_ALONE: Final = tables.words("forms", "runner_tasks", "alone")
_TASK_FLAGS: Final = tables.words("forms", "runner_tasks", "task_flags")
_LOOKS_ABOVE: Final = tables.words("forms", "runner_tasks", "looks_above")
_SHORT_NAMES: Final = {"t": "test"}
_TASKS_WITHOUT_RUN: Final = ("test", "start")
_WITH_PARTS: Final = frozenset({"nx", "moon", "gradle", "gradlew"})
"""Runners whose tasks are written `part:task`."""


class Task(msgspec.Struct):
    """A task of a project, as a command runs it."""

    runner: str
    name: str = ""
    component: str = ""
    """The part of the project that the command chooses."""
    folder: str = ""
    """The folder that a flag moves to."""
    is_narrowed: bool = False
    """Words follow the task, which choose some of what it does."""
    words: list[str] = msgspec.field(default_factory=list[str])
    """The form: flags that choose a part, `run` and the like, the task, variables of `make`."""
    verb: str = ""

    @property
    def form(self) -> str:
        """The words of the form behind the runner."""
        return " ".join(self.words)


def is_runner(program: str) -> bool:
    """Return whether a program runs tasks that a project names."""
    return program in _RUNNERS


def looks_above(program: str) -> bool:
    """Return whether a runner finds its file in the folders above, so that the folder does not matter."""
    return program in _LOOKS_ABOVE


def task_of(runner: str, arguments: Sequence[str]) -> Task | None:
    """Return the task that a runner is told to run; None if it is told something else."""
    reader = _TaskReader(runner)
    reader.read(list(arguments))
    task = reader.task
    if not task.name and runner in _ALONE and not task.verb:
        return Task(runner, runner, folder=task.folder, words=task.words, is_narrowed=task.is_narrowed)
    if not task.name or task.name in _SHOWS_ONLY or not _NAME.fullmatch(task.name):
        return None
    return task


class _TaskReader:
    """Reads the arguments of a runner from left to right."""

    def __init__(self, runner: str) -> None:
        self.task = Task(runner)
        self._leads = frozenset(_RUNNERS[runner].split())
        self._verbs = self._flags("verbs")
        self._components = self._flags("runner_components")
        self._switches = self._flags("runner_switches")
        self._folders = self._flags("runner_folders")
        self._values = self._flags("runner_values")

    def _flags(self, kind: str) -> frozenset[str]:
        return frozenset(_TABLE[kind].get(self.task.runner, "").split())

    def read(self, words: list[str]) -> None:
        at = 0
        while at < len(words):
            word, following = words[at], words[at + 1] if at + 1 < len(words) else ""
            if word == "--" and self.task.name:
                self.task.is_narrowed |= at + 1 < len(words)
                return
            if word.startswith("-"):
                at += self._flag(word, following)
            elif self._is_done(word, following):
                return
            else:
                at += 2 if word == "workspace" and self.task.runner == "yarn" else 1

    def _flag(self, word: str, following: str) -> int:
        """Read a flag; return how many words it takes."""
        task = self.task
        name, equals, given = word.partition("=")
        value = given if equals else following
        width = 1 if equals else 2
        if name in self._folders:
            task.folder = value
        elif name in self._components:
            task.component = value
            task.words = [*([name] if not equals else []), value if not equals else word, *task.words]
        elif name in _TASK_FLAGS and task.runner == "nx" and not task.name:
            task.name = value.partition(",")[0]
            task.words += [*([task.verb] if task.verb else []), name, task.name]
        elif name in self._switches:
            task.words.insert(0, word)
            width = 1
        elif name in self._values:
            pass
        else:
            task.is_narrowed |= bool(task.name)
            width = 1
        return width

    def _is_done(self, word: str, following: str) -> bool:
        """Read a word that is no flag; return whether the command runs no task."""
        task = self.task
        if shell.is_assignment(word):
            if task.runner in ("make", "gmake", "just"):
                task.words.append(word)
            return False
        if task.name and task.name not in _BEFORE_ANOTHER:
            self._more(word)
            return False
        if word == "workspace" and task.runner == "yarn":
            task.component = following
            task.words += [word, following]
            return False
        if not task.verb and not task.name and word in self._leads:
            task.verb = word
            if task.runner == "npm" and _SHORT_NAMES.get(word, word) in _TASKS_WITHOUT_RUN:
                self._name(_SHORT_NAMES.get(word, word))
            return False
        if not task.verb and (_NONE not in self._leads or word in self._verbs):
            return True
        self._name(word)
        return False

    def _name(self, word: str) -> None:
        task = self.task
        name = word.removeprefix("+")
        if task.runner in _WITH_PARTS and ":" in name:
            task.component, _, name = name.strip(":").rpartition(":")
        is_short = task.runner == "npm" and name in _TASKS_WITHOUT_RUN
        if task.verb and not is_short and task.verb not in _TASKS_WITHOUT_RUN and not task.name:
            task.words.append(task.verb)
        task.name = name
        task.words.append(name if is_short else word)

    def _more(self, word: str) -> None:
        """Read a word behind the task."""
        if self.task.runner == "nx" and not self.task.component and not self.task.verb:
            self.task.component = word
            self.task.words.append(word)
        else:
            self.task.is_narrowed = True
