"""Patches that are applied without a session."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from commonplace.agent.tools.patch import files
from commonplace.agent.tools.patch.parse import parse
from commonplace.agent.tools.patch.tool import plan_patch


def apply_patch(text: str, cwd: Path, roots: Sequence[Path] = ()) -> None:
    """Apply a patch, all of it or nothing (raises ToolError)."""
    files.write(plan_patch(parse(text), cwd, roots).writes)
