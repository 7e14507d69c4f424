"""The source of the program as trees, for tests that look at all of it: parsed once in a test process.

`conftest` has these tests run one after the other, so that they share what is parsed here.
"""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterable
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src"
PACKAGE = SOURCE / "commonplace"
MODULES = sorted(SOURCE.rglob("*.py"))


def parsed(paths: Iterable[Path]) -> dict[Path, ast.Module]:
    """Parse files. No garbage is looked for meanwhile: with so many nodes, that takes longer than parsing."""
    gc.disable()
    try:
        return {path: ast.parse(path.read_text("utf-8")) for path in paths}
    finally:
        gc.enable()


@cache
def _trees() -> dict[Path, ast.Module]:
    """Parse every module once; later collections pass over what stays."""
    found = parsed(MODULES)
    gc.freeze()
    return found


def tree(path: Path) -> ast.Module:
    """Return the tree of a module; nobody may change it."""
    return _trees()[path]


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """Return all nodes of a module."""
    return tuple(ast.walk(tree(path)))
