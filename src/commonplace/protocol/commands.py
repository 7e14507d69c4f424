"""What a call did: the command that it ran and how that ended, in every agent's way of writing it."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from commonplace.patterns import regex
from commonplace.protocol import shell

_SHELLS: Final = frozenset(
    {"shell", "exec_command", "local_shell", "bash", "run_shell_command", "container.exec", "shell_command"}
    | {"execute_bash", "run_terminal_cmd", "terminal", "unified_exec"}
)
_CODE: Final = regex(r"(?:^|\n)(?:Exit code:?|Process exited with code|exit status|exit code:?) ?(-?\d+)", re.I)
_HEADS: Final = regex(
    r"(?:Chunk ID: .*\n|Wall time: .*\n|Process exited with code .*\n|Original token count: .*\n|Exit code:? .*\n"
    r"|Total output lines: .*\n|Warning: truncated output.*\n|Output:\n)+"
)


class Ended(msgspec.Struct, frozen=True):
    """How a call ended, and what it printed."""

    code: int | None
    text: str


class _Arguments(msgspec.Struct):
    cmd: Any = None
    command: Any = None
    workdir: str | None = None
    cwd: str | None = None


class _OldMetadata(msgspec.Struct):
    exit_code: int | None = None


class _OldOutput(msgspec.Struct):
    output: str
    metadata: _OldMetadata = msgspec.field(default_factory=_OldMetadata)


_arguments = msgspec.json.Decoder(_Arguments, strict=False)
_old = msgspec.json.Decoder(_OldOutput)


def of_call(name: str, arguments: str) -> tuple[str, str | None]:
    """Return the command line that a call runs and the folder it names; an empty one if it is no shell."""
    if name.lower().rpartition("__")[2] not in _SHELLS:
        return "", None
    try:
        found = _arguments.decode(arguments)
    except (msgspec.DecodeError, RecursionError):
        return "", None
    return _line(found.cmd if found.cmd is not None else found.command), found.workdir or found.cwd


def _line(given: Any) -> str:
    if isinstance(given, str):
        return given.strip()
    if not isinstance(given, list):
        return ""
    words = [str(word) for word in given]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    script = shell.wrapped_script(words)
    return (" ".join(words) if script is None else script).strip()


def ended(text: str) -> Ended:
    """Return the exit code that an output tells (None if it tells none) and what the program printed."""
    if text.startswith("{"):
        try:
            old = _old.decode(text)
        except (msgspec.DecodeError, RecursionError):
            return Ended(None, text)
        return Ended(old.metadata.exit_code, old.output)
    head = _HEADS.match(text)
    if head is None:
        return Ended(None, text)
    code = _CODE.search(head[0])
    return Ended(int(code[1]) if code else None, text[head.end() :])
