"""Which paths the tools take, and what they say of the others (spec §1.2)."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from commonplace.errors import BadInput, ToolError
from commonplace.memory.recall.tools import MemoryFolder, call
from commonplace.memory.recall.visibility import Visibility

TOOLS: tuple[tuple[str, dict[str, Any]], ...] = (("list", {}), ("read", {}), ("search", {"queries": ["x"]}))


@pytest.fixture(params=TOOLS, ids=[name for name, _ in TOOLS])
def refused(request: pytest.FixtureRequest, folder: MemoryFolder) -> Callable[[str], ToolError]:
    """Ask each of the tools for a path that it must refuse."""
    name, more = request.param

    def asked(path: str) -> ToolError:
        with pytest.raises(ToolError) as caught:
            call(folder, name, {"path": path, **more}, Visibility())
        return caught.value

    return asked


@pytest.mark.parametrize(
    "path",
    [
        "..",
        "../x",
        "a/../b",
        "a/..",
        "./..",
        "/",
        "/etc/passwd",
        "//x",
        "a/b/../../c",
        "../.git",
        ".hidden/../x",
        "a//..",
    ],
)
def test_a_path_that_leads_out_is_refused_by_its_spelling(
    root: Path, refused: Callable[[str], ToolError], path: str
) -> None:
    (root / "a").mkdir()
    error = refused(path)

    assert error.kind == "invalid_path"
    assert error.message == f"path '{path}' must stay within the memories root"


@pytest.mark.parametrize("path", [".git", ".git/config", "skills/.x/y", ".x.md", "./.x", "...", "..x", "a/.b/c", ".\0"])
def test_a_hidden_name_is_not_found_though_it_is_there(
    root: Path, refused: Callable[[str], ToolError], path: str
) -> None:
    for place in (".git", "skills/.x", "a/.b"):
        (root / place).mkdir(parents=True)
    for file in (".git/config", "skills/.x/y", ".x.md", "...", "..x", "a/.b/c"):
        (root / file).write_text("x\n")
    error = refused(path)

    assert (error.kind, error.message) == ("not_found", f"path '{path}' was not found")


@pytest.mark.parametrize("path", ["gone", "gone/x.md", "a/gone", "a/gone/deeper/still", "back\\slash", "A"])
def test_what_is_missing_is_not_found(root: Path, refused: Callable[[str], ToolError], path: str) -> None:
    (root / "a").mkdir()
    error = refused(path)

    assert (error.kind, error.message) == ("not_found", f"path '{path}' was not found")


def test_a_link_at_the_end_is_named(root: Path, tmp_path: Path, refused: Callable[[str], ToolError]) -> None:
    outside = tmp_path / "outside.md"
    outside.write_text("x\n")
    (root / "sub").mkdir()
    (root / "sub" / "linked.md").symlink_to(outside)
    error = refused("./sub//linked.md")

    assert (error.kind, error.message) == ("invalid_path", "path 'sub/linked.md' must not be a symlink")


def test_a_link_on_the_way_is_named_and_not_the_request(
    root: Path, tmp_path: Path, refused: Callable[[str], ToolError]
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "x.md").write_text("x\n")
    (root / "linked").symlink_to(outside)
    error = refused("linked/x.md")

    assert (error.kind, error.message) == ("invalid_path", "path 'linked' must not be a symlink")


def test_a_link_to_itself_and_a_link_to_nothing_are_links(root: Path, refused: Callable[[str], ToolError]) -> None:
    (root / "loop").symlink_to("loop")
    (root / "nowhere").symlink_to("gone")

    assert refused("loop").message == "path 'loop' must not be a symlink"
    assert refused("loop/x").message == "path 'loop' must not be a symlink"
    assert refused("nowhere").message == "path 'nowhere' must not be a symlink"


def test_a_file_on_the_way_is_told_with_the_request(root: Path, refused: Callable[[str], ToolError]) -> None:
    (root / "file.md").write_text("x\n")
    os.mkfifo(root / "pipe")

    for path in ("file.md/x", "pipe/x/y"):
        error = refused(path)
        assert error.kind == "invalid_path"
        assert error.message == f"path '{path}' traverses through a non-directory component"


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("a\0b", "invalid_path"),
        ("\0", "invalid_path"),
        ("n" * 256, "io"),
        ("n" * 5000 + "/x", "io"),
        ("é" * 200, "io"),
        ("\ud800", "bad_arguments"),
        ("a/\udcff.md", "bad_arguments"),
    ],
)
def test_a_name_that_no_file_can_have_is_an_error(
    root: Path, refused: Callable[[str], ToolError], path: str, kind: str
) -> None:
    error = refused(path)

    assert error.kind == kind
    assert error.sentence().encode()


def test_a_very_long_path_is_not_repeated_as_a_whole(refused: Callable[[str], ToolError]) -> None:
    assert len(refused("../" + "x" * 10**6).message) < 2000


@pytest.mark.parametrize("path", ["sub/a.md", "./sub/a.md", "sub//a.md", "sub/./a.md", "sub/a.md/", ".//sub/a.md/."])
def test_spellings_of_one_path_lead_to_one_file_and_are_given_back_as_they_came(
    root: Path, ask: Callable[..., Any], path: str
) -> None:
    (root / "sub").mkdir()
    (root / "sub" / "a.md").write_text("needle\n")

    listed, read, found = ask("list", path=path), ask("read", path=path), ask("search", path=path, queries=["needle"])
    assert [listed["path"], read["path"], found["path"]] == [path] * 3
    assert listed["entries"] == [{"path": "sub/a.md", "entry_type": "file"}]
    assert found["matches"][0]["path"] == "sub/a.md"


def test_a_backslash_is_a_letter_like_others(root: Path, ask: Callable[..., Any]) -> None:
    (root / "a\\b.md").write_text("x\n")

    assert ask("read", path="a\\b.md")["content"] == "x\n"


@pytest.mark.parametrize("path", [None, "", ".", "./", "././"])
def test_nothing_and_a_dot_lead_to_the_root(root: Path, ask: Callable[..., Any], path: str | None) -> None:
    (root / "a.md").write_text("needle\n")

    assert ask("list", path=path)["entries"] == [{"path": "a.md", "entry_type": "file"}]
    assert ask("search", path=path, queries=["needle"])["matches"][0]["path"] == "a.md"
    assert ask("list", path=path)["path"] == path


def test_the_root_cannot_be_read(folder: MemoryFolder) -> None:
    for path in ("", ".", "./"):
        with pytest.raises(ToolError) as caught:
            call(folder, "read", {"path": path}, Visibility())
        assert (caught.value.kind, caught.value.message) == ("not_file", f"path '{path}' is not a file")


def test_a_linked_root_is_refused_where_it_is_what_is_asked_for(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    (real / "a.md").write_text("needle\n")
    (tmp_path / "linked").symlink_to(real)
    folder = MemoryFolder(tmp_path / "linked")

    for name, arguments in (("list", {}), ("search", {"queries": ["needle"]}), ("read", {"path": ""})):
        with pytest.raises(ToolError) as caught:
            call(folder, name, arguments, Visibility())
        assert (caught.value.kind, caught.value.message) == ("invalid_path", "path '' must not be a symlink")


def test_a_linked_root_is_followed_to_what_is_below_it(tmp_path: Path) -> None:
    real = tmp_path / "real"
    (real / "sub").mkdir(parents=True)
    (real / "sub" / "a.md").write_text("needle\n")
    (tmp_path / "linked").symlink_to(real)

    result = call(MemoryFolder(tmp_path / "linked"), "read", {"path": "sub/a.md"}, Visibility())
    assert getattr(result, "content", None) == "needle\n"


def test_a_missing_root_holds_nothing(tmp_path: Path) -> None:
    folder = MemoryFolder(tmp_path / "nowhere")
    for name, arguments, path in (
        ("list", {}, ""),
        ("search", {"queries": ["x"]}, ""),
        ("read", {"path": "a.md"}, "a.md"),
        ("list", {"path": "a"}, "a"),
    ):
        with pytest.raises(ToolError) as caught:
            call(folder, name, arguments, Visibility())
        assert (caught.value.kind, caught.value.message) == ("not_found", f"path '{path}' was not found")


def test_a_root_that_is_no_folder_is_an_error_and_no_crash(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x\n")
    folder = MemoryFolder(tmp_path / "file")

    with pytest.raises(ToolError) as caught:
        call(folder, "read", {"path": "x"}, Visibility())
    assert caught.value.kind == "io"


def test_pipes_and_sockets_are_no_files_and_nobody_waits_for_them(
    root: Path, folder: MemoryFolder, ask: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(root / "pipe")
    monkeypatch.chdir(root)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        for name in ("pipe", "socket"):
            with pytest.raises(ToolError) as caught:
                call(folder, "read", {"path": name}, Visibility())
            assert (caught.value.kind, caught.value.message) == ("not_file", f"path '{name}' is not a file")
            assert ask("list", path=name)["entries"] == []
            assert ask("search", path=name, queries=["x"])["matches"] == []
        assert ask("list")["entries"] == []
        assert ask("search", queries=["x"])["matches"] == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes devices")
@pytest.mark.parametrize("number", [3, 5, 8])
def test_a_device_is_no_file(root: Path, folder: MemoryFolder, number: int) -> None:
    try:
        os.mknod(root / "device", 0o600 | 0o020000, os.makedev(1, number))
    except PermissionError:
        pytest.skip("this machine makes no devices")
    with pytest.raises(ToolError) as caught:
        call(folder, "read", {"path": "device"}, Visibility())

    assert caught.value.kind in ("not_file", "io")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_this_user_may_not_read_is_an_error(root: Path, folder: MemoryFolder) -> None:
    (root / "a.md").write_text("x\n")
    (root / "a.md").chmod(0)

    with pytest.raises(ToolError) as caught:
        call(folder, "read", {"path": "a.md"}, Visibility())
    assert caught.value.kind == "io"


def test_a_tool_error_is_bad_input_with_a_code_and_a_kind(folder: MemoryFolder) -> None:
    with pytest.raises(BadInput) as caught:
        call(folder, "read", {"path": "gone"}, Visibility())

    assert caught.value.code == "tool_error"
    assert caught.value.data["kind"] == "not_found"


def test_an_unknown_tool_is_an_error(folder: MemoryFolder) -> None:
    with pytest.raises(ToolError, match="no memory tool 'delete'"):
        call(folder, "delete", {}, Visibility())
