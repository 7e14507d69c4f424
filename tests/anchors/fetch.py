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
    "axe-core": "axe-core@4.14.0",
}
"""Folder in the cache → npm package and version."""
PYTHON_SDK = "openai-codex==0.163.0"
"""The Python SDK of Codex, in an environment of its own; what it needs besides is pinned only by itself."""
PEERS = {"openai-agents": "openai-agents==0.24.0", "detect-secrets": "detect-secrets==1.5.0"}
"""What `bench/peers.py` measures beside us, each in an environment of its own."""
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


def python_sdk() -> Path:
    """Return the interpreter of the environment that the Python SDK is in."""
    return cache() / "python-sdk" / "bin" / "python"


def peer(name: str) -> Path:
    """Return the interpreter of the environment that a peer is in."""
    return cache() / "peers" / name / "bin" / "python"


def fetch_peer(name: str) -> int:
    """Make an environment with a peer; return the exit code."""
    folder = peer(name).parent.parent
    distribution, _, version = PEERS[name].partition("==")
    if any(folder.glob(f"lib/python*/site-packages/{distribution.replace('-', '_')}-{version}.dist-info")):
        print(f"{PEERS[name]} is in {folder}")
        return 0
    steps = [
        [sys.executable, "-m", "venv", str(folder)],
        [str(peer(name)), "-m", "pip", "install", "--quiet", PEERS[name]],
    ]
    own = {key: value for key, value in os.environ.items() if key != "PIP_CONSTRAINT"}  # those pins are ours
    if any(subprocess.run(step, env=own, check=False).returncode for step in steps):
        print(f"make: {PEERS[name]} could not be fetched; check that the package index is reachable.", file=sys.stderr)
        return 1
    return 0


def has_python_sdk() -> bool:
    """Say whether the pinned Python SDK is there."""
    folder = python_sdk().parent.parent
    name, _, version = PYTHON_SDK.partition("==")
    return any(folder.glob(f"lib/python*/site-packages/{name.replace('-', '_')}-{version}.dist-info"))


def fetch_python_sdk() -> int:
    """Make an environment with the Python SDK, without the Codex that it would bring along; return the exit code."""
    if has_python_sdk():
        print(f"{PYTHON_SDK} is in {python_sdk()}")
        return 0
    steps = [
        [sys.executable, "-m", "venv", str(python_sdk().parent.parent)],
        [str(python_sdk()), "-m", "pip", "install", "--quiet", "pydantic>=2.12", "packaging"],
        [str(python_sdk()), "-m", "pip", "install", "--quiet", "--no-deps", PYTHON_SDK],
    ]
    if any(subprocess.run(step, check=False).returncode for step in steps):
        print(f"make: {PYTHON_SDK} could not be fetched; check that the package index is reachable.", file=sys.stderr)
        return 1
    return 0


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
    return max(fetch_python_sdk(), *map(fetch_peer, PEERS))


if __name__ == "__main__":
    sys.exit(main())
