"""Hosts of a team: homes of their own, each with its user and their git identity, that share one PostgreSQL."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import psycopg
from psycopg import sql
from taught_homes import NOW

import processes
from ledgers import Script, assistant, user


class Host:
    """One home on a host of its own."""

    def __init__(self, folder: Path, database: str, root: str | None, name: str, email: str | None = None) -> None:
        self.name, self.root = name, root or ""
        self.home, self.user = folder / "home", folder / "user"
        self.user.mkdir(parents=True)
        self.home.mkdir(mode=0o700)
        settings = [f"database = {json.dumps(database)}"]
        settings += [f"memory_root = {json.dumps(root)}"] if root else []
        (self.home / "config.toml").write_text("\n".join(settings) + "\n", "utf-8")
        if email is not None:
            (self.user / ".gitconfig").write_text(f"[user]\n\tname = {name.title()}\n\temail = {email}\n", "utf-8")
        self.variables = {
            **os.environ,
            "COMMONPLACE_HOME": str(self.home),
            "COMMONPLACE_HOST": f"host-{name}",
            "COMMONPLACE_NOW": NOW,
            "HOME": str(self.user),
        }

    def session(self, *said: str, project: str = "shop", cwd: str | None = None, number: int = 0) -> str:
        """Write a session in which a person said something; return its thread."""
        thread = str(uuid5(NAMESPACE_URL, f"{self.home}/{project}/{number}/{said}"))
        thread = f"{thread[:14]}7{thread[15:]}"
        git = {"repository_url": f"https://github.com/acme/{project}.git", "branch": "main"}
        script = Script(thread, cwd=cwd or f"/repo/{project}", git=git)
        for text in said:
            script.turn(user(text), assistant("Done."))
        script.write_home(self.home)
        return thread

    def add_settings(self, *lines: str) -> None:
        """Add tables to the settings."""
        with (self.home / "config.toml").open("a", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")

    def clone(self, project: str = "shop") -> Path:
        """Make a checkout of a project, as far as its identity goes."""
        folder = self.user / project
        (folder / ".git" / "objects").mkdir(parents=True)
        (folder / ".git" / "refs").mkdir()
        (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n", "utf-8")
        url = f"https://github.com/acme/{project}.git"
        (folder / ".git" / "config").write_text(f'[remote "origin"]\n\turl = {url}\n', "utf-8")
        return folder

    def start(self, *arguments: str) -> processes.Process:
        """Start the program, and return while it runs."""
        return processes.Process(arguments, env=self.variables, cwd=self.user)

    def done(
        self, *arguments: str, more: dict[str, str] | None = None, folder: Path | None = None
    ) -> processes.CompletedProcess[str]:
        """Run the program."""
        return processes.run(arguments, env={**self.variables, **(more or {})}, text=True, cwd=folder or self.user)

    def run(self, *arguments: str) -> Any:
        """Run the program, which must succeed; return what it said as JSON."""
        done = self.done(*arguments, "--json")
        assert done.returncode == 0, (arguments, done.stdout, done.stderr)
        return json.loads(done.stdout)

    def learn(self) -> Any:
        """Learn from what is there."""
        return self.run("memory", "run")

    def texts(self, *, candidates: bool = False) -> dict[str, Any]:
        """Return the entries by their texts."""
        more = ["--candidates"] if candidates else []
        return {each["text"]: each for each in self.run("memory", "list", *more)["entries"]}

    def prompt(self, project: str = "github.com/acme/shop") -> Any:
        """Return what an agent is told of a project."""
        done = self.done("memory", "prompt", "--project", project, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def files(self) -> dict[str, bytes]:
        """Return the files of the memory, the baseline aside."""
        root = self.home / "memories"
        found = (path for path in sorted(root.rglob("*")) if path.is_file() and ".git" not in path.parts)
        return {str(path.relative_to(root)): path.read_bytes() for path in found}


def drop(address: str, roots: Iterable[str]) -> None:
    """Remove what roots have in the database."""
    with psycopg.connect(address, autocommit=True) as connection:
        for root in roots:
            connection.execute(
                sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(f"commonplace_{root}"))
            )
