"""`commonplace mcp hook EVENT`: answers a hook of Codex or Claude Code; what the agent tells is read from stdin.

Whatever goes wrong here must not disturb the session: a warning goes to stderr, and the exit code is 0. An agent waits
for the answer at the start of a session, so this module and the way to it load as little as possible, not even the
parser of the command line.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Final

from commonplace.app import client_hooks
from commonplace.app.client_hooks import HookInput

EVENTS: Final = ("session-start", "user-prompt", "session-end")
_MAX_INPUT: Final = 1024 * 1024
"""How much of a hook's input is read."""


def is_plain(arguments: list[str]) -> bool:
    """Say whether this module understands the arguments after `mcp hook`; the command line's parser judges others."""
    return bool(arguments) and arguments[0] in EVENTS and arguments[1:] in ([], ["--allow-notes"])


def answer(event: str, *, notes: bool) -> None:
    """Answer one hook."""
    try:
        hook = client_hooks.parse(sys.stdin.buffer.read(_MAX_INPUT))
        if event == "session-start":
            _start(hook, notes=notes)
        elif event == "session-end":
            _run(client_hooks.import_ended, hook)
        elif text := _run(client_hooks.prompt_hits, hook):
            _say({"hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "additionalContext": text}})
    except Exception as failed:  # an agent's session is worth more than our part in it
        _warn(failed)


def _start(hook: HookInput, *, notes: bool) -> None:
    section = client_hooks.start(hook, os.environ, notes=notes)
    if section is not None and (said := client_hooks.start_answer(section)) is not None:
        _say(said)


def _run(action: client_hooks.HookAction, hook: HookInput) -> str | None:
    import anyio

    return anyio.run(action, hook)


def _say(answer: dict[str, object]) -> None:
    sys.stdout.flush()
    sys.stdout.buffer.write(json.dumps(answer, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
    sys.stdout.buffer.flush()


def _warn(failed: Exception) -> None:
    from commonplace.errors import CommonplaceError
    from commonplace.surfaces.cli import output

    if isinstance(failed, CommonplaceError):
        output.warn(failed.sentence())
    else:
        output.warn(f"The hook failed: {type(failed).__name__}: {failed}")
