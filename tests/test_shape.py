"""The shape of the source: small files, small functions, names that say what a thing is."""

from __future__ import annotations

import ast
from pathlib import Path

import sources
from sources import MODULES, ROOT

MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 60
VAGUE = {"utils", "util", "helpers", "helper", "manager", "common", "misc"}


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def too_long(path: Path) -> list[str]:
    """Name the functions of a module that are longer than they may be."""
    functions = [node for node in sources.nodes(path) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [f.name for f in functions if (f.end_lineno or f.lineno) - f.lineno + 1 > MAX_FUNCTION_LINES]


def test_there_are_sources() -> None:
    assert len(MODULES) > 100


def test_no_module_is_longer_than_400_lines() -> None:
    lengths = {named(path): len(path.read_text("utf-8").splitlines()) for path in MODULES}

    assert {} == {name: length for name, length in lengths.items() if length > MAX_FILE_LINES}


def test_no_function_is_longer_than_60_lines() -> None:
    found = {named(path): too_long(path) for path in MODULES}

    assert {} == {name: functions for name, functions in found.items() if functions}


def test_every_module_states_its_idea() -> None:
    assert [] == [named(path) for path in MODULES if not ast.get_docstring(sources.tree(path))]


def test_no_module_has_a_name_that_says_nothing() -> None:
    assert [] == [path for path in MODULES if path.stem in VAGUE or path.parent.name in VAGUE]
