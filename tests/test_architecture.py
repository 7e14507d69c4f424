"""The architecture: no cycle among modules, imports at the top, and flows that the documentation states truly."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src"
PACKAGE = "commonplace"

LATE_IMPORTS = {
    "learning.providers": "models and the curator import httpx2 and the agent; learning without a model needs neither",
    "learning.estimate": "the prompts of a model are needed only where one is named",
    "models.providers": "httpx2 takes 60 ms to import and is needed by the first request only",
    "state.home": "sqlite3 and psycopg are imported by the command that opens a database",
}
"""Modules below `app` that import modules of ours inside a function, each with the reason."""
LATE_LAYERS = ("app", "surfaces")
"""Layers whose commands import what they need when they are called."""


@cache
def modules() -> dict[str, Path]:
    """Every module by its dotted name without the package's; packages stand for their `__init__`."""
    found: dict[str, Path] = {}
    for path in sorted((SOURCE / PACKAGE).rglob("*.py")):
        parts = path.relative_to(SOURCE / PACKAGE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def tree(name: str) -> ast.Module:
    return ast.parse(modules()[name].read_text("utf-8"))


def module_of(dotted: str) -> str | None:
    """Return the module of ours that an imported name belongs to."""
    if dotted != PACKAGE and not dotted.startswith(f"{PACKAGE}."):
        return None
    name = dotted.removeprefix(PACKAGE).removeprefix(".")
    while name and name not in modules():
        name = name.rpartition(".")[0]
    return name


def imported(node: ast.AST) -> Iterator[str]:
    """Yield the modules of ours that an import statement names."""
    names: list[str] = []
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        names = [f"{node.module}.{alias.name}" for alias in node.names]
    for name in names:
        if (module := module_of(name)) is not None:
            yield module


def test_no_module_imports_itself_through_others() -> None:
    edges = {name: {each for node in ast.walk(tree(name)) for each in imported(node)} - {name} for name in modules()}

    assert [] == cycles(edges)


def cycles(edges: dict[str, set[str]]) -> list[list[str]]:
    """Return the strongly connected components of more than one module (Tarjan)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in sorted(edges[name]):
            if other not in index:
                visit(other)
            if other in stack:
                low[name] = min(low[name], low[other])
        if low[name] == index[name]:
            component: list[str] = []
            while not component or component[-1] != name:
                component.append(stack.pop())
            if len(component) > 1:
                found.append(sorted(component))

    for name in sorted(edges):
        if name not in index:
            visit(name)
    return found


def test_modules_of_ours_are_imported_at_the_top_but_where_a_start_up_needs_it() -> None:
    late: dict[str, list[int]] = defaultdict(list)
    for name in modules():
        if name.split(".")[0] in LATE_LAYERS or not name:
            continue
        for function in ast.walk(tree(name)):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                for node in ast.walk(function):
                    if any(True for _ in imported(node)):
                        late[name].append(getattr(node, "lineno", 0))

    assert {} == {name: lines for name, lines in late.items() if name not in LATE_IMPORTS}
    assert set() == LATE_IMPORTS.keys() - late.keys()
