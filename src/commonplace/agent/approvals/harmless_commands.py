"""Commands that are known to change nothing, and commands that a person allowed for good.

A command line is taken apart into its simple commands. Each must be known by itself: its program is found outside every
folder that a model can write, and all its arguments are in the table of `option_rules`. A script with variables,
substitutions, redirections or control flow is not known. A remembered approval is the path of a program, its
sub-command, and the session's folder; it holds for a script only if it holds for every command of the script.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import takewhile
from pathlib import Path, PurePath
from typing import Final

import msgspec

from commonplace.agent.approvals import git_repositories, option_rules
from commonplace.agent.approvals.workplace import Workplace
from commonplace.agent.tools import shell_script
from commonplace.patterns import regex

Prefix = tuple[str, ...]
"""The path of a program; for git also the sub-command."""
_SHELLS: Final = frozenset({"bash", "sh", "dash"})
_BUILTINS: Final = frozenset({"cd", "echo", "false", "pwd", "test", "true"})
"""Commands that a shell runs itself, whatever programs there are."""
_RENAMERS: Final = frozenset(
    [
        ".",
        "alias",
        "bind",
        "builtin",
        "command",
        "compgen",
        "complete",
        "coproc",
        "declare",
        "enable",
        "eval",
        "exec",
        "export",
        "function",
        "getopts",
        "hash",
        "let",
        "local",
        "mapfile",
        "popd",
        "printf",
        "pushd",
        "read",
        "readarray",
        "readonly",
        "set",
        "shopt",
        "source",
        "trap",
        "typeset",
        "unalias",
        "unset",
    ]
)
"""Commands of a shell that can change what the names after them mean, or run a text."""
_RUNNERS: Final = frozenset({"fd", "find", "rg", "sed", "sort"})
"""Programs that read, and can start others: they are asked about each time that they are to run unconfined."""
_MESSAGE: Final = regex(r"-[a-z]*m|--message|--no-edit")
_ANNOTATED: Final = regex(r"-[a-z]*a|--annotate")
_WITH_REMOTE: Final = ("git fetch", "git push")


class ParsedCommand(msgspec.Struct, frozen=True):
    """A command line, taken apart."""

    cwd: Path
    commands: tuple[tuple[str, ...], ...] | None
    """The simple commands; None if it is more than plain commands."""
    is_script: bool

    @property
    def changes_folder(self) -> bool:
        """Whether a command changes the folder for those after it."""
        return any(words[0] == "cd" for words in self.commands or ())


def parse(command: Sequence[str], cwd: Path, workplace: Workplace) -> ParsedCommand:
    """Take a command line apart; a script is only looked into if a shell runs it that no model can have put there."""
    if len(command) == 3 and PurePath(command[0]).name in _SHELLS and command[1] in ("-c", "-lc"):
        is_shell = workplace.trusted_program(command[0], cwd) is not None
        if not is_shell or (command[1] == "-lc" and not workplace.has_own_home):
            return ParsedCommand(cwd, None, is_script=True)
        commands = shell_script.split(command[2])
        return ParsedCommand(cwd, None if not commands else tuple(map(tuple, commands)), is_script=True)
    return ParsedCommand(cwd, (tuple(command),) if command else None, is_script=False)


def programs_of(command: Sequence[str], cwd: Path, workplace: Workplace) -> tuple[str, ...]:
    """Return the paths of the programs that a command line starts, as far as that is known; for a person to read."""
    line = parse(command, cwd, workplace)
    first = workplace.shown_program(command[0], cwd)
    if line.commands is None or not line.is_script:
        return (first,)
    names = [words[0] for words in takewhile(lambda words: words[0] not in _RENAMERS, line.commands)]
    if line.changes_folder:
        names = [name for name in names if "/" not in name and workplace.has_absolute_path]
    known = [name for name in names if name not in _BUILTINS]
    return tuple(dict.fromkeys((first, *(workplace.shown_program(name, cwd) for name in known))))


def is_harmless(command: Sequence[str], cwd: Path, workplace: Workplace) -> bool:
    """Return whether a command line is known to change nothing."""
    line = parse(command, cwd, workplace)
    if not workplace.has_plain_environment:
        return False
    return bool(line.commands) and all(_reads(words, line, workplace) for words in line.commands)


def is_allowed(command: Sequence[str], cwd: Path, workplace: Workplace, allowed: Collection[Prefix]) -> bool:
    """Return whether a person allowed every command of a command line for good, in the session's folder."""
    prefixes = prefixes_of(command, cwd, workplace)
    return bool(prefixes) and all(prefix in allowed for prefix in prefixes)


