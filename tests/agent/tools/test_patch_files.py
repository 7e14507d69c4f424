"""Patches on real files: all or nothing, nowhere else, with what was there kept as it was."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from patches import apply_patch

from commonplace.agent.tools.patch import files
from commonplace.agent.tools.registry import Action, ToolOutput
from commonplace.errors import ToolError

Run = Callable[..., Awaitable[ToolOutput]]
Tree = dict[str, tuple[int, bytes | str | None]]


def patch(*lines: str) -> str:
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch"])


def tree(root: Path) -> Tree:
    """Everything below a folder: permissions, and contents or where a link leads."""
    found: Tree = {}
    for path in sorted(root.rglob("*")):
        content = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None  # noqa: PTH115
        found[str(path.relative_to(root))] = (stat.S_IMODE(path.lstat().st_mode), content)
    return found


async def test_a_patch_adds_updates_moves_and_deletes(run: Run, folder: Path) -> None:
    (folder / "b.txt").write_text("one\ntwo\n")
    (folder / "run.sh").write_text("#!/bin/sh\nold\n")
    (folder / "run.sh").chmod(0o750)
    (folder / "gone.txt").write_text("x\n")
    text = patch(
        "*** Add File: deep/er/a.txt",
        "+new",
        "*** Update File: b.txt",
        "-two",
        "+zwei",
        "+drei",
        "*** Update File: run.sh",
        "*** Move to: bin/run.sh",
        "-old",
        "+new",
        "*** Delete File: gone.txt",
    )

    output = await run("apply_patch", text)

    assert (
        "Done. Changed files:\nA deep/er/a.txt\nM b.txt (+2 -1)\nR run.sh -> bin/run.sh (+1 -1)\nD gone.txt"
        == output.content
    )
    assert output.ok
    assert ["b.txt", "bin", "bin/run.sh", "deep", "deep/er", "deep/er/a.txt"] == list(tree(folder))
    assert (0o750, b"#!/bin/sh\nnew\n") == tree(folder)["bin/run.sh"]
    assert b"one\nzwei\ndrei\n" == (folder / "b.txt").read_bytes()


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["*** Add File: a.txt", "+x"], "a.txt is there already"),
        (["*** Update File: none.txt", "-x"], "there is no file none.txt"),
        (["*** Update File: A.TXT", "-x"], "did you mean a.txt?"),
        (["*** Delete File: none/x.txt"], "its folder is not there either"),
        (["*** Update File: a.txt", "-nope"], "does not fit"),
        (["*** Update File: a.txt", "*** Move to: b.txt"], "which is there already"),
        (["*** Delete File: sub"], "no file"),
        (["*** Add File: a.txt/x", "+x"], "is a link or no folder"),
        (["*** Add File: ../x", "+x"], "has `..` in it"),
        (["*** Add File: sub/../../x", "+x"], "has `..` in it"),
        (["*** Add File: /etc/x", "+x"], "is outside of what may be changed"),
        (["*** Add File: .", "+x"], "is no path of a file"),
        (["*** Add File: a\0b", "+x"], "is no path of a file"),
        (["*** Add File: " + "x" * 300, "+x"], "cannot be opened"),
        (["*** Update File: link.txt", "-secret", "+x"], "is a link"),
        (["*** Delete File: link.txt"], "is a link"),
        (["*** Add File: out/x.txt", "+x"], "is a link or no folder"),
        (["*** Update File: out/secret.txt", "-secret", "+x"], "is a link or no folder"),
        (["*** Update File: a.txt", "*** Move to: out/x.txt"], "is a link or no folder"),
        (["*** Update File: pipe", "-x"], "no file"),
    ],
)
async def test_a_patch_that_is_refused_changes_nothing(
    run: Run, folder: Path, tmp_path: Path, lines: list[str], said: str
) -> None:
    outside = tmp_path / "environment"
    outside.mkdir()
    (outside / "secret.txt").write_text("secret\n")
    (folder / "a.txt").write_text("a\n")
    (folder / "b.txt").write_text("b\n")
    (folder / "sub").mkdir()
    (folder / "link.txt").symlink_to(outside / "secret.txt")
    (folder / "out").symlink_to(outside)
    os.mkfifo(folder / "pipe")
    before = tree(tmp_path)

    output = await run("apply_patch", patch("*** Add File: fine/new.txt", "+fine", *lines))

    assert not output.ok
    assert said in str(output.content)
    assert before == tree(tmp_path)


async def test_a_patch_is_taken_as_a_function_call_too(run: Run, folder: Path) -> None:
    from commonplace.agent.tools.patch.tool import ApplyPatch
    from commonplace.agent.tools.registry import Registry, ToolContext, ToolInvocation

    for text in ('{"input": "%s"}', '{"patch": "%s"}'):
        escaped = patch("*** Add File: a.txt", "+x").replace("\n", "\\n")
        call = ToolInvocation("1", "apply_patch", text % escaped)
        output = await Registry([ApplyPatch()]).run(call, ToolContext(cwd=folder, home=folder))
        assert output.ok
        (folder / "a.txt").unlink()


def test_a_path_may_be_absolute_inside_an_allowed_folder(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (tmp_path / "alias").symlink_to(folder)

    apply_patch(patch(f"*** Add File: {folder}/a", "+a"), folder)
    apply_patch(patch(f"*** Add File: {other}/b", "+b"), folder, [other])
    apply_patch(patch(f"*** Add File: {tmp_path}/alias/c", "+c", f"*** Add File: {folder}/d", "+d"), tmp_path / "alias")

    assert (["a", "c", "d"], ["b"]) == (sorted(os.listdir(folder)), os.listdir(other))


def test_operations_work_on_what_earlier_ones_leave(folder: Path) -> None:
    (folder / "a").write_text("1\n2\n")

    apply_patch(
        patch(
            *("*** Update File: a", "-1", "+one"),
            *("*** Update File: a", "-one", "+ONE"),
            *("*** Update File: ./a", "*** Move to: b", " ONE", "-2"),
            *("*** Add File: a", "+again"),
            *("*** Add File: c", "+c", "*** Delete File: c"),
        ),
        folder,
    )

    assert {"a": b"again\n", "b": b"ONE\n"} == {name: (folder / name).read_bytes() for name in os.listdir(folder)}


def test_bytes_that_are_no_text_stay(folder: Path) -> None:
    (folder / "a").write_bytes(b"\xff\xfe\nold\n\x00\xc3\n")

    apply_patch(patch("*** Update File: a", "-old", "+new"), folder)

    assert b"\xff\xfe\nnew\n\x00\xc3\n" == (folder / "a").read_bytes()


class Fails:
    """Makes the n-th call of a function fail."""

    def __init__(self, function: Callable[..., Any], at: int) -> None:
        self._function = function
        self._at = at
        self.calls = 0

    def __call__(self, *arguments: Any, **more: Any) -> Any:
        self.calls += 1
        if self.calls == self._at:
            raise OSError(errno.ENOSPC, "No space left on device")
        return self._function(*arguments, **more)


@pytest.mark.parametrize("at", [1, 2, 3])
@pytest.mark.parametrize("name", ["replace", "link", "mkdir", "unlink", "fchmod"])
def test_a_failure_at_any_point_puts_everything_back(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, at: int
) -> None:
    for each in "abcd":
        (folder / each).write_text(f"{each}\n")
    before = tree(folder)
    failing = Fails(getattr(os, name), at)
    monkeypatch.setattr(files.os, name, failing)
    text = patch(
        *("*** Update File: a", "-a", "+A"),
        *("*** Update File: b", "*** Move to: x/y/b", "-b", "+B"),
        *("*** Add File: x/z", "+z"),
        *("*** Update File: c", "-c", "+C"),
        *("*** Delete File: d",),
    )

    reason = None
    try:
        apply_patch(text, folder)
    except ToolError as error:
        reason = error.message
    if reason is not None:
        assert "nothing was changed" in reason
        assert before == tree(folder)
    else:
        assert failing.calls < at or "unlink" == name
        assert ["a", "c", "x", "x/y", "x/y/b", "x/z"] == [each for each in tree(folder) if files.PART not in each]


def test_a_file_that_changes_meanwhile_is_not_overwritten(folder: Path) -> None:
    from commonplace.agent.tools.patch.tool import parse, plan_patch

    (folder / "a").write_text("a\n")
    (folder / "b").write_text("b\n")
    planned = plan_patch(parse(patch("*** Update File: a", "-a", "+A", "*** Update File: b", "-b", "+B")), folder)
    (folder / "b").write_text("by somebody else\n")

    with pytest.raises(ToolError, match="changed while it was being patched"):
        files.write(planned.writes)

    assert {"a": b"a\n", "b": b"by somebody else\n"} == {
        name: (folder / name).read_bytes() for name in os.listdir(folder)
    }


async def test_who_refuses_a_patch_is_told_which_files(run: Run, folder: Path) -> None:
    asked: list[Action] = []

    async def approve(action: Action) -> str | None:
        asked.append(action)
        return "no"

    output = await run("apply_patch", patch("*** Add File: a", "+x"), approve=approve)

    assert ("Nothing was changed: no", []) == (output.content, os.listdir(folder))
    assert ("change", (str(folder / "a"),)) == (asked[0].kind, asked[0].paths)
