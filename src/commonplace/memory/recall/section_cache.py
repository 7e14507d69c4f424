"""Memory sections kept ready for agents' hooks, so that the start of a session need not load the program.

A section is kept per folder and kind of reader, with stamps of everything that it was made from: the memory's files,
the person's decisions, the settings, and the files that say which repository the folder is in. It is kept for the
repository's remote, too, because agents often start in a new worktree; and what holds everywhere is kept for folders of
which nothing is known. `read` compares the stamps and returns nothing if one differs. `best` then returns the next best
answer: the section of the remote, else the last one of the folder without the lessons that left `MEMORY.md` since, else
what holds everywhere. Whoever forgets something or divides a project clears the cache. Everything here is derived:
losing it costs one session that is told less.

`told.jsonl` notes what hooks told. A hook only appends a line; `take_told` hands the lines to whoever counts them.

This module loads only a few modules of Python itself, because a hook is a process of its own for each session.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

from commonplace.projects.repository_files import remote_of
from commonplace.version import __version__

FOLDER: Final = "sections"
TOLD: Final = "told.jsonl"
LAST_TOLD: Final = "last_told.json"
SEEN: Final = ".seen"
"""How the name of a file ends that lists what a session was told."""
STARTED: Final = "started"
"""Its time is when a hook last started learning."""
MAX_SECTIONS: Final = 256
"""So many sections are kept at most; the oldest go first."""
CODEX: Final = "codex"
CLAUDE_CODE: Final = "claude-code"
SERVER: Final = "server"
"""The reader of the lessons in the memory server's instructions."""
ANYWHERE: Final = "*"
"""Stands for the folder in the section for folders of which nothing is known."""
_NOTES: Final = "+notes"
"""How the name of a reader that may write notes ends."""
_SETTINGS: Final = "config.toml"
_MEMORY: Final = "memories/MEMORY.md"
_MADE_FROM: Final = (
    _SETTINGS,
    "decisions.jsonl",
    "memories",
    _MEMORY,
    "memories/memory_summary.md",
    "memories/raw_memories.md",
)
"""Files of the home that a section depends on."""
_IGNORED: Final = ("COMMONPLACE_NOW", "COMMONPLACE_MCP_TOKEN", "COMMONPLACE_HOME")
"""Variables of this program that change no section."""

Stamp = list[int] | int | None
"""Of a file its time, size and number; 1 for a folder; None if there is nothing."""
Section = dict[str, Any]
"""`text`, `project`, `lessons` (how many), `ids`, `folder`, `reader`, `is_learning` (learning may start)."""


def home_folder(environment: Mapping[str, str]) -> str:
    """Return the home's folder, as the settings would."""
    place = os.path.expanduser(environment.get("COMMONPLACE_HOME") or "~/.commonplace")  # noqa: PTH111
    return place if os.path.isabs(place) else f"{os.getcwd()}/{place}"  # noqa: PTH109, PTH117


def reader(agent: str, *, notes: bool) -> str:
    """Return the name of the reader that an agent is, with or without leave to write notes."""
    return agent + (_NOTES if notes else "")


def stamp(path: str) -> Stamp:
    """Return the stamp of a path."""
    try:
        state = os.stat(path)
    except (OSError, ValueError):
        return None
    if state.st_mode & 0o170000 == 0o040000:
        return 1
    return [state.st_mtime_ns, state.st_size, state.st_ino]


def stamps(home: str) -> dict[str, Stamp]:
    """Return the stamps of everything in a home that a section depends on."""
    return {path: stamp(path) for path in (f"{home}/{name}" for name in _MADE_FROM)}


def read(home: str, folder: str, reader: str, environment: Mapping[str, str]) -> Section | None:
    """Return the section that is kept for a folder and a reader; None if there is none or it may be out of date."""
    kept = _load(home, folder, reader)
    if kept is None or not _is_for(kept, folder, environment):
        return None
    try:
        is_current = kept["version"] == __version__ and all(stamp(path) == was for path, was in kept["stamps"].items())
        return cast("Section", kept["section"]) if is_current else None
    except (KeyError, TypeError, AttributeError):
        return None


def best(home: str, folder: str, reader: str, environment: Mapping[str, str]) -> tuple[Section | None, bool]:
    """Return the best section for a folder that can be had at once, and whether it is exactly that of the folder."""
    section = read(home, folder, reader, environment)
    if section is not None:
        return section, True
    remote = remote_of(folder)
    section = read(home, remote, reader, environment) if remote is not None else None
    for key in (folder, remote, ANYWHERE):
        if section is None and key is not None:
            section = _outdated(home, key, reader, environment)
    return ({**section, "folder": folder} if section is not None else None), False


