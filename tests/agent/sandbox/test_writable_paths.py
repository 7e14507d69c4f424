"""What is mounted how, or allowed, for a policy: decided from the disk, without any sandbox."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from commonplace.agent.sandbox import SandboxPolicy, unchangeable, writable_paths
from commonplace.errors import ToolError


@pytest.fixture
def project(tmp_path: Path) -> Path:
    place = tmp_path / "project"
    (place / "src").mkdir(parents=True)
    (place / "README").write_text("")
    return place


def _policy(project: Path, *roots: Path, protected: tuple[Path, ...] = (), tmpdir: Path | None = None) -> SandboxPolicy:
    return SandboxPolicy(
        mode="workspace-write", cwd=project, roots=roots, protected=protected, tmpdir=tmpdir, exclude_slash_tmp=True
    )


def _mounts(policy: SandboxPolicy, base: Path) -> list[str]:
    """Return the places as `w project`, `r project/.git`."""
    return [
        f"{'w' if w else 'r'} {os.path.relpath(path, base)}" for path, w in writable_paths.mount_plan(policy).places
    ]


def test_a_missing_git_folder_is_held_and_read_only(project: Path) -> None:
    area = writable_paths.mount_plan(_policy(project))

    assert ((str(project), True), (str(project / ".git"), False)) == area.places
    assert (str(project / ".git"),) == area.held


def test_a_git_folder_that_is_there_is_not_held(project: Path) -> None:
    (project / ".git").mkdir()

    assert () == writable_paths.mount_plan(_policy(project)).held


@pytest.mark.parametrize("mode", ["read-only", "danger-full-access"])
def test_other_modes_have_no_places(project: Path, mode: str) -> None:
    area = writable_paths.mount_plan(SandboxPolicy(mode=mode, cwd=project))  # pyright: ignore[reportArgumentType]

    assert ((), (), ()) == (area.roots, area.places, area.held)


def test_a_root_in_another_is_the_other_s(project: Path) -> None:
    assert (str(project),) == writable_paths.mount_plan(_policy(project, project / "src")).roots


def test_every_root_guards_its_git_folder(project: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()

    mounts = _mounts(_policy(project, other), tmp_path)

    assert ["w other", "r other/.git", "w project", "r project/.git"] == mounts


def test_a_temporary_folder_gets_no_placeholder(project: Path, tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()

    assert "w temporary" in (found := _mounts(_policy(project, tmpdir=temporary), tmp_path))
    assert "r temporary/.git" not in found


def test_folders_on_the_way_are_pinned(project: Path, tmp_path: Path) -> None:
    (project / "src" / "deep").mkdir()
    home = project / "src" / "deep" / "home"

    mounts = _mounts(_policy(project, protected=(home, home / "memories")), tmp_path)

    assert ["w project", "r project/.git", "w project/src", "w project/src/deep", "r project/src/deep/home"] == mounts


def test_the_first_missing_part_is_held(project: Path) -> None:
    policy = _policy(project, protected=(project / "a" / "b" / "home",))

    assert (str(project / ".git"), str(project / "a")) == writable_paths.mount_plan(policy).held


def test_a_file_in_the_place_of_a_folder_is_guarded_itself(project: Path, tmp_path: Path) -> None:
    assert "r project/README" in _mounts(_policy(project, protected=(project / "README" / "home",)), tmp_path)


def test_a_folder_with_a_guarded_link_is_read_only_and_its_children_are_not(project: Path, tmp_path: Path) -> None:
    (project / ".git").symlink_to(tmp_path / "elsewhere")

    assert ["r project", "w project/README", "w project/src"] == _mounts(_policy(project), tmp_path)


def test_links_in_a_circle_are_an_error(project: Path) -> None:
    (project / ".git").symlink_to(".git")

    with pytest.raises(ToolError, match="circle"):
        writable_paths.mount_plan(_policy(project))


def test_alone_the_children_of_a_folder_with_something_guarded_are_allowed(project: Path) -> None:
    (project / "way").symlink_to("src")

    assert (str(project / "README"), str(project / "src")) == writable_paths.landlock_paths(_policy(project))


def test_alone_a_folder_without_anything_guarded_is_allowed_whole(project: Path, tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()

    assert str(temporary) in writable_paths.landlock_paths(_policy(project, tmpdir=temporary))


def test_a_root_in_something_guarded_is_none(project: Path) -> None:
    assert () == writable_paths.mount_plan(_policy(project / "src", protected=(project,))).roots


def test_everything_can_be_a_root(project: Path) -> None:
    area = writable_paths.mount_plan(_policy(project, Path("/"), protected=(project / "src",)))

    assert ("/",) == area.roots
    assert ("/", True) == area.places[0]
    assert (str(project / "src"), False) in area.places


def test_a_root_that_a_command_could_have_replaced_by_a_link_is_none(project: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (project / "root").symlink_to(tmp_path / "outside")
    (project / "tmp").symlink_to(tmp_path / "outside")

    assert (str(project),) == writable_paths.mount_plan(
        _policy(project, project / "root", tmpdir=project / "tmp")
    ).roots


def test_a_root_may_be_a_link_of_the_user(project: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(project)

    assert (str(project),) == writable_paths.mount_plan(_policy(tmp_path / "link")).roots


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("new", None),
        ("src/deep/new", None),
        ("../project/src/new", None),
        (".git/hooks/pre-commit", "protected"),
        (".git", "protected"),
        ("src/../.git/config", "protected"),
        ("way/config", "protected"),
        ("home/config.toml", "protected"),
        ("home", "protected"),
        ("../new", "no folder"),
        ("out/new", "no folder"),
        ("/etc/passwd", "no folder"),
    ],
)
def test_tools_in_this_process_keep_to_the_same_rules(project: Path, name: str, why: str | None) -> None:
    (project / "way").symlink_to(".git")
    (project / "out").symlink_to("..")

    told = unchangeable(_policy(project, protected=(project / "home",)), Path(name))

    assert told is None if why is None else told is not None and why in told


@pytest.mark.parametrize(("mode", "may"), [("read-only", False), ("danger-full-access", True)])
def test_the_mode_decides_for_tools_too(project: Path, mode: str, may: bool) -> None:
    policy = SandboxPolicy(mode=mode, cwd=project)  # pyright: ignore[reportArgumentType]

    assert may == (unchangeable(policy, Path("new")) is None)
