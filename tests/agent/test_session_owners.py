"""Only the class that owns a part of a session's state changes it: proved on the source of every module.

An assignment to an attribute that some owner has, on anything but `self`, is a violation, unless the source itself says
that the object is of another class: by an annotation, a constructor or the annotated result of a function.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import sources
from generated_rows import check_each
from sources import PACKAGE

OWNERS = {
    "Session": "agent/session.py",
    "SessionLedger": "agent/session_ledger.py",
    "PromptState": "agent/prompt_state.py",
    "SessionUsage": "agent/session_usage.py",
    "TurnState": "agent/turn_state.py",
    "TurnQueue": "agent/turn_state.py",
    "TurnSnapshots": "agent/turn_snapshots.py",
    "ApprovalRequests": "agent/approvals/requests.py",
    "SessionSandbox": "agent/sandbox/session_sandbox.py",
    "SessionHooks": "agent/hooks/session_hooks.py",
    "History": "context/history.py",
}
BELOW = (
    "memory",
    "context",
    "models",
    "state",
    "rollout",
    "config",
    "redact",
    "protocol",
    "errors",
    "search",
    "sessions",
)
"""Layers and modules that cannot import a session: import-linter proves that."""
MUTATORS = frozenset(
    {"append", "appendleft", "extend", "insert", "add", "update", "setdefault", "pop", "popleft", "clear", "remove"}
)
Function = ast.FunctionDef | ast.AsyncFunctionDef


def assigned(node: ast.AST) -> Iterator[ast.Attribute]:
    """Yield the attributes that a statement assigns or deletes."""
    for each in ast.iter_child_nodes(node):
        if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store | ast.Del):
            yield each
        elif isinstance(each, ast.Tuple | ast.List | ast.Starred):
            yield from assigned(each)


def is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


@cache
def owned() -> set[str]:
    """Return the attributes that the owners assign to themselves."""
    found: set[str] = set()
    for name, path in OWNERS.items():
        (owner,) = [
            node for node in sources.nodes(PACKAGE / path) if isinstance(node, ast.ClassDef) and node.name == name
        ]
        targets = [target for node in ast.walk(owner) for target in assigned(node)]
        found |= {target.attr for target in targets if is_self(target.value)}
    return found


class Module:
    """A module, and what it says about the classes of its names."""

    def __init__(self, tree: ast.Module) -> None:
        self._tree = tree
        self._results = {
            node.name: ast.unparse(node.returns)
            for node in self._tree.body
            if isinstance(node, Function) and node.returns is not None
        }

    def violations(self) -> list[str]:
        """Return the assignments and mutations of owned attributes that are not the owner's own."""
        found: set[str] = set()
        for node, function in self._nodes():
            for target in self._changed(node):
                if target.attr in owned() and not is_self(target.value) and self._may_be_owner(target.value, function):
                    found.add(f"line {target.lineno}: {ast.unparse(target)}")
        return sorted(found)

    def _nodes(self) -> Iterator[tuple[ast.AST, Function | None]]:
        """Yield every node with the innermost function that it stands in."""
        waiting: list[tuple[ast.AST, Function | None]] = [(self._tree, None)]
        while waiting:
            node, function = waiting.pop()
            yield node, function
            inner = node if isinstance(node, Function) else function
            waiting.extend((each, inner) for each in ast.iter_child_nodes(node))

    def _changed(self, node: ast.AST) -> Iterator[ast.Attribute]:
        yield from assigned(node)
        match node:
            case ast.Call(func=ast.Name(id="setattr"), args=[target, ast.Constant(value=str(name)), *_]):
                yield ast.copy_location(ast.Attribute(target, name, ast.Store()), node)
            case ast.Call(func=ast.Attribute(attr=method, value=ast.Attribute() as target)) if method in MUTATORS:
                yield target
            case _:
                return

    def _may_be_owner(self, base: ast.expr, function: Function | None) -> bool:
        where = self._tree if isinstance(base, ast.Attribute) and is_self(base.value) else function
        named = None if where is None else self._class_of(ast.unparse(base), where)
        return named is None or any(re.search(rf"\b{name}\b", named) for name in OWNERS)

    def _class_of(self, name: str, where: Function | ast.Module) -> str | None:
        """Return what is said about the class of a name in a function, or of an attribute of `self` in the module."""
        for node in ast.walk(where):
            match node:
                case ast.arg(arg=target, annotation=ast.expr() as annotation) if target == name:
                    return ast.unparse(annotation)
                case ast.AnnAssign(target=target, annotation=annotation) if ast.unparse(target) == name:
                    return ast.unparse(annotation)
                case ast.Assign(targets=[target], value=ast.Call(func=ast.Name(id=called))) if (
                    ast.unparse(target) == name
                ):
                    is_class = called.lstrip("_")[:1].isupper()
                    return called if is_class else self._results.get(called)
                case _:
                    continue
        return None


def test_only_owners_change_the_state_of_a_session() -> None:
    named = {path.relative_to(PACKAGE): path for path in sources.MODULES}

    def check(path: Path) -> None:
        assert [] == Module(sources.tree(path)).violations()

    check_each([(name, path) for name, path in named.items() if name.parts[0].removesuffix(".py") not in BELOW], check)


@pytest.mark.parametrize(
    "statement",
    [
        "session.profile = other",
        "session.turns.running = None",
        "self._session.usage.limits = ()",
        "session.usage.refused_at += 1",
        "turn.stopped, other = why, 1",
        "del session.prompt.reference",
        "setattr(session, 'model', other)",
        "turn.memory_reads.append(one)",
        "with opened() as session.ledger: pass",
        "for turn.plan in plans: pass",
    ],
)
def test_a_change_from_outside_is_found(statement: str) -> None:
    source = f"def change(session: Session, turn: TurnState | None) -> None:\n    {statement}\n"

    assert 1 == len(Module(ast.parse(source)).violations())


@pytest.mark.parametrize(
    "source",
    [
        "def change(job: Job) -> None:\n    job.plan = 1\n",
        "def change():\n    job = Job()\n    job.plan = 1\n",
        "def make() -> Job: ...\ndef change():\n    job = make()\n    job.plan = 1\n",
        "class Other:\n    def change(self) -> None:\n        self.plan = 1\n",
        "class Other:\n    def __init__(self) -> None:\n        self.job = Job()\n        self.job.plan = 1\n",
    ],
)
def test_an_attribute_of_another_class_is_no_violation(source: str) -> None:
    assert [] == Module(ast.parse(source)).violations()
