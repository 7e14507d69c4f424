"""The examples run as they stand, without a key or a network, and are short."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))
PRINTED = {"hello_agent": "$ wc -l poem.txt\n2 poem.txt\nThe poem has two lines.\n"}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_prints_what_it_promises(path: Path, tmp_path: Path) -> None:
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    program = [sys.executable, str(path)]
    done = subprocess.run(program, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr, done.stdout) == (0, "", PRINTED[path.stem])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_short_and_uses_only_what_is_public(path: Path) -> None:
    text = path.read_text("utf-8")
    imported = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import | ast.ImportFrom)]
    modules = {node.module or "" for node in imported if isinstance(node, ast.ImportFrom)}
    modules |= {alias.name for node in imported if isinstance(node, ast.Import) for alias in node.names}

    assert len(text.splitlines()) <= 40
    assert [name for name in sorted(modules) if name.startswith("commonplace.")] == []
