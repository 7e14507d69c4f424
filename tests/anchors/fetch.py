"""`make anchors`: fetch the pinned programs that the anchor tests drive, into a cache outside the tree.

Nothing is fetched twice. The cache is `$COMMONPLACE_ANCHORS`, else `~/.cache/commonplace-anchors`; tests look only
there and skip with the reason where it is empty.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

PACKAGES = {
    "codex": "@openai/codex@0.166.0",
    "claude-code/2.1.197": "@anthropic-ai/claude-code@2.1.197",
    "codex-sdk": "@openai/codex-sdk@0.163.0",
}
"""Folder in the cache → npm package and version."""
OPTIONS = {"codex-sdk": ["--omit=optional"]}
"""The SDK is pointed at our program, so the Codex that it would bring along stays away."""


def cache() -> Path:
    """Return the folder that pinned programs are kept in."""
    return Path(os.environ.get("COMMONPLACE_ANCHORS") or "~/.cache/commonplace-anchors").expanduser()


def fetched(folder: Path, package: str) -> bool:
    """Say whether the pinned version is there."""
    name, _, version = package.rpartition("@")
    manifest = folder / "node_modules" / name / "package.json"
    return manifest.is_file() and json.loads(manifest.read_text("utf-8"))["version"] == version


def main() -> int:
    """Fetch what is missing; return the exit code."""
    npm = shutil.which("npm")
    for name, package in PACKAGES.items():
        folder = cache() / name
        if fetched(folder, package):
            print(f"{package} is in {folder}")
            continue
        if npm is None:
            print(f"make: npm is missing, so {package} cannot be fetched; install Node.js.", file=sys.stderr)
            return 1
        folder.mkdir(parents=True, exist_ok=True)
        command = [npm, "install", "--no-audit", "--no-fund", "--prefix", str(folder), *OPTIONS.get(name, []), package]
        if subprocess.run(command, check=False).returncode:
            print(f"make: {package} could not be fetched; check that the npm registry is reachable.", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
