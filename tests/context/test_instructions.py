"""AGENTS.md: which files speak, in which order, how much of them, and what the receipt says about the rest."""

from __future__ import annotations

import errno
import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.context import instructions, regular_files
from commonplace.context.instructions import (
    GlobalInstructions,
    Instructions,
    InstructionSettings,
    WorkEnvironment,
    discover,
    read_global,
)
from commonplace.context.notices import notice
from commonplace.protocol import fragments


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a root, a folder in it, and a folder in that."""
    root = tmp_path / "project"
    (root / "pkg" / "deep").mkdir(parents=True)
    (root / ".git").mkdir()
    return root


def put(folder: Path, files: dict[str, str | bytes]) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def found(
    cwd: Path, settings: InstructionSettings | None = None, own: GlobalInstructions | None = None
) -> Instructions:
    return discover(own or GlobalInstructions(), [WorkEnvironment(cwd=str(cwd))], settings)


def reasons(result: Instructions, below: Path) -> dict[str, str]:
    return {os.path.relpath(passed.path, below): passed.reason for passed in result.receipt.passed}


# --- The global file.


@pytest.mark.parametrize(
    ("files", "text"),
    [
        ({}, ""),
        ({"AGENTS.md": "own\n"}, "own"),
        ({"AGENTS.md": "own", "AGENTS.override.md": "over"}, "over"),
        ({"AGENTS.md": "own", "AGENTS.override.md": " \n\t"}, "own"),
        ({"AGENTS.md": "\n  own  \n\n"}, "own"),
        ({"AGENTS.md": "  \n"}, ""),
        ({"AGENTS.md": b"caf\xff\xe2\x82 x"}, "caf\ufffd\ufffd x"),
        ({"AGENTS.md": "own", "AGENTS.override.md/inside": "a folder"}, "own"),
    ],
)
def test_the_first_global_file_with_something_in_it_wins(
    tmp_path: Path, files: dict[str, str | bytes], text: str
) -> None:
    put(tmp_path, files)

    assert text == read_global(tmp_path).text


def test_without_a_home_there_are_no_global_instructions(tmp_path: Path) -> None:
    assert GlobalInstructions() == read_global(None)
    assert GlobalInstructions() == read_global(tmp_path / "nowhere")


def test_the_global_file_is_not_part_of_the_project_budget(tmp_path: Path, project: Path) -> None:
    put(tmp_path, {"AGENTS.md": "g" * 50_000})
    put(project, {"AGENTS.md": "p" * 40_000})

    result = found(project, own=read_global(tmp_path))

    assert result.text.startswith("g" * 50_000 + "\n\n--- project-doc ---\n\n" + "p" * 32_768)
    assert (32_768, 32_768) == (result.receipt.budget, result.receipt.used)


def test_a_global_file_of_absurd_size_is_bounded_and_the_receipt_says_so(tmp_path: Path) -> None:
    with (tmp_path / "AGENTS.md").open("wb") as file:
        file.write(b"begin ")
        file.truncate(2**40)

    own = read_global(tmp_path)

    assert instructions.GLOBAL_BYTES == own.sources[0].bytes
    assert 2**40 - instructions.GLOBAL_BYTES == own.sources[0].cut


# --- The root, and the way down from it.


@pytest.mark.parametrize(
    ("markers", "standing", "folders"),
    [
        ((".git",), [".git"], [".", "pkg", "pkg/deep"]),
        ((".git",), ["pkg/.git"], ["pkg", "pkg/deep"]),
        ((".git",), [".git", "pkg/deep/.git"], ["pkg/deep"]),
        ((".git",), [], ["pkg/deep"]),
        ((), [".git"], ["pkg/deep"]),
        (("setup.cfg", ".hg"), [".hg"], [".", "pkg", "pkg/deep"]),
        (("setup.cfg", ".hg"), [".hg", "pkg/setup.cfg"], ["pkg", "pkg/deep"]),
        (("setup.cfg",), [".git"], ["pkg/deep"]),
        (("", "a\0b"), [".git"], ["pkg/deep"]),
    ],
)
def test_the_root_is_the_nearest_folder_with_a_marker(
    tmp_path: Path, markers: tuple[str, ...], standing: list[str], folders: list[str]
) -> None:
    deep = tmp_path / "pkg" / "deep"
    deep.mkdir(parents=True)
    for name in standing:
        (tmp_path / name).write_text("a marker may be a file or a folder")

    assert [tmp_path / name for name in folders] == instructions.folders(deep, markers)


def test_files_are_joined_from_the_root_down_and_the_rest_is_not_looked_at(tmp_path: Path, project: Path) -> None:
    put(tmp_path, {"AGENTS.md": "above"})
    put(project, {"AGENTS.md": "root\n", "pkg/AGENTS.md": "pkg", "pkg/deep/AGENTS.md": "deep", "beside/AGENTS.md": "x"})

    assert "root\n\n\npkg" == found(project / "pkg").text
    assert "root\n\n\npkg\n\ndeep" == found(project / "pkg" / "deep").text


def test_the_way_down_follows_the_path_as_it_was_given(tmp_path: Path, project: Path) -> None:
    put(tmp_path, {"elsewhere/AGENTS.md": "real parent", "elsewhere/in/AGENTS.md": "inside"})
    put(project, {"AGENTS.md": "root"})
    (project / "link").symlink_to(tmp_path / "elsewhere" / "in")

    result = found(project / "link")

    assert "root\n\ninside" == result.text
    assert str(project / "link") == result.directory


def test_dots_in_the_working_directory_are_taken_out_by_their_words(project: Path) -> None:
    put(project, {"AGENTS.md": "root"})

    assert str(project) == found(project / "pkg" / "..").directory


# --- One file for each folder.


@pytest.mark.parametrize(
    ("files", "more", "text"),
    [
        ({"AGENTS.md": "a"}, (), "a"),
        ({"AGENTS.md": "a", "AGENTS.override.md": "o"}, (), "o"),
        ({"AGENTS.md": "a", "AGENTS.override.md/x": ""}, (), "a"),
        ({"AGENTS.md/x": "", "CLAUDE.md": "c"}, ("CLAUDE.md",), "c"),
        ({"AGENTS.md": "a", "CLAUDE.md": "c"}, ("CLAUDE.md",), "a"),
        ({"CLAUDE.md": "c", "README.md": "r"}, ("README.md", "CLAUDE.md"), "r"),
        ({"CLAUDE.md": "c"}, ("", "CLAUDE.md", "CLAUDE.md"), "c"),
        ({"docs/AGENTS.md": "d"}, ("docs/AGENTS.md",), "d"),
        ({"CLAUDE.md": "c"}, (), ""),
        ({"AGENTS.md": "a", "AGENTS.override.md": " \n"}, (), ""),
    ],
)
def test_each_folder_has_one_file_by_the_order_of_names(
    project: Path, files: dict[str, str | bytes], more: tuple[str, ...], text: str
) -> None:
    put(project, files)

    assert text == found(project, InstructionSettings(project_doc_fallback_filenames=more)).text


def test_a_name_that_leads_out_of_its_folder_is_passed_over(tmp_path: Path, project: Path) -> None:
    put(tmp_path, {"secret": "s"})
    names = ("../secret", str(tmp_path / "secret"), "a\0b")

    result = found(project, InstructionSettings(project_doc_fallback_filenames=names))

    assert "" == result.text
    assert [(name, "bad_name") for name in names] == [(p.path, p.reason) for p in result.receipt.passed]


def test_a_link_to_a_file_is_followed_and_the_receipt_says_where(project: Path) -> None:
    put(project, {"RULES.md": "linked"})
    (project / "AGENTS.md").symlink_to("RULES.md")

    result = found(project)

    assert "linked" == result.text
    assert str(project / "RULES.md") == result.receipt.sources[0].target


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


def make_pipe_link(path: Path) -> None:
    os.mkfifo(path.with_suffix(".pipe"))
    path.symlink_to(path.with_suffix(".pipe"))


def make_device_link(path: Path) -> None:
    path.symlink_to("/dev/zero")


def make_broken_link(path: Path) -> None:
    path.symlink_to("nowhere")


def make_circle(path: Path) -> None:
    path.symlink_to(path.name)


def make_blank(path: Path) -> None:
    path.write_text(" \n\t\u3000")


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (Path.mkdir, "not_a_file"),
        (make_pipe, "not_a_file"),
        (make_pipe_link, "not_a_file"),
        (make_device_link, "not_a_file"),
        (make_broken_link, "broken_link"),
        (make_circle, "broken_link"),
        (make_blank, "blank"),
    ],
)
def test_what_is_no_file_with_words_is_passed_over_without_waiting(
    project: Path, make: Callable[[Path], None], reason: str
) -> None:
    make(project / "AGENTS.md")
    put(project, {"pkg/AGENTS.md": "pkg"})

    result = found(project / "pkg")

    assert "pkg" == result.text
    assert {"AGENTS.md": reason} == reasons(result, project)


def test_a_file_that_may_not_be_read_is_named_in_the_receipt(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(project, {"AGENTS.md": "a", "pkg/AGENTS.md": "pkg"})
    real = os.open

    def refuse(path: Any, *more: Any, **named: Any) -> int:
        if path == project / "AGENTS.md":
            raise PermissionError(errno.EACCES, "Permission denied")
        return real(path, *more, **named)

    monkeypatch.setattr(os, "open", refuse)
    result = found(project / "pkg")

    assert "pkg" == result.text
    assert {"AGENTS.md": "unreadable"} == reasons(result, project)


def test_a_file_that_vanishes_after_it_was_found_is_skipped(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(project, {"AGENTS.md": "a", "pkg/AGENTS.md": "pkg"})
    real = regular_files.read

    def read(path: Path, limit: int) -> regular_files.FilePrefix | regular_files.ReadRefused:
        if path.parent == project:
            path.unlink()
        return real(path, limit)

    monkeypatch.setattr(regular_files, "read", read)
    result = found(project / "pkg")

    assert "pkg" == result.text
    assert {"AGENTS.md": "missing"} == reasons(result, project)


def test_a_file_that_becomes_a_pipe_after_it_was_looked_at_does_not_block(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(project, {"AGENTS.md": "a"})
    path, real = project / "AGENTS.md", os.stat
    before = path.stat()
    path.unlink()
    make_pipe(path)

    def late(name: Any, **more: Any) -> os.stat_result:
        return before if name == path else real(name, **more)

    monkeypatch.setattr(os, "stat", late)

    assert regular_files.ReadRefused("not_a_file") == regular_files.read(path, 100)


# --- The budget.


@pytest.mark.parametrize(
    ("budget", "text", "cuts", "over"),
    [
        (100, "0123456\n\n\nééé\n\ndeep", {"": 0, "pkg": 0, "pkg/deep": 0}, []),
        (18, "0123456\n\n\nééé\n\ndeep", {"": 0, "pkg": 0, "pkg/deep": 0}, []),
        (16, "0123456\n\n\nééé\n\nde", {"": 0, "pkg": 0, "pkg/deep": 2}, []),
        (14, "0123456\n\n\nééé", {"": 0, "pkg": 0}, ["pkg/deep"]),
        (13, "0123456\n\n\néé\ufffd", {"": 0, "pkg": 1}, ["pkg/deep"]),
        (8, "0123456\n", {"": 0}, ["pkg", "pkg/deep"]),
        (3, "012", {"": 5}, ["pkg", "pkg/deep"]),
        (0, "", {}, []),
        (-1, "", {}, []),
    ],
)
def test_project_files_share_one_budget_of_bytes(
    project: Path, budget: int, text: str, cuts: dict[str, int], over: list[str]
) -> None:
    put(project, {"AGENTS.md": "0123456\n", "pkg/AGENTS.md": "ééé", "pkg/deep/AGENTS.md": "deep"})

    result = found(project / "pkg" / "deep", InstructionSettings(project_doc_max_bytes=budget))

    assert text == result.text
    assert {str(project / name / "AGENTS.md"): cut for name, cut in cuts.items()} == {
        source.path: source.cut for source in result.receipt.sources
    }
    assert {f"{name}/AGENTS.md": "over_budget" for name in over} == reasons(result, project)
    assert max(0, budget) == result.receipt.budget


def test_a_file_that_the_budget_left_out_is_named_with_its_size(project: Path) -> None:
    put(project, {"AGENTS.md": "0123", "pkg/AGENTS.md": "not read", "pkg/deep/AGENTS.md": ""})

    passed = found(project / "pkg" / "deep", InstructionSettings(project_doc_max_bytes=4)).receipt.passed

    assert [("over_budget", "8 bytes"), ("blank", "")] == [(one.reason, one.detail) for one in passed]


def test_a_blank_file_costs_nothing(project: Path) -> None:
    put(project, {"AGENTS.md": " " * 10, "pkg/AGENTS.md": "0123456789"})

    result = found(project / "pkg", InstructionSettings(project_doc_max_bytes=10))

    assert "0123456789" == result.text
    assert 10 == result.receipt.used


def test_the_receipt_holds_hash_and_bytes_of_what_was_used(project: Path) -> None:
    put(project, {"AGENTS.md": "0123456789"})

    (source,) = found(project, InstructionSettings(project_doc_max_bytes=4)).receipt.sources

    assert (hashlib.sha256(b"0123").hexdigest(), 4, 6) == (source.sha256, source.bytes, source.cut)
    assert "local" == source.place


def test_a_huge_file_is_read_only_up_to_the_budget(project: Path) -> None:
    with (project / "AGENTS.md").open("wb") as file:
        file.write(b"words")
        file.truncate(2**40)

    (source,) = found(project).receipt.sources

    assert (32_768, 2**40 - 32_768) == (source.bytes, source.cut)


@given(
    files=st.lists(st.binary(max_size=60), min_size=1, max_size=4),
    budget=st.integers(0, 120),
)
def test_whatever_files_hold_the_budget_is_kept_and_every_file_is_accounted_for(
    files: list[bytes], budget: int
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / ".git").mkdir()
        for number, content in enumerate(files):
            folder = folder / f"f{number}" if number else folder
            folder.mkdir(exist_ok=True)
            (folder / "AGENTS.md").write_bytes(content)
        result = found(folder, InstructionSettings(project_doc_max_bytes=budget))

    receipt = result.receipt
    assert sum(source.bytes for source in receipt.sources) == receipt.used <= budget
    whole = [content for content in files if content.decode("utf-8", "replace").strip()]
    if budget > 0:
        assert len(files) == len(receipt.sources) + len(receipt.passed)
        if sum(map(len, whole)) <= budget:
            assert "\n\n".join(content.decode("utf-8", "replace") for content in whole) == result.text
    result.text.encode()


# --- Trust, several environments, the explanation of scope.


@pytest.mark.parametrize(("trust", "text"), [("trusted", "root"), (None, "root"), ("untrusted", "")])
def test_an_untrusted_project_has_no_say(project: Path, trust: instructions.Trust | None, text: str) -> None:
    put(project, {"AGENTS.md": "root"})

    result = discover(GlobalInstructions(), [WorkEnvironment(cwd=str(project), trust=trust)])

    assert text == result.text
    assert (trust == "untrusted") == (reasons(result, project) == {".": "untrusted"})


def test_global_instructions_hold_in_an_untrusted_project(tmp_path: Path, project: Path) -> None:
    put(tmp_path, {"AGENTS.md": "own"})
    put(project, {"AGENTS.md": "root"})

    result = discover(read_global(tmp_path), [WorkEnvironment(cwd=str(project), trust="untrusted")])

    assert ("own", None) == (result.text, result.directory)


def test_several_environments_are_labelled_in_their_order_and_share_the_budget(tmp_path: Path) -> None:
    for name in ("one", "two", "none"):
        (tmp_path / name).mkdir()
    put(tmp_path, {"one/AGENTS.md": "first", "two/AGENTS.md": "second"})
    places = [WorkEnvironment(id=name, cwd=str(tmp_path / name)) for name in ("two", "none", "one")]
    settings = InstructionSettings(project_doc_max_bytes=8)

    result = discover(GlobalInstructions("own"), places, settings)

    expected = (
        f"own\n\nfor `two` with root {tmp_path / 'two'}\n\nsecond\n\nfor `one` with root {tmp_path / 'one'}\n\nfi"
    )
    assert (expected, None) == (result.text, result.directory)
    assert ["two", "one"] == [source.place for source in result.receipt.sources]


def test_one_of_several_environments_that_contributes_is_told_as_the_only_one(tmp_path: Path) -> None:
    put(tmp_path, {"one/AGENTS.md": "first", "two/x": ""})
    places = [WorkEnvironment(id=name, cwd=str(tmp_path / name)) for name in ("two", "one")]

    result = discover(GlobalInstructions("own"), places)

    assert ("own\n\n--- project-doc ---\n\nfirst", str(tmp_path / "one")) == (result.text, result.directory)


@pytest.mark.parametrize(
    ("files", "own", "trust", "budget", "begins"),
    [
        ({"AGENTS.md": "root"}, "", None, 100, "root\n\n"),
        ({"AGENTS.md": "root"}, "own", None, 100, "own\n\n--- project-doc ---\n\nroot\n\n"),
        ({}, "", None, 100, ""),
        ({}, "own", None, 100, "own\n\n"),
        ({"AGENTS.md": "root"}, "own", "untrusted", 100, None),
        ({"AGENTS.md": "root"}, "own", None, 0, None),
    ],
)
def test_the_reach_of_files_is_explained_after_them_where_projects_have_a_say(
    project: Path,
    files: dict[str, str | bytes],
    own: str,
    trust: instructions.Trust | None,
    budget: int,
    begins: str | None,
) -> None:
    put(project, files)
    settings = InstructionSettings(child_agents_md=True, project_doc_max_bytes=budget)

    result = discover(GlobalInstructions(own), [WorkEnvironment(cwd=str(project), trust=trust)], settings)

    assert (own if begins is None else begins + notice("agents_scope")) == result.text


def test_a_folder_whose_name_is_no_text_can_still_be_told(tmp_path: Path) -> None:
    folder = os.fsencode(tmp_path) + b"/odd\xff"
    os.mkdir(folder)  # noqa: PTH102
    Path(os.fsdecode(folder), "AGENTS.md").write_text("odd")

    result = found(Path(os.fsdecode(folder)))

    assert f"{tmp_path}/odd\ufffd" == result.directory
    assert "odd" == result.text


# --- The form.


@pytest.mark.parametrize(
    ("text", "directory", "expected"),
    [
        ("Rule.\n", "/repo", "# AGENTS.md instructions for /repo\n\n<INSTRUCTIONS>\nRule.\n\n</INSTRUCTIONS>"),
        ("Rule.", None, "# AGENTS.md instructions\n\n<INSTRUCTIONS>\nRule.\n</INSTRUCTIONS>"),
    ],
)
def test_instructions_have_the_form_that_readers_recognise(text: str, directory: str | None, expected: str) -> None:
    block = instructions.block(text, directory)

    assert ("user", expected, "agents_md.instructions") == (block.role, block.text, block.kind)


@pytest.mark.parametrize(
    "block",
    [instructions.block("x", "/r"), instructions.replacement_block("x", None), instructions.removal_notice()],
)
def test_every_form_is_recognised_as_injected(block: instructions.InjectedText) -> None:
    fragment = fragments.recognise(block.text, block.role)

    assert fragment is not None
    assert "agents_md" == fragment.name
