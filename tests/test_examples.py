"""The examples run as they stand, without a key or a network, and are short."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))
PRINTED = {
    "hello_agent": """
$ wc -l poem.txt
2 poem.txt
The poem has two lines.
""",
    "list_sessions": """
1 file taken in
2026-11-03  2 items  Which port does the staging database listen on?
2026-11-02  4 items  The cart test is flaky. In this repo we always run `make check` before a commit.
unknown_thread: `commonplace sessions list` shows what there is; --home names another home.
""",
    "memory_prompt": """
1 session taught something; 2 entries
- global: "From now on, please keep your answers to two sentences."
- /srv/teapot: "In this repo we always run `make check` before a commit."
an agent in /srv/teapot is told 2 of them
an agent in /srv/other is told 1
True False
""",
    "sub_agents": """
The other agent says two.
[(1, 'It has two lines.')]
""",
    "search": """
user: Which port does the staging database listen on?
answer: The staging database listens on port 5433; 5432 is the old one.
turn 1 of its ledger
1 message says websocket
""",
}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_prints_what_it_promises(path: Path, tmp_path: Path) -> None:
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    program = [sys.executable, str(path)]
    done = subprocess.run(program, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr, done.stdout) == (0, "", PRINTED[path.stem].lstrip("\n"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_shown_in_the_page_of_the_library(path: Path) -> None:
    page = Path(__file__).parent.parent / "docs" / "library.md"
    before, mark, rest = page.read_text("utf-8").partition(f"<!-- examples/{path.name} -->\n```python\n")
    assert mark, f"docs/library.md does not show {path.name}"
    whole = before + mark + path.read_text("utf-8") + rest[rest.index("```\n") :]
    if os.environ.get("UPDATE_DOCS"):
        page.write_text(whole, "utf-8")

    assert page.read_text("utf-8") == whole


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_short_and_uses_only_what_is_public(path: Path) -> None:
    text = path.read_text("utf-8")
    imported = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import | ast.ImportFrom)]
    modules = {node.module or "" for node in imported if isinstance(node, ast.ImportFrom)}
    modules |= {alias.name for node in imported if isinstance(node, ast.Import) for alias in node.names}

    assert len(text.splitlines()) <= 40
    assert [name for name in sorted(modules) if name.startswith("commonplace.")] == []
