"""Nothing is offered without an effect: what no code reads (options, functions, fields) is gone, or has a reason."""

from __future__ import annotations

import ast
import inspect
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache

import click

import sources
from commonplace.surfaces.cli import root
from sources import MODULES, PACKAGE, nodes

Function = ast.FunctionDef | ast.AsyncFunctionDef

OVERRIDES = {
    "readable", "seekable", "on_broken_pipe", "get_command", "format_commands", "capture_signals",
    "on_connect", "authenticate", "new_session", "load_session", "resume_session", "list_sessions", "close_session",
    "set_session_mode", "ext_method", "ext_notification",
}  # fmt: skip
"""Methods that another library calls."""
FOR_OTHERS = {
    "sub_agents": "looked up by its name in the module of a source, which may have none",
    "think": "a builder of `commonplace.scripted`, for whoever tests an agent",
    "IsolatedEnvironment": "an environment for whoever opens a session without a home",
    "delegate": "of the library's `Thread`; no surface has delegates yet",
    "open_delegate": "the same",
    "is_supported_by": "a relation of sentences that learning does not ask for yet",
}
"""What only users of the library and tests need, and why it is there."""
WRITTEN = {
    "Setting.doc": "shown by `config show` and written into docs/settings.md",
    "HistoryBase.end_ordinal_exclusive": "required by the format; where a fork ends is told by its byte offset",
    "_Mail.other_recipients": "a message is mail only if it has it",
    "_Mail.trigger_turn": "a message is mail only if it has it",
    "PlanUpdate.explanation": "models write it; the ledger has it in the call",
    "TranscriptItem.from_memory": "JSON of `sessions show --items`",
    "Fields.part_id": "known, so that it is not reported as unknown",
    "ListedJob.retry_at": "the template of the page of the pipeline reads it",
    "ListedJob.retries_left": "the same",
    "FailedJob.retry_at": "JSON of `memory status`",
    "ExpectedLessons.processed": "format of a corpus",
    "Audit.loops": "JSON of `memory audit`",
    "Audit.unsourced": "JSON of `memory audit`",
    "GranularApproval.skill_approval": "told back to the client that sent it; there are no such questions",
    "GranularApproval.request_permissions": "the same",
    "Audit.unused": "JSON of `memory audit`",
    "DirectoryEntry.entry_type": "the answer of the tool `list`",
}
"""Fields that are written or required and that no code reads, each with its reason."""


@cache
def named() -> Counter[str]:
    """How often each name is used in the program, as a name or as an attribute; definitions and imports are no use."""
    found: Counter[str] = Counter()
    for path in MODULES:
        for node in nodes(path):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                found[node.id] += 1
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                found[node.attr] += 1
    return found


def public() -> Iterator[str]:
    for path in MODULES:
        for node in nodes(path):
            if isinstance(node, Function | ast.ClassDef) and not node.name.startswith("_"):
                made = " ".join(ast.unparse(each) for each in node.decorator_list)
                if "click" not in made and "command" not in made and "group" not in made:
                    yield node.name


def fields() -> Iterator[tuple[str, str]]:
    for path in MODULES:
        for node in nodes(path):
            if isinstance(node, ast.ClassDef) and any("Struct" in ast.unparse(base) for base in node.bases):
                for each in node.body:
                    if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
                        yield node.name, each.target.id


def test_every_public_function_and_class_is_used_by_the_program() -> None:
    unused = {name for name in public() if not named()[name]}

    assert unused - OVERRIDES == set(FOR_OTHERS)


def test_every_field_is_read_or_has_a_reason() -> None:
    unread = {f"{owner}.{field}" for owner, field in fields() if not named()[field]}

    assert unread == set(WRITTEN)


def commands(group: click.Command, path: str = "") -> Iterator[tuple[str, click.Command]]:
    if isinstance(group, click.Group):
        context = click.Context(group)
        for name in group.list_commands(context):
            found = group.get_command(context, name)
            assert found is not None
            yield from commands(found, f"{path} {name}")
    else:
        yield path, group


def test_every_option_of_every_command_is_read() -> None:
    unread: list[str] = []
    for path, command in commands(root.root):
        assert command.callback is not None
        callback = inspect.unwrap(command.callback)
        file = sys.modules[callback.__module__].__file__
        assert file is not None
        tree = sources.tree(PACKAGE / file.partition("/commonplace/")[2].rpartition("/commonplace/")[2])
        decorators = {
            id(node)
            for each in ast.walk(tree)
            if isinstance(each, Function)
            for top in each.decorator_list
            for node in ast.walk(top)
        }
        read = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        read |= {
            node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in decorators
        }
        unread += [f"{path} --{each.name}" for each in command.params if each.name not in read]

    assert [] == unread
