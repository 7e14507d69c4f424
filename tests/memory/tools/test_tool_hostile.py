"""Hostile requests and folders: an answer or a tool error each time, nothing from outside, nothing left open."""

from __future__ import annotations

import json
import os
import random
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any

import msgspec
import pytest

from commonplace.errors import ToolError
from commonplace.memory.recall.tools import Listing, MatchPage, MemoryFolder, Reading, Result, call
from commonplace.memory.recall.visibility import Visibility
from commonplace.memory.workspace.swap import exchange

CANARY = "canary-of-the-outside"
NUL = "\0"
PARTS = [
    "..", ".", "", "a.md", "sub", "deep", "linked", "leaf.md", "up", "loop", "pipe", "socket", "device", ".git",
    "bad.md", "root", "self", "outside", "secret.md", "MEMORY.md", "raw_memories.md", "memory_summary.md", "skills",
    "x", "SKILL.md", "rollout_summaries", "extensions", "ad_hoc", "notes", "~", "C:", "\\", "..\\..", "%2e%2e",
    "\u202e", "é", "e\u0301", "\ud800", "\udcff", "a" + NUL, NUL, "x" * 255, "x" * 256, "x" * 5000, "*", "?", "$HOME",
    "`id`", "\n", "\r", " ", "..;", "...", "‥", "／", "proc", "self", "fd", "0", "dev", "etc", "passwd", "-", "--", "d",
    "d/d/d/d/d/d/d/d",
]  # fmt: skip
TEXTS = [
    "", " ", "x", "needle", CANARY, "canary", "a" * 3000, NUL, "\n", "\r\n", "\x1c", "\ud83d", "İ", "Σ", "ß", "---",
    "½", "\u0301", "^(a+)+$", ".*", "\\", "%s%n", "{}", "𝒳", "\ufeff", "\u2028", "root:", "日本",
]  # fmt: skip
NUMBERS: list[Any] = [
    0, 1, 2, 3, 200, 2000, 2**31, 2**32, 2**53, 2**63, 2**64 - 1, 2**64, 10**30, -1, -(2**63), 1.0, 0.5, 1e308,
    float("inf"), float("nan"), True, False, None, "1", "", [], {}, "0x10",
]  # fmt: skip
CURSORS: list[Any] = ["0", "1", "+1", "-1", "", " 1", "9" * 30, "abc", None, 1, "١", NUL, "00", "18446744073709551615"]
NAMES = ["list", "read", "search", "search", "add_ad_hoc_note", "find", "", "LIST", "../list", "__init__"]
FIELDS = [
    "path", "cursor", "max_results", "line_offset", "max_lines", "queries", "match_mode", "context_lines",
    "case_sensitive", "normalized", "filename", "note", "query", "root", "__class__", "\udfff", "",
]  # fmt: skip
MODES: list[Any] = [
    {"type": "any"}, {"type": "all_on_same_line"}, {"type": "all_within_lines", "line_count": 2},
    {"type": "all_within_lines", "line_count": 2**64 - 1}, {"type": "all_within_lines", "line_count": 0},
    {"type": "all_within_lines"}, {"type": "none"}, {}, "any", None, [], 3, {"type": None},
    {"type": "any", "line_count": "x"},
]  # fmt: skip
GOOD = [
    "a.md", "sub", "sub/a.md", "MEMORY.md", "raw_memories.md", "memory_summary.md", "skills", "skills/x/SKILL.md",
    "rollout_summaries/a.md", "extensions", "", ".", "./sub/", "d/d/d", "new\nline.md",
]  # fmt: skip
SCOPES = [None, "example.org/acme/shop", "example.org/acme/blog", "", "global", "\0", "/"]


