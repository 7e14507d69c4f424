"""Arguments that are known, program by program: an allow-list, so that no option is accepted by oversight. Pure.

`option_rules.toml` holds the rules. A rule reads arguments as the program does: letters that stand together, values in
the same word or the next, `--name=value`, operands, `--`. Shortened long options are not known.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final, Literal

import msgspec

from commonplace.patterns import regex

Use = Literal["reads", "remembered"]
_LINES_OF_SED: Final = regex(r"\d+(?:,(?:\d+|\$))?p")
_OPTION: Final = regex(r"-[^\s\d]")
_PLACEHOLDERS: Final = regex(
    r"(?>(?:[^%]|%(?:%|[-+ ]?(?:[HhTtPpeNsfbBdDSnm]|[ac][nNeElLdDriIhst]|g[DdsnNeE]|x[0-9a-fA-F]{2}"
    r"|C(?:\([^()]*\)|[a-z]++)|\((?:trailers|decorate)[^()]*\)|[<>]{1,2}\|?\([^()]*\)|w\([^()]*\))))*)"
)
"""A format of git with nothing but placeholders for which git runs no program, as it runs one for signatures."""
_NO_FORMATS: Final = (
    "--date=",
    "--since=",
    "--until=",
    "--after=",
    "--before=",
    "--grep=",
    "--author=",
    "--committer=",
)
"""Options of git in which `%` is no placeholder."""


class OptionRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of one program that are known; `option_rules.toml` says what each field means."""

    short: str = ""
    valued: str = ""
    attached: str = ""
    long: frozenset[str] = frozenset()
    long_valued: frozenset[str] = frozenset()
    words: frozenset[str] = frozenset()
    words_valued: frozenset[str] = frozenset()
    numbers: bool = False
    operands: int | None = None
    operand: str = ""
    names: bool = False
    inside: bool = False
    any: bool = False

    def operands_of(self, arguments: Sequence[str]) -> list[str] | None:
        """Return the operands among the arguments; None if one of the arguments is not known."""
        if self.any:
            return []
        operands: list[str] = []
        rest = iter(arguments)
        for word in rest:
            if word == "--" and not self.words:
                operands += rest
            elif word in self.words_valued:
                if next(rest, None) is None:
                    return None
            elif word == "-" or not word.startswith("-"):
                operands.append(word)
            elif not (word in self.words or self._is_option(word, rest)):
                return None
        if self.operands is not None and len(operands) > self.operands:
            return None
        if self.names and any(each.startswith("+") or ":" in each for each in operands):
            return None
        return operands if all(each.startswith(self.operand) for each in operands) else None

    def _is_option(self, word: str, rest: Iterator[str]) -> bool:
        if word.startswith("--"):
            name, equals, _ = word[2:].partition("=")
            if equals:
                return name in self.long_valued
            return name in self.long or (name in self.long_valued and _is_value(next(rest, None)))
        if self.numbers and word[1:].isdecimal():
            return True
        for at, letter in enumerate(word[1:], 2):
            if letter in self.attached:
                return True
            if letter in self.valued:
                return at < len(word) or _is_value(next(rest, None))
            if letter not in self.short:
                return False
        return True


def _is_value(word: str | None) -> bool:
    """Return whether a word can be nothing but the value of the option before it, should that option need none."""
    return word is not None and _OPTION.match(word) is None


@cache
def _rules() -> Mapping[Use, Mapping[str, OptionRule]]:
    text = Path(__file__).with_name("option_rules.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text), dict[Use, dict[str, OptionRule]])


def name_of(program: str, arguments: Sequence[str]) -> str:
    """Return the name of the rule of a program: `ls`; for git with the sub-command, `git status`."""
    return f"git {arguments[0]}" if program == "git" and arguments else program


def stays_inside(use: Use, program: str, arguments: Sequence[str]) -> bool:
    """Return whether a command is known only for operands that lie in the folders of the work."""
    rule = _rules()[use].get(name_of(program, arguments))
    return rule is not None and rule.inside


def accepted(use: Use, program: str, arguments: Sequence[str]) -> list[str] | None:
    """Return the operands of a command whose arguments are all known for a use; None if one of them is not."""
    if use == "reads" and program == "sed":  # only to print a stretch of lines
        is_print = len(arguments) >= 2 and arguments[0] == "-n" and _LINES_OF_SED.fullmatch(arguments[1]) is not None
        return list(arguments[2:]) if is_print and not any(word.startswith("-") for word in arguments[2:]) else None
    rule = _rules()[use].get(name_of(program, arguments))
    if rule is None or (program == "git" and not all(map(_is_plain_format, arguments))):
        return None
    return rule.operands_of(arguments[1:] if program == "git" else arguments)


def _is_plain_format(word: str) -> bool:
    """Return whether an argument of git, should it be a format, makes git run no program."""
    if not word.startswith("--") or word.startswith(_NO_FORMATS):
        return True
    return _PLACEHOLDERS.fullmatch(word) is not None
