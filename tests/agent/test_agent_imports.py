"""The modules of the agent import one another downwards only, and at their top unless a comment says why not."""

from __future__ import annotations

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"
FILES = {
    ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__"): path
    for path in (SOURCE / "commonplace" / "agent").rglob("*.py")
}


def imported(node: ast.AST) -> set[str]:
    """Return the modules of the agent that an import names."""
    if not isinstance(node, ast.ImportFrom) or node.module is None:
        return set()
    names = {f"{node.module}.{each.name}" for each in node.names}
    return {name if name in FILES else node.module for name in names} & FILES.keys()


def test_no_module_imports_itself_by_way_of_others_wherever_the_imports_stand() -> None:
    graph = {
        module: {name for node in ast.walk(ast.parse(path.read_text("utf-8"))) for name in imported(node)} - {module}
        for module, path in FILES.items()
    }

    TopologicalSorter(graph).prepare()  # raises CycleError


@pytest.mark.parametrize("module", sorted(FILES))
def test_an_import_inside_a_function_says_why(module: str) -> None:
    text = FILES[module].read_text("utf-8")
    lines = text.splitlines()
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    inside = [
        node
        for function in functions
        for node in ast.walk(function)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("commonplace")
    ]

    assert [] == [lines[node.lineno - 1].strip() for node in inside if not _has_reason(lines, node.lineno - 1)]


def _has_reason(lines: list[str], place: int) -> bool:
    """Say whether a comment stands at a line, or above the block of imports that it belongs to."""
    if "  # " in lines[place]:
        return True
    above = lines[place - 1].strip()
    return above.startswith("# ") or (above.startswith("from ") and _has_reason(lines, place - 1))
