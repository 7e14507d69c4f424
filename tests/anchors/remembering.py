"""A memory for the real agents to find: two sessions of two projects, learned from by our own program."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import processes
from ledgers import Script, assistant, user

OURS = "Always use pnpm instead of npm in this repo."
OTHERS = "In this project we always name branches after quokkas."


def commonplace(*arguments: str, environment: dict[str, str]) -> str:
    """Run our program as a person would, and return what it printed."""
    ours = {
        name: value for name, value in os.environ.items() if not name.startswith(("COMMONPLACE_", "CODEX_", "CLAUDE"))
    }
    done = processes.run(arguments, env=ours | environment, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def teach(home: Path, user_home: Path) -> None:
    """Make a home that knows something of two projects, `shop` and `tide`."""
    said = {"shop": f"fix the failing checkout test. {OURS}", "tide": f"{OTHERS} Fix the tide tables."}
    for number, (name, text) in enumerate(said.items()):
        remote: Any = {"repository_url": f"https://github.com/acme/{name}.git", "branch": "main"}
        script = Script(f"0198c0de-0000-7000-8000-0000000000d{number}", cwd=f"/repo/{name}", git=remote)
        script.turn(user(text), assistant("Done.")).write_home(home)
    (home / "config.toml").write_text("[memory]\nbackground = false\n", "utf-8")  # no test leaves a process behind
    commonplace("memory", "run", environment={"COMMONPLACE_HOME": str(home), "HOME": str(user_home)})


def clone(folder: Path, name: str) -> None:
    """Make a folder that is a clone of one of the projects."""
    folder.mkdir(parents=True, exist_ok=True)
    for words in (["init", "-q"], ["remote", "add", "origin", f"https://github.com/acme/{name}.git"]):
        environment = {"PATH": os.environ["PATH"], "HOME": str(folder)}
        subprocess.run(["git", *words], cwd=folder, env=environment, check=True, capture_output=True)
