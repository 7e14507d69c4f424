"""The words and expressions by which folders, addresses and files are read (`tables.toml`)."""

from __future__ import annotations

import re
import tomllib
from typing import Any, Final

from commonplace import package_files
from commonplace.patterns import regex


def _load() -> dict[str, Any]:
    return tomllib.loads(package_files.text("projects/tables.toml"))


def _words(table: str, name: str) -> frozenset[str]:
    return frozenset(str(_TABLES[table][name]).split())


def _patterns(table: str, name: str) -> tuple[re.Pattern[str], ...]:
    return tuple(regex(text) for text in _TABLES[table][name])


_TABLES: Final = _load()

WORKTREES_INSIDE: Final = _patterns("worktrees", "inside")
"""What stands between the main checkout and the name of a worktree."""
WORKTREE_BESIDE: Final = regex(_TABLES["worktrees"]["beside"])
"""What stands between the two in the name of a worktree beside the main checkout."""
WORKSPACES: Final = _patterns("workspaces", "patterns")
"""Where programs keep checkouts of a project under its name."""
WORKSPACE_PROGRAMS: Final = _words("workspaces", "programs")
"""Folders of such programs."""
GENERIC_NAMES: Final = _words("folders", "generic")
"""Names that many folders have."""
BROAD_FOLDER: Final = regex(_TABLES["folders"]["broad"])
"""Folders that are above everything; to be matched whole."""
VENDORED: Final = _words("folders", "vendored")
"""Folders of what others wrote and of what programs made."""
COMMON_PATH_WORDS: Final = _words("files", "common")
"""Words that paths of many projects have."""
EVERYDAY_BRANCHES: Final = _words("branches", "everyday")
"""Names of branches that tell nothing of a project."""
HOST: Final = regex(_TABLES["addresses"]["hosts"])
"""Hosts of repositories; to be matched whole."""
HOST_PAGES: Final = _words("addresses", "pages")
"""First parts of paths on such hosts that are no owners."""