def _load(home: str, key: str, reader: str) -> dict[str, Any] | None:
    try:
        with open(_file(home, key, reader), "rb") as file:  # noqa: PTH123
            kept = json.loads(file.read())
    except (OSError, ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", kept) if isinstance(kept, dict) else None


def _is_for(kept: dict[str, Any], key: str, environment: Mapping[str, str]) -> bool:
    """Say whether a section was made for this folder as it is now, and with these variables."""
    real = os.path.realpath(key) if os.path.isabs(key) else key  # noqa: PTH117
    return kept.get("environment") == _environment(environment) and kept.get("real") == real


def _outdated(home: str, key: str, reader: str, environment: Mapping[str, str]) -> Section | None:
    """Return the section that was kept last, with the lessons that still stand in `MEMORY.md`; None if none serves."""
    kept = _load(home, key, reader)
    if kept is None or not _is_for(kept, key, environment):
        return None
    try:
        of_home = {f"{home}/{name}" for name in _MADE_FROM}
        if any(stamp(path) != was for path, was in kept["stamps"].items() if path not in of_home):
            return None  # the folder is in another repository now
        settings = f"{home}/{_SETTINGS}"
        if stamp(settings) != kept["stamps"][settings] and not _may_tell(settings):
            return None
        with open(f"{home}/{_MEMORY}", encoding="utf-8", errors="replace") as file:  # noqa: PTH123
            lines = {line: number for number, line in enumerate(file.read().split("\n"), 1)}
        return _still_true(cast("Section", kept["section"]), kept["lines"], lines)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _may_tell(settings: str) -> bool:
    """Say whether settings that changed still let agents be told."""
    import tomllib

    with open(settings, "rb") as file:  # noqa: PTH123
        tables = tomllib.load(file)
    told = [tables.get(name, {}) for name in ("memory", "memories")]
    return not any(table.get(name) is False for table in told for name in ("use", "use_memories"))


def _still_true(section: Section, was: Mapping[str, str], now: Mapping[str, int]) -> Section | None:
    """Return a section without the lessons that left `MEMORY.md`, and with the numbers that lines have now."""
    told: list[str] = []
    count = 0
    is_lesson = False
    for line in section["text"].split("\n"):
        if line.startswith("#"):
            is_lesson = line.endswith((", everywhere", ", this project"))
        if not (is_lesson and line.startswith("- ")):
            told.append(line)
            continue
        place, _, rest = line[2:].partition(" ")
        number = now.get(was.get(place, ""))
        if number is not None:
            told.append(f"- L{number} {rest}")
            count += 1
    if not count:
        return None
    return {**section, "text": "\n".join(told), "lessons": count, "ids": section["ids"] if count == len(was) else []}


def write(
    home: str, key: str, reader: str, environment: Mapping[str, str], noted: Mapping[str, Stamp], section: Section
) -> None:
    """Keep a section for a folder, a remote or `ANYWHERE`; `noted` are the stamps from before it was made.

    Where that is not possible, nothing is kept.
    """
    kept = {
        "version": __version__,
        "environment": _environment(environment),
        "real": os.path.realpath(key) if os.path.isabs(key) else key,  # noqa: PTH117
        "stamps": noted,
        "lines": _lines_told(home, section["text"]),
        "section": section,
    }
    with contextlib.suppress(OSError):
        _replace(_file(home, key, reader), json.dumps(kept).encode())
        _prune(f"{home}/{FOLDER}")


def _lines_told(home: str, text: str) -> dict[str, str]:
    """Return the lines of `MEMORY.md` that a section tells, by their places (`L12`)."""
    try:
        with open(f"{home}/{_MEMORY}", encoding="utf-8", errors="replace") as file:  # noqa: PTH123
            lines = file.read().split("\n")
    except OSError:
        return {}
    places = [line[2:].partition(" ")[0] for line in text.split("\n") if line.startswith("- L")]
    numbers = {place: int(place[1:]) for place in places if place[1:].isdecimal()}
    return {place: lines[number - 1] for place, number in numbers.items() if 0 < number <= len(lines)}


def folders(home: str) -> list[tuple[str, str]]:
    """Return the folders and readers that sections are kept for, the newest first."""
    found: list[tuple[float, str, str]] = []
    for path in _kept(f"{home}/{FOLDER}"):
        try:
            with open(path, "rb") as file:  # noqa: PTH123
                section = json.loads(file.read())["section"]
            found.append((os.stat(path).st_mtime, str(section["folder"]), str(section["reader"])))
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            continue
    return [(folder, reader) for _, folder, reader in sorted(found, reverse=True)]


def ids_of(home: str, folder: str) -> set[str]:
    """Return the lessons in the sections that are kept for a folder: its sessions were told them at their start."""
    found: set[str] = set()
    for path in _kept(f"{home}/{FOLDER}"):
        try:
            with open(path, "rb") as file:  # noqa: PTH123
                section = json.loads(file.read())["section"]
            found.update(map(str, section["ids"] if section["folder"] == folder else ()))
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            continue
    return found


def seen(home: str, session_id: str) -> set[str]:
    """Return the lessons that a session was told with its prompts."""
    try:
        with open(_seen_file(home, session_id), "rb") as file:  # noqa: PTH123
            return set(map(str, json.loads(file.read())))
    except (OSError, ValueError, TypeError, RecursionError):
        return set()


def add_seen(home: str, session_id: str, ids: Iterable[str]) -> None:
    """Note that a session was told some lessons."""
    with contextlib.suppress(OSError):
        _replace(_seen_file(home, session_id), json.dumps(sorted(seen(home, session_id) | set(ids))).encode())
        _prune(f"{home}/{FOLDER}", SEEN)


def clear(home: str) -> None:
    """Remove every section that is kept, and what was told; counts that nobody took are lost."""
    folder = f"{home}/{FOLDER}"
    for path in (*_kept(folder), *_kept(folder, SEEN), f"{folder}/{TOLD}"):
        with contextlib.suppress(OSError):
            os.unlink(path)  # noqa: PTH108


def append_told(home: str, line: Mapping[str, Any]) -> None:
    """Note what a hook told: `time`, `agent`, `folder`, `project`, `lessons`, `ids`."""
    with contextlib.suppress(OSError):
        _make(f"{home}/{FOLDER}")
        opened = os.open(f"{home}/{FOLDER}/{TOLD}", os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(opened, json.dumps(line).encode() + b"\n")
        finally:
            os.close(opened)


def take_told(home: str) -> list[dict[str, Any]]:
    """Return what hooks told since the last call; what each agent was told last stays known."""
    taken = f"{home}/{FOLDER}/{TOLD}.{os.getpid()}"
    try:
        os.rename(f"{home}/{FOLDER}/{TOLD}", taken)  # noqa: PTH104
    except OSError:
        return []
    lines = _told(taken)
    last = _last(home)
    for line in lines:
        last[str(line.get("agent"))] = {name: value for name, value in line.items() if name != "ids"}
    with contextlib.suppress(OSError):
        _replace(f"{home}/{FOLDER}/{LAST_TOLD}", json.dumps(last).encode())
        os.unlink(taken)  # noqa: PTH108
    return lines


def last_told(home: str) -> dict[str, dict[str, Any]]:
    """Return what each agent was told last, by the agent's name."""
    newer = {str(line.get("agent")): line for line in _told(f"{home}/{FOLDER}/{TOLD}")}
    return _last(home) | newer


def take_start(home: str, now: float, pause: float) -> bool:
    """Take the right to start learning from a hook now; return False if one was started a short while ago."""
    path = f"{home}/{FOLDER}/{STARTED}"
    try:
        if 0 <= now - os.stat(path).st_mtime < pause:
            return False
    except OSError:
        pass
    try:
        _make(f"{home}/{FOLDER}")
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
        os.utime(path, (now, now))
    except OSError:
        return False
    return True


def _file(home: str, folder: str, reader: str) -> str:
    name = hashlib.sha256(f"{reader}\0{folder}".encode("utf-8", "surrogateescape")).hexdigest()[:32]
    return f"{home}/{FOLDER}/{name}.json"


def _seen_file(home: str, session_id: str) -> str:
    return f"{home}/{FOLDER}/{hashlib.sha256(session_id.encode()).hexdigest()[:32]}{SEEN}"


def _environment(environment: Mapping[str, str]) -> str:
    """Return a digest of the variables that change settings."""
    said = sorted(
        f"{name}={value}"
        for name, value in environment.items()
        if name.startswith("COMMONPLACE_") and name not in _IGNORED
    )
    return hashlib.sha256("\0".join(said).encode("utf-8", "surrogateescape")).hexdigest()[:32]


def _kept(folder: str, ending: str = ".json") -> list[str]:
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    return [f"{folder}/{name}" for name in names if name.endswith(ending) and name != LAST_TOLD]


def _prune(folder: str, ending: str = ".json") -> None:
    kept = _kept(folder, ending)
    if len(kept) > MAX_SECTIONS:
        for path in sorted(kept, key=lambda each: os.stat(each).st_mtime)[: len(kept) - MAX_SECTIONS]:
            os.unlink(path)  # noqa: PTH108


def _told(path: str) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = []
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            data = file.read()
    except OSError:
        return lines
    for text in data.splitlines():
        with contextlib.suppress(ValueError, RecursionError):
            value = json.loads(text)
            if isinstance(value, dict):
                lines.append(cast("dict[str, Any]", value))
    return lines


def _last(home: str) -> dict[str, dict[str, Any]]:
    try:
        with open(f"{home}/{FOLDER}/{LAST_TOLD}", "rb") as file:  # noqa: PTH123
            value = json.loads(file.read())
    except (OSError, ValueError, RecursionError):
        return {}
    return cast("dict[str, dict[str, Any]]", value) if isinstance(value, dict) else {}


def _make(folder: str) -> None:
    if not os.path.isdir(folder):  # noqa: PTH112
        os.mkdir(folder, 0o700)  # noqa: PTH102


def _replace(path: str, data: bytes) -> None:
    _make(os.path.dirname(path))  # noqa: PTH120
    part = f"{path}.{os.getpid()}"
    opened = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        os.write(opened, data)
    finally:
        os.close(opened)
    os.replace(part, path)  # noqa: PTH105