def prefixes_of(command: Sequence[str], cwd: Path, workplace: Workplace) -> tuple[Prefix, ...]:
    """Return what would be remembered of a command line; nothing if one of its commands cannot be remembered."""
    line = parse(command, cwd, workplace)
    if line.commands is None or line.changes_folder or cwd != workplace.folder:
        return ()
    if not workplace.has_plain_environment:
        return ()
    if (line.is_script and command[1] != "-c") or _adds_then_reads(line):
        return ()
    prefixes: list[Prefix] = []
    for words in line.commands:
        prefix = _prefix(words, line, workplace)
        if prefix is None:
            return ()
        prefixes.append(prefix)
    return tuple(dict.fromkeys(prefixes))


def _prefix(words: Sequence[str], line: ParsedCommand, workplace: Workplace) -> Prefix | None:
    path = workplace.trusted_program(words[0], line.cwd)
    if path is None:
        return None
    name = PurePath(words[0]).name
    operands = option_rules.accepted("remembered", name, words[1:])
    if operands is None:
        is_known = name not in _RUNNERS and _reads(words, line, workplace)
        return (path, *_sub_command(name, words)) if is_known else None
    if option_rules.stays_inside("remembered", name, words[1:]):
        return (path,) if all(workplace.is_inside(each, line.cwd) for each in operands) else None
    if name == "git":
        repository = git_repositories.plain_repository(workplace, line.cwd)
        if repository is None or repository.has_hooks or _opens_editor(words[1:]):
            return None
        is_remote_plain = repository.is_remote_elsewhere and (not operands or operands[0] in repository.remotes)
        if option_rules.name_of(name, words[1:]) in _WITH_REMOTE and not (is_remote_plain and workplace.has_own_home):
            return None
    return path, *_sub_command(name, words)


def _sub_command(name: str, words: Sequence[str]) -> Prefix:
    return (words[1],) if name == "git" else ()


def _adds_then_reads(line: ParsedCommand) -> bool:
    """Return whether a script adds files and then lets git look through the work tree.

    A folder with a repository of its own becomes a submodule when it is added, and git enters it from then on.
    """
    git = [tuple(words[1:]) for words in line.commands or () if PurePath(words[0]).name == "git"]
    added = next((at for at, words in enumerate(git) if words[:1] == ("add",)), len(git))
    later = [words for words in git[added + 1 :] if words[:1] != ("push",)]
    return any(words[:1] != ("commit",) or not _commits_index(words) for words in later)


def _commits_index(words: Sequence[str]) -> bool:
    """Return whether a commit takes the index as it is, with a message, so that git has no reason to look further."""
    takes_all = any(word == "--all" or (word.startswith("-") and word[1:2] != "-" and "a" in word) for word in words)
    return not takes_all and any(word.startswith(("-m", "--message")) for word in words)


def _opens_editor(words: Sequence[str]) -> bool:
    """Return whether git would start a person's editor in the workspace, which may hold settings for editors."""
    has_message = any(map(_MESSAGE.match, words[1:]))
    is_annotated = words[0] == "tag" and any(map(_ANNOTATED.match, words[1:]))
    return (words[0] == "commit" or is_annotated) and not has_message


def _reads(words: Sequence[str], line: ParsedCommand, workplace: Workplace) -> bool:
    name = PurePath(words[0]).name
    operands = option_rules.accepted("reads", name, words[1:])
    if operands is None:
        return False
    if line.is_script and words[0] in _BUILTINS:
        return name != "cd" or len(operands) == 1
    if name == "cd" or workplace.trusted_program(words[0], line.cwd) is None:
        return False
    if name != "git":
        return True
    return not line.changes_folder and git_repositories.plain_repository(workplace, line.cwd) is not None
