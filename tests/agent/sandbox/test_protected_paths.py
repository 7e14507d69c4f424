"""What Git and Commonplace keep stays as it is, though it lies in a folder that can be written, or does not exist."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import anyio
import pytest
from confined import Box

from commonplace.agent.sandbox import writable_paths

pytestmark = pytest.mark.anyio

GIT = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "PATH": os.environ["PATH"]}


def _git(folder: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=folder, env=GIT, check=True, capture_output=True)


def _tree(folder: Path) -> dict[str, bytes | str | None]:
    """Return everything below a folder: the bytes of files, the targets of links."""
    found: dict[str, bytes | str | None] = {}
    for path in sorted(folder.rglob("*")):
        content = str(path.readlink()) if path.is_symlink() else path.read_bytes() if path.is_file() else None
        found[str(path.relative_to(folder))] = content
    return found


@pytest.fixture
def repository(box: Box) -> Path:
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    _git(box.project, "init", "-q")
    return box.project / ".git"


CHANGES = [
    "echo bad > .git/hooks/pre-commit",
    "echo bad >> .git/config",
    "git config core.fsmonitor bad",
    "git commit --allow-empty -m bad",
    "rm -rf .git/hooks",
    "mv .git .other; mkdir -p .git/hooks; echo bad > .git/hooks/pre-commit",
    "mv .git/hooks .git/other",
    "ln -sfn /nowhere .git/hooks",
    "mkdir new; echo bad > new/config; mv -T new .git",
    "ln .git/config src/config; echo bad > src/config",
    "ln -s ../.git src/way; echo bad > src/way/hooks/pre-commit",
    "cd .git/hooks && echo bad > pre-commit",
    'echo bad > "/proc/self/cwd/.git/hooks/pre-commit"',
    "python3 -c \"import os; os.rename('.git', 'src/moved')\"",
    "mv src ../src2; mv . ../other",
]


@pytest.mark.parametrize("script", CHANGES)
async def test_what_git_keeps_is_not_changed(box: Box, repository: Path, script: str) -> None:
    before = _tree(repository)

    await box.run(f"cd ..\n{script}")

    assert before == _tree(repository)


@pytest.mark.parametrize(
    "script",
    [
        "mkdir -p .git/hooks && echo bad > .git/hooks/pre-commit",
        "git init -q",
        "ln -s src .git",
        "echo 'gitdir: src' > .git",
        "mkdir new; mv -T new .git",
        "rmdir .git; mkdir .git; echo bad > .git/config",
        "mv .git .other; mkdir .git; echo bad > .git/config",
        "cp -r src .git; mv src .git",
    ],
)
async def test_git_gets_no_folder_where_it_had_none(box: Box, script: str) -> None:
    await box.run(f"cd ..\n{script}")

    assert not os.path.lexists(box.project / ".git")


async def test_a_folder_that_a_git_file_points_to_is_guarded(box: Box) -> None:
    kept = box.folder / "kept" / "one"
    (kept / "hooks").mkdir(parents=True)
    (box.project / ".git").write_text("gitdir: src/kept/one\n")

    await box.run("echo bad > kept/one/hooks/pre-commit; mv kept other; mkdir -p kept/one/hooks; rm -f ../.git")

    assert ["hooks"] == os.listdir(kept)
    assert [] == os.listdir(kept / "hooks")
    assert "gitdir: src/kept/one\n" == (box.project / ".git").read_text()


async def test_a_worktree_guards_what_it_shares_with_others(box: Box) -> None:
    kept = box.folder / "main" / "worktrees" / "one"
    kept.mkdir(parents=True)
    (kept / "commondir").write_text("../..\n")
    (box.project / ".git").write_text(f"gitdir: {kept}\n")

    await box.run("mkdir main/hooks; echo bad > main/config; mv main other")

    assert ["worktrees"] == os.listdir(box.folder / "main")


@pytest.mark.parametrize("target", ["src/kept", "../outside"])
async def test_a_link_in_the_place_of_the_git_folder_stays(box: Box, target: str) -> None:
    (box.folder / "kept").mkdir()
    (box.project / ".git").symlink_to(target)

    await box.run("cd ..; rm .git; mv .git x; mkdir .git; echo bad > .git/config")

    assert target == str((box.project / ".git").readlink())
    assert [] == os.listdir(box.folder / "kept")
    assert ["file"] == os.listdir(box.outside)


async def test_beside_a_link_that_is_guarded_work_goes_on(box: Box) -> None:
    (box.project / ".git").symlink_to("src")
    (box.project / "other").mkdir()

    code, printed = await box.run("echo new > ../other/file")

    assert (0, "") == (code, printed)


async def test_a_bare_repository_keeps_its_hooks(box: Box) -> None:
    for name in ("objects", "refs", "hooks"):
        (box.project / name).mkdir()
    (box.project / "HEAD").write_text("ref: refs/heads/main\n")

    await box.run("cd ..; echo bad > hooks/post-update; echo bad > config; mv hooks x; mkdir modules/x")

    assert [] == os.listdir(box.project / "hooks")
    assert not os.path.lexists(box.project / "config")


@pytest.mark.parametrize("exists", [True, False])
async def test_the_home_and_the_memories_stay_in_a_root_that_holds_them(box: Box, exists: bool) -> None:
    home = box.folder / "deep" / "home"
    home.parent.mkdir()
    if exists:
        (home / "memories").mkdir(parents=True)
        (home / "memories" / "MEMORY.md").write_text("as it was")
    before = _tree(box.folder)

    changed = (home, home / "memories")
    await box.run("echo bad > deep/home/memories/MEMORY.md", protected=changed)
    await box.run("mv deep other; mkdir -p deep/home/memories; echo bad > deep/home/config.toml", protected=changed)
    await box.run("rm -rf deep; mkdir -p deep/home; ln -s . deep/home/memories", protected=changed)

    assert before == _tree(box.folder)


async def test_a_link_on_the_way_to_the_home_stays(box: Box) -> None:
    (box.folder / "real" / "home").mkdir(parents=True)
    (box.folder / "way").symlink_to("real")
    home = box.folder / "way" / "home"

    await box.run("rm way; mkdir -p way/home; echo bad > way/home/config.toml; touch real/home/x", protected=(home,))

    assert "real" == str((box.folder / "way").readlink())
    assert [] == os.listdir(box.folder / "real" / "home")


async def test_a_root_inside_of_what_is_guarded_cannot_be_written(box: Box) -> None:
    code, _ = await box.run("echo bad > new", protected=(box.project,))

    assert code != 0
    assert ["file"] == os.listdir(box.folder)


async def test_what_holds_a_missing_folder_is_gone_afterwards(mounted_box: Box) -> None:
    code, printed = await mounted_box.run("ls -A ..")

    assert (0, {".git", "src"}) == (code, set(printed.split()))
    assert ["src"] == os.listdir(mounted_box.project)


async def test_it_stays_as_long_as_another_command_needs_it(mounted_box: Box) -> None:
    first = mounted_box.start("/bin/sh", "-c", "echo ready; read _; mkdir -p ../.git/hooks; exit 4", background=True)
    with anyio.fail_after(60):
        await first.settled(0.0)

    await mounted_box.run("true")

    assert (mounted_box.project / ".git").is_dir()
    await first.write("\n", 60)
    code, _ = await mounted_box.finish(first)
    assert 4 == code
    assert ["src"] == os.listdir(mounted_box.project)


async def test_what_a_killed_command_left_is_cleared_by_the_next(mounted_box: Box) -> None:
    running = mounted_box.start("/bin/sh", "-c", "echo ready; read _", background=True)
    with anyio.fail_after(60):
        await running.settled(0.0)
    os.killpg(running.group, 9)
    await mounted_box.finish(running)
    assert (mounted_box.project / ".git").is_dir()

    await mounted_box.run("true")

    assert ["src"] == os.listdir(mounted_box.project)


async def test_a_repository_that_a_person_makes_meanwhile_is_kept(mounted_box: Box) -> None:
    running = mounted_box.start("/bin/sh", "-c", "echo ready; read _; touch ../.git/bad", background=True)
    with anyio.fail_after(60):
        await running.settled(0.0)

    (mounted_box.project / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    await running.write("\n", 60)
    await mounted_box.finish(running)

    assert ["HEAD"] == os.listdir(mounted_box.project / ".git")


async def test_an_empty_folder_of_somebody_else_is_not_taken_away(mounted_box: Box) -> None:
    (mounted_box.project / ".git").mkdir()

    await mounted_box.run("true")

    assert (mounted_box.project / ".git").is_dir()


async def test_what_a_killed_command_left_goes_at_the_end_of_the_turn(mounted_box: Box) -> None:
    place = mounted_box.project / ".git"
    running = mounted_box.start("/bin/sh", "-c", "echo ready; read _", background=True)
    with anyio.fail_after(60):
        await running.settled(0.0)
    writable_paths.remove_placeholders(mounted_box.policy)
    assert place.is_dir(), "a command needs it"

    os.killpg(running.group, 9)
    await mounted_box.finish(running)
    assert place.is_dir()
    writable_paths.remove_placeholders(mounted_box.policy)
    assert not place.exists()

    place.mkdir()
    writable_paths.remove_placeholders(mounted_box.policy)
    assert place.is_dir(), "somebody else made it"
