"""The architecture: no cycle among modules, imports at the top, and flows that the documentation states truly."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import sources
from sources import ROOT

PACKAGE = "commonplace"

LATE_IMPORTS = {
    "agent.compaction.schedule": "the digest is slow to import, and most turns do not compact",
    "agent.open_session": "the digest is slow to import, and only a compaction needs it",
    "agent.prompt_state": "the digest is slow to import, and only a compaction needs it",
    "agent.sandbox.command_wrapper": "the launcher loads ctypes, and importing it leaves it compiled on the disk",
    "agent.servers.pool": "the MCP SDK takes a second to import, and most sessions have no servers",
    "agent.session": "servers are slow to import, and most sessions have none",
    "agent.tools.recall": "numpy and the stemmer are slow to import, and most turns recall nothing",
    "agent.turn_snapshots": "pygit2 is slow to import, and most turns change nothing",
    "learning.providers": "models and the curator are slow to import, and learning without a model needs neither",
    "learning.estimate": "the prompts of a model are needed only where one is named",
    "models.providers": "the first request needs h11 or httpx2, and a command that asks nobody needs neither",
    "redact": "the rules take 40 ms to import, and are loaded when the first text comes",
    "redact.stream": "the rules are loaded when the first bytes come",
    "sessions.sessions": "listing threads needs neither the importers nor the digest",
    "state.home": "sqlite3 and psycopg are imported by the command that opens a database",
}
"""Modules below `app` that import modules of ours inside a function, each with the reason."""
LATE_LAYERS = ("app", "surfaces")
"""Layers whose commands import what they need when they are called."""


@cache
def modules() -> dict[str, Path]:
    """Every module by its dotted name without the package's; packages stand for their `__init__`."""
    found: dict[str, Path] = {}
    for path in sources.MODULES:
        parts = path.relative_to(sources.PACKAGE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def nodes(name: str) -> tuple[ast.AST, ...]:
    return sources.nodes(modules()[name])


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
    edges = {name: {each for node in nodes(name) for each in imported(node)} - {name} for name in modules()}

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
        for function in nodes(name):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                for node in ast.walk(function):
                    if any(True for _ in imported(node)):
                        late[name].append(getattr(node, "lineno", 0))

    assert {} == {name: lines for name, lines in late.items() if name not in LATE_IMPORTS}
    assert set() == LATE_IMPORTS.keys() - late.keys()


FLOW_STEP = re.compile(r"^(?P<indent> *)\d+\. `(?P<name>[\w.]+)`$")
MOST_STEPS = 8
LAYERS = (
    "surfaces", "clients", "app", "learning", "agent", "memory", "search", "sessions", "importers", "projects",
    "context", "models", "state", "rollout", "config", "redact", "protocol", "errors",
)  # fmt: skip


def flows() -> dict[str, list[tuple[int, str]]]:
    """The flows of docs/architecture.md: each step with its indentation."""
    found: dict[str, list[tuple[int, str]]] = {}
    title = ""
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8").partition("## Four flows")[2].partition("\n## ")[0]
    for line in page.splitlines():
        if line.startswith("### "):
            title = line[4:]
            found[title] = []
        elif step := FLOW_STEP.match(line):
            found[title].append((len(step["indent"]), step["name"]))
    return found


def definition(step: str) -> ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef:
    """Return the function, method or class that a step names."""
    module = step
    while module not in modules():
        module = module.rpartition(".")[0]
        assert module, f"there is no module for {step}"
    node: ast.AST = sources.tree(modules()[module])
    for name in step.removeprefix(f"{module}.").split("."):
        body: list[ast.stmt] = getattr(node, "body", [])
        named = [each for each in body if getattr(each, "name", None) == name]
        assert named, f"{step} does not exist"
        node = named[0]
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    return node


def names_in(node: ast.AST) -> set[str]:
    """Return every name and attribute that a piece of code uses."""
    used = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    return used | {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)}


def test_there_are_four_flows_of_at_most_eight_steps() -> None:
    assert {"A turn": 8, "Learning": 8, "Remembering": 7, "Resuming": 7} == {
        title: len(steps) for title, steps in flows().items()
    }
    assert all(len(steps) <= MOST_STEPS for steps in flows().values())


def caller_of(steps: list[tuple[int, str]], place: int) -> str | None:
    """Return the step that calls another: the one before it; of an indented one, the nearest with less indentation."""
    indent = steps[place][0]
    above = [step for depth, step in steps[:place] if (depth < indent if indent else depth == 0)]
    return above[-1] if above else None


def test_each_step_of_a_flow_uses_the_next_and_none_goes_up() -> None:
    for title, steps in flows().items():
        for place, (_, step) in enumerate(steps):
            definition(step)
            caller = caller_of(steps, place)
            if caller is not None:
                assert step.rpartition(".")[2] in names_in(definition(caller)), f"{title}: {caller} does not use {step}"
                assert LAYERS.index(caller.split(".")[0]) <= LAYERS.index(step.split(".")[0]), f"{caller} → {step}"
