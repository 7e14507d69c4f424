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
S3_SERVER = "moto[server]==5.2.5"
"""A server that speaks S3, likewise."""
FUZZER = "atheris==3.0.0"
"""A fuzzer that is led by what it reaches, likewise; it is there for some versions of Python only."""
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


def s3_server() -> Path:
    """Return the interpreter of the environment that the S3 server is in."""
    return cache() / "s3-server" / "bin" / "python"


def peer(name: str) -> Path:
    """Return the interpreter of the environment that a peer is in."""
    return cache() / "peers" / name / "bin" / "python"


def has_python_sdk() -> bool:
    """Say whether the pinned Python SDK is there."""
    return _is_installed(python_sdk(), PYTHON_SDK)


def has_s3_server() -> bool:
    """Say whether the pinned S3 server is there."""
    return _is_installed(s3_server(), S3_SERVER)


def fuzzer() -> Path:
    """Return the interpreter of the environment that the fuzzer is in."""
    return cache() / "fuzzer" / "bin" / "python"


def has_fuzzer() -> bool:
    """Say whether the pinned fuzzer is there."""
    return _is_installed(fuzzer(), FUZZER)


def _is_installed(python: Path, package: str) -> bool:
    name, _, version = package.partition("==")
    name = name.partition("[")[0].replace("-", "_")
    return any(python.parent.parent.glob(f"lib/python*/site-packages/{name}-{version}.dist-info"))


def _install(python: Path, package: str, *steps: list[str]) -> int:
    """Make an environment for one package; return the exit code."""
    if _is_installed(python, package):
        print(f"{package} is in {python}")
        return 0
    install = [str(python), "-m", "pip", "install", "--quiet"]
    commands = [[sys.executable, "-m", "venv", str(python.parent.parent)], *([*install, *step] for step in steps)]
    own = {key: value for key, value in os.environ.items() if key != "PIP_CONSTRAINT"}  # those pins are ours
    if any(subprocess.run(command, env=own, check=False).returncode for command in commands):
        print(f"make: {package} could not be fetched; check that the package index is reachable.", file=sys.stderr)
        return 1
    return 0


def fetch_python_packages() -> int:
    """Make environments: the Python SDK (without the Codex that it would bring along), the S3 server, the peers."""
    sdk = _install(python_sdk(), PYTHON_SDK, ["pydantic>=2.12", "packaging"], ["--no-deps", PYTHON_SDK])
    server = _install(s3_server(), S3_SERVER, [S3_SERVER])
    _install(fuzzer(), FUZZER, [FUZZER])  # without it, those tests skip
    return max(sdk, server, *(_install(peer(name), package, [package]) for name, package in PEERS.items()))


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
    return fetch_python_packages()


if __name__ == "__main__":
    sys.exit(main())