@pytest.fixture
def hostile(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with everything in it that does not belong there; a canary sits in whatever is outside."""
    outside = tmp_path / "outside"
    outside.mkdir()
    for name in ("secret.md", "a.md", "MEMORY.md"):
        (outside / name).write_text(f"{CANARY}\nneedle\n")
    (tmp_path / "secret.md").write_text(CANARY)
    (root.parent / "secret.md").write_text(CANARY)
    for name in ("sub", "skills/x", "rollout_summaries", "extensions/ad_hoc/notes", ".git"):
        (root / name).mkdir(parents=True)
    (root / ".git" / "config").write_text(CANARY)
    (root / ".hidden.md").write_text(CANARY)
    (root / "a.md").write_text("needle\nx\nNeedle Σ İ ß ½\r\n\n" * 3)
    (root / "sub" / "a.md").write_text("x" * 200_000)
    (root / "MEMORY.md").write_text("# Task Group: s\nscope: project example.org/acme/shop\n\n- needle\n" * 3)
    (root / "raw_memories.md").write_text("## Thread `x`\ncwd: /x\n\nneedle\n" * 5)
    (root / "memory_summary.md").write_text("v1\n## What's in Memory\n### example.org/acme/shop\nneedle\n")
    (root / "rollout_summaries" / "a.md").write_text('thread_id: x\ncwd: "\\ud800"\n\nneedle\n')
    (root / "skills" / "x" / "SKILL.md").write_text("---\nscope: project a/b\n---\nneedle\n")
    (root / "bad.md").write_bytes(b"needle \xff\xfe\n")
    for name, goal in (
        ("linked", outside), ("leaf.md", outside / "secret.md"), ("up", ".."), ("loop", "loop"), ("self", "."),
        ("root", "/"), ("gone", "nowhere"), ("sub/linked", outside), ("fd", "/proc/self/fd"),
    ):  # fmt: skip
        (root / name).symlink_to(goal)
    os.mkfifo(root / "pipe")
    os.mkfifo(root / "sub" / "pipe.md")
    monkeypatch.chdir(root)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
    if os.geteuid() == 0:
        try:
            os.mknod(root / "device", 0o600 | 0o020000, os.makedev(1, 5))  # endless zeroes
        except OSError:
            (root / "device").touch()
    for name in (b"\xff\xfe.md", b"sub/\x80", b"new\nline.md", b"\x1b[31m.md"):
        Path(os.fsdecode(os.fsencode(root) + b"/" + name)).write_text("needle\n")
    here = os.open(root, os.O_RDONLY)
    for _ in range(300):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    return root


def mild(draw: random.Random) -> tuple[str, dict[str, Any]]:
    """Return a call that nothing is wrong with, as far as its shape goes."""
    path = draw.choice(GOOD)
    most = draw.choice([None, 0, 1, 3, 2**64 - 1])
    if draw.random() < 0.3:
        return draw.choice(
            [("list", {"path": path, "max_results": most}), ("read", {"path": path, "max_lines": most or 1})]
        )
    arguments = {
        "queries": draw.choices(["needle", "NEEDLE", "x", CANARY, "Σ", "canary", "-"], k=draw.choice([1, 2, 3])),
        "path": draw.choice([path, None]),
        "max_results": most,
        "context_lines": draw.choice([None, 1, 2**64 - 1]),
        "case_sensitive": draw.choice([None, True, False]),
        "normalized": draw.choice([None, True, False]),
        "match_mode": draw.choice(MODES[:4]),
    }
    return "search", arguments


def request(draw: random.Random) -> tuple[str, Any]:
    """Return a tool's name and arguments, some of them good."""
    if draw.random() < 0.3:
        return mild(draw)
    name = draw.choice(NAMES)
    path = (
        draw.choice(GOOD) if draw.random() < 0.4 else "/".join(draw.choices(PARTS, k=draw.choice([1, 1, 2, 2, 3, 5])))
    )
    good: dict[str, dict[str, Any]] = {
        "list": {"path": path},
        "read": {"path": path},
        "search": {"queries": draw.choices(TEXTS, k=draw.choice([1, 1, 2, 3])), "path": draw.choice([path, None])},
        "add_ad_hoc_note": {"filename": draw.choice([path, f"2026-11-15T10-20-30-{path}.md"]), "note": "needle"},
    }
    arguments = dict(good.get(name, {}))
    values: dict[str, list[Any]] = {
        "cursor": CURSORS, "match_mode": MODES, "path": [*PARTS, None, 1], "queries": [TEXTS, [], None, "x", [[]]],
        "note": [text for text in TEXTS if "canary" not in text], "filename": PARTS,
    }  # fmt: skip
    for field in draw.sample(FIELDS, k=draw.choice([0, 0, 1, 1, 2, 4])):
        if field in ("max_results", "cursor", "context_lines", "case_sensitive", "normalized", "match_mode") or (
            draw.random() < 0.2
        ):
            arguments[field] = draw.choice(values.get(field, NUMBERS))
    shape = draw.random()
    if shape < 0.15:
        text = json.dumps(arguments)
        return name, text if shape < 0.08 else text.encode()
    if shape < 0.2:
        text = json.dumps(arguments)
        cut = draw.randrange(len(text) + 1)
        return name, text[:cut] + draw.choice(["", "}", "[" * 3000, '{"a":' * 2000, "\ud800"]) + text[cut + 1 :]
    return name, arguments


def given_away(result: Result) -> str:
    """Return what an answer holds besides what was asked."""
    match result:
        case Listing():
            return " ".join(entry.path for entry in result.entries)
        case Reading():
            return result.content
        case MatchPage():
            return " ".join(f"{match.path} {match.content}" for match in result.matches)
        case _:
            return ""


def attack(root: Path, calls: int, seed: int) -> tuple[int, int]:
    """Call the tools; return how many answered and how many refused."""
    draw = random.Random(seed)
    folder = MemoryFolder(root)
    answered = refused = 0
    for _ in range(calls):
        name, arguments = request(draw)
        view = Visibility(draw.choice(SCOPES), draw.choice([lambda cwd: None, lambda cwd: cwd]))
        try:
            result = call(folder, name, arguments, view)
            assert msgspec.json.encode(result)
            text = given_away(result)
            answered += 1
        except ToolError as error:
            text = error.sentence()
            refused += 1
        assert b"canary" not in text.encode(), (name, arguments)
    return answered, refused


@contextmanager
def nothing_left_open() -> Generator[None]:
    before = sorted(os.listdir("/proc/self/fd"))
    yield
    assert sorted(os.listdir("/proc/self/fd")) == before


def test_thousands_of_hostile_calls_give_an_answer_or_a_tool_error(hostile: Path) -> None:
    with nothing_left_open():
        answered, refused = attack(hostile, 3000, 7)

    assert answered > 500
    assert refused > 500


@pytest.mark.soak
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("seed", range(4))
def test_a_hundred_thousand_hostile_calls_give_an_answer_or_a_tool_error(hostile: Path, seed: int) -> None:
    with nothing_left_open():
        answered, refused = attack(hostile, 30_000, seed)

    assert answered + refused == 30_000


# The race: a folder and a link to another one change places all the time.

SWAPPER = """
import sys
from pathlib import Path
from commonplace.memory.workspace.swap import exchange
one, other = Path(sys.argv[1]), Path(sys.argv[2])
print("begun", flush=True)
while True:
    exchange(one, other)
"""


@pytest.fixture
def contested(root: Path, tmp_path: Path) -> Path:
    outside = tmp_path / "outside"
    outside.mkdir()
    for number in range(20):
        (outside / f"{number}.md").write_text(f"{CANARY}\nneedle\n")
    (root / "sub").mkdir()
    for number in range(20):
        (root / "sub" / f"{number}.md").write_text("inside\nneedle\n")
    (root / "a.md").write_text("inside\nneedle\n")
    (root / "other").symlink_to(outside)
    (root / "leaf.md").symlink_to(outside / "0.md")
    if not exchange(root / "sub", root / "other"):
        pytest.skip("this system cannot exchange two names")
    return root


REQUESTS: list[tuple[str, dict[str, Any]]] = [
    ("read", {"path": "sub/3.md"}),
    ("read", {"path": "a.md"}),
    ("list", {"path": "sub"}),
    ("list", {}),
    ("search", {"queries": ["needle"], "context_lines": 3}),
    ("search", {"queries": ["NEEDLE"], "context_lines": 3, "path": "sub", "case_sensitive": False}),
    ("search", {"queries": ["needle"], "path": "sub/5.md", "context_lines": 3}),
]


def contest(root: Path, going_on: Callable[[int], bool]) -> dict[str, int]:
    """Ask while others swap; return how often what came back."""
    folder, seen, turn = MemoryFolder(root), dict[str, int](), 0
    while going_on(turn):
        name, arguments = REQUESTS[turn % len(REQUESTS)]
        turn += 1
        try:
            text = msgspec.json.encode(call(folder, name, arguments, Visibility())).decode()
            seen["answered"] = seen.get("answered", 0) + 1
        except ToolError as error:
            text = error.message
            seen[error.kind] = seen.get(error.kind, 0) + 1
        assert CANARY not in text, (name, arguments)
    return seen


@contextmanager
def swapping(*pairs: tuple[Path, Path]) -> Generator[None]:
    """Let processes exchange names until the end."""
    running = [
        subprocess.Popen([sys.executable, "-c", SWAPPER, str(one), str(other)], stdout=subprocess.PIPE)
        for one, other in pairs
    ]
    try:
        for each in running:
            assert each.stdout is not None
            assert each.stdout.readline() == b"begun\n"
        yield
    finally:
        for each in running:
            each.kill()
            each.wait()
            assert each.stdout is not None
            each.stdout.close()


def test_swapping_a_folder_for_a_link_gains_nothing(contested: Path) -> None:
    with (
        nothing_left_open(),
        swapping((contested / "sub", contested / "other"), (contested / "a.md", contested / "leaf.md")),
    ):
        seen = contest(contested, lambda turn: turn < 1500)

    assert sum(seen.values()) == 1500
    assert seen["answered"] > 0


def test_swapping_in_a_thread_gains_nothing(contested: Path) -> None:
    done = threading.Event()

    def swap() -> None:
        while not done.is_set():
            exchange(contested / "sub", contested / "other")

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        seen = contest(contested, lambda turn: turn < 200)
    finally:
        done.set()
        thread.join()

    assert sum(seen.values()) == 200


@pytest.mark.soak
def test_swapping_for_ten_seconds_gains_nothing(contested: Path) -> None:
    with (
        nothing_left_open(),
        swapping((contested / "sub", contested / "other"), (contested / "a.md", contested / "leaf.md")),
    ):
        end = monotonic() + 10
        seen = contest(contested, lambda _: monotonic() < end)

    assert seen["answered"] > 0
    assert seen["invalid_path"] > 0


def test_the_folders_of_notes_cannot_be_swapped_either(root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (outside / "notes").mkdir(parents=True)
    (root / "extensions" / "ad_hoc").mkdir(parents=True)
    (root / "extensions" / "other").symlink_to(outside)
    if not exchange(root / "extensions" / "ad_hoc", root / "extensions" / "other"):
        pytest.skip("this system cannot exchange two names")
    folder = MemoryFolder(root)
    with swapping((root / "extensions" / "ad_hoc", root / "extensions" / "other")):
        for number in range(60):
            try:
                name = f"2026-11-15T10-20-30-{number}.md"
                call(folder, "add_ad_hoc_note", {"filename": name, "note": "x"}, Visibility())
            except ToolError as error:
                assert error.kind == "invalid_path"  # noqa: PT017

    assert list((outside / "notes").iterdir()) == []
