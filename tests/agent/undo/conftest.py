from __future__ import annotations

from pathlib import Path

import pygit2
import pytest
from manifests import commit, put, repository


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    """A folder that is no repository."""
    root = tmp_path / "plain"
    root.mkdir()
    put(root, "readme.md", "hello\n")
    put(root, "src/main.py", "print(1)\n")
    put(root, "run.sh", "#!/bin/sh\n", 0o755)
    put(root, "data.bin", bytes(range(256)) * 20)
    (root / "empty").mkdir()
    (root / "link").symlink_to("src/main.py")
    return root


@pytest.fixture
def repo(tmp_path: Path) -> pygit2.Repository:
    """A repository with a commit, an ignored and an untracked file."""
    root = tmp_path / "project"
    found = repository(root)
    put(root, ".gitignore", "*.log\nbuild/\n/secret.env\n")
    put(root, "readme.md", "hello\n")
    put(root, "src/main.py", "print(1)\n")
    put(root, "src/old.py", "print(2)\n")
    put(root, "run.sh", "#!/bin/sh\n", 0o755)
    put(root, "data.bin", bytes(range(256)) * 20)
    commit(found)
    put(root, "notes.txt", "untracked\n")
    put(root, "secret.env", "KEY=1\n")
    put(root, "build/out.o", b"\0\1")
    put(root, "trace.log", "log\n")
    return found


@pytest.fixture
def project(repo: pygit2.Repository) -> Path:
    """Its working tree."""
    return Path(repo.workdir)
