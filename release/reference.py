"""Texts that are made from the code: the reference of the library, and the man page."""

from __future__ import annotations

import inspect
import re
from types import ModuleType
from typing import Any, Final

import click

import commonplace
from commonplace.surfaces.cli.root import root

_HEAD: Final = """\
# Reference of the library

Written from the code by `UPDATE_DOCS=1 .venv/bin/pytest tests/test_docs.py`; a test keeps it true.
[The library](library.md) has examples that run.
"""
_KINDS: Final = ("Functions", "Objects", "Values", "Types", "Errors", "Modules")
_HELP: Final = ["-h", "--help"]
"""As every command inherits them from the root; a command keeps the option that it was first asked for."""
_LIST: Final = re.compile(r"(?:Raises|Args|Returns|Yields):")
_ANONYMOUS: Final = re.compile(r"<(?:function|object|factory)[^>]*>|<[\w.]+ object at 0x[0-9a-f]+>")
_MODULE: Final = re.compile(r"\b(?:commonplace|collections|datetime|pathlib|typing)(?:\.[a-z_]\w*)*\.(?=[A-Z])")


def library() -> str:
    """Return the reference of all that `commonplace` exports."""
    sections: dict[str, list[str]] = {kind: [] for kind in _KINDS}
    for name in sorted(commonplace.__all__, key=str.lower):
        value = getattr(commonplace, name)
        if isinstance(value, ModuleType):
            sections["Modules"].append(f"### commonplace.{name}\n\n{_told(value)}\n")
        elif isinstance(value, type) and issubclass(value, BaseException):
            code = getattr(value, "code", "")
            sections["Errors"].append(f"### {name}\n\n{_told(value)}\n" + (f"\nCode: `{code}`.\n" if code else ""))
        elif isinstance(value, type):
            methods = _methods(value)
            sections["Objects" if methods else "Values"].append("".join([_class(name, value), *methods]))
        elif inspect.isroutine(value):
            sections["Functions"].append(f"### {name}\n\n{_signature(name, value)}{_told(value)}\n")
        elif not isinstance(value, str):
            shown = _shown(str(value).replace("typing.", ""))
            sections["Types"].append(f"### {name}\n\n```python\n{name} = {shown}\n```\n")
    found = [f"\n## {kind}\n\n" + "\n".join(parts) for kind, parts in sections.items() if parts]
    return _HEAD + "".join(found)


def _class(name: str, value: type) -> str:
    return f"### {name}\n\n{_signature(name, value)}{_told(value)}\n"


def _methods(value: type) -> list[str]:
    """Return the public methods of a class, as far as the class itself defines them."""
    found = [
        (name, member)
        for name, member in vars(value).items()
        if not name.startswith("_") and inspect.isfunction(member) and member.__doc__
    ]
    return [f"\n#### {value.__name__}.{name}\n\n{_signature(name, member)}{_told(member)}\n" for name, member in found]


def _signature(name: str, value: Any) -> str:
    try:
        given = str(inspect.signature(value))
    except (TypeError, ValueError):
        return ""
    prefix = "await " if inspect.iscoroutinefunction(value) else ""
    return f"```python\n{prefix}{name}{_shown(given).replace('(self, ', '(').replace('(self)', '()')}\n```\n\n"


def _shown(text: str) -> str:
    """Return a signature or a type as a person would write it."""
    return _MODULE.sub("", _ANONYMOUS.sub("…", text)).replace("'", "")


def _told(value: Any) -> str:
    """Return what a docstring says; its lists of arguments and errors as lists of Markdown."""
    lines: list[str] = []
    is_list = False
    for line in inspect.cleandoc(value.__doc__ or "").splitlines():
        if _LIST.fullmatch(line):
            lines += [f"*{line[:-1]}*", ""]
            is_list = True
            continue
        is_list = is_list and bool(line)
        lines.append(f"* {line.strip()}" if is_list else line)
    return "\n".join(lines)


def manual() -> str:
    """Return the man page of the command."""
    parts = [
        f'.TH COMMONPLACE 1 "" "Commonplace {commonplace.__version__}" "User Commands"',
        ".SH NAME\ncommonplace \\- a durable past for coding agents",
        ".SH SYNOPSIS\n.B commonplace\n[OPTIONS] COMMAND [ARGS]...",
        ".SH DESCRIPTION\n" + _man(root.help or ""),
        ".SH COMMANDS",
    ]
    parts += _commands(root, click.Context(root, info_name="commonplace", help_option_names=_HELP))
    parts.append(
        ".SH FILES\n.TP\n.I ~/.commonplace\nThe home: sessions, memory, settings and database; "
        "COMMONPLACE_HOME names another.\n.TP\n.I ~/.commonplace/config.toml\nThe settings."
    )
    parts.append(".SH EXIT STATUS\n0: done. 1: it failed, and a sentence says why. 2: wrong usage.")
    return "\n".join(parts) + "\n"


def _commands(group: click.Group, context: click.Context) -> list[str]:
    parts: list[str] = []
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        path = f"{context.info_name} {name}"
        inner = click.Context(command, info_name=path, help_option_names=_HELP)
        if isinstance(command, click.Group):
            parts += _commands(command, inner)
            continue
        usage = " ".join(command.collect_usage_pieces(inner))
        parts.append(f".SS {_man(path)} {_man(usage)}\n{_man(inspect.cleandoc(command.help or ''))}")
        records = (param.get_help_record(inner) for param in command.params)
        parts += [f".TP\n.B {_man(record[0])}\n{_man(record[1])}" for record in records if record]
    return parts


def _man(text: str) -> str:
    """Return a text for troff: nothing in it is taken for a request."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace("\b", "")
    lines = ["\\&" + line if line.startswith((".", "'")) else line for line in escaped.splitlines()]
    return "\n".join(line if line.strip() else ".PP" for line in lines)
