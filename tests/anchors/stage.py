"""The place where a scenario plays: one home, one scripted model, and short verbs for both.

A scenario gets a `Stage`, puts answers on the model's script with `script`, and drives Codex through
`app` (the app server) or `exec`. Everything it leaves behind is below one root folder, which the recorder
reads and removes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from codex_driver import AppServer, CodexError, CodexHome, ExecResult, make_home, run_exec
from scripted_responses import Json, ScriptedResponses, Step

INSTRUCTIONS = "You are a test agent. Be brief."
"""Base instructions of every scenario, in place of the vendor's."""

TINY_PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
"""A picture of one pixel, base64."""


class Stage:
    """One scenario's world."""

    def __init__(
        self,
        binary: Path,
        root: Path,
        server: ScriptedResponses,
        settings: Mapping[str, str],
        tables: str,
        provider_name: str,
    ) -> None:
        self.server = server
        instructions = root / "instructions.md"
        instructions.write_text(INSTRUCTIONS, "utf-8")
        self.home: CodexHome = make_home(
            binary,
            root,
            server.base_url,
            provider_name=provider_name,
            settings={"model_instructions_file": f'"{instructions}"', **settings},
            tables=tables,
        )

    def script(self, *steps: Step) -> None:
        """Put answers on the model's script."""
        self.server.add(*steps)

    def app(self) -> AppServer:
        """Return an app server to be used as a context manager."""
        return AppServer(self.home)

    def exec(self, prompt: str, **options: Any) -> ExecResult:
        """Run one turn with `codex exec` and insist that it ends well."""
        done = run_exec(self.home, prompt, **options)
        if done.code != 0:
            raise CodexError(f"codex exec ended with {done.code}: {done.stderr[-2000:]}")
        return done

    def rollout(self, thread_id: str) -> Path:
        """Return the first rollout file of a thread."""
        return next(path for path in self.home.rollouts() if thread_id in path.name)

    def append_event(self, thread_id: str, payload: Json) -> None:
        """Append an event line to a legacy file, as an older version of Codex would have."""
        path = self.rollout(thread_id)
        last = json.loads(path.read_bytes().splitlines()[-1])
        line = {"timestamp": last["timestamp"], "type": "event_msg", "payload": payload}
        with path.open("ab") as opened:
            opened.write(json.dumps(line, separators=(",", ":")).encode() + b"\n")


@dataclass(frozen=True)
class Scenario:
    """A named play with its configuration and one sentence on what it shows."""

    name: str
    note: str
    play: Callable[[Stage], None]
    settings: Mapping[str, str] = field(default_factory=dict[str, str])
    tables: str = ""
    provider_name: str = "mock"
