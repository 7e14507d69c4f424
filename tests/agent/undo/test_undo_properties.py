"""Random trees and random turns: whatever happens in between, the way back and the way forward lead where they say."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from manifests import NOW, commit, git_state, manifest, prune, put, repository

from commonplace.agent import undo

NAMES = ["a", "b", "c", "\udcff", "é", "x y"]
_PATH = st.lists(st.sampled_from(NAMES), min_size=1, max_size=3).map("/".join)
_CONTENT = st.one_of(st.binary(max_size=30), st.sampled_from([b"", b"\r\n", bytes(70_000), b"same"]))
_MODE = st.sampled_from([0o644, 0o755, 0o600, 0o640])
_EDIT = st.one_of(
    st.tuples(st.just("file"), _PATH, _CONTENT, _MODE),
    st.tuples(st.just("link"), _PATH, st.sampled_from(["a", "../b", "nowhere", "/"]), st.none()),
    st.tuples(st.just("folder"), _PATH, st.none(), st.sampled_from([0o755, 0o700, 0o750])),
    st.tuples(st.just("remove"), _PATH, st.none(), st.none()),
    st.tuples(st.just("move"), _PATH, _PATH, st.none()),
    st.tuples(st.just("chmod"), _PATH, st.none(), _MODE),
)
_EDITS = st.lists(_EDIT, max_size=12)


def _clear(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _parents(root: Path, path: Path) -> None:
    """Make the folders on the way real ones: what an edit goes through must stay inside the tree."""
    place = root
    for part in path.relative_to(root).parts[:-1]:
        place = place / part
        if place.is_symlink() or not place.is_dir():
            _clear(place)
            place.mkdir()


def _inside(root: Path, path: Path) -> bool:
    place = root
    for part in path.relative_to(root).parts[:-1]:
        place = place / part
        if place.is_symlink():
            return False
    return os.path.lexists(path)


def apply(root: Path, edit: tuple[Any, ...]) -> None:
    """Do one edit of a turn."""
    kind, name, what, mode = edit
    path = root / name
    if kind in ("file", "link", "folder"):
        _parents(root, path)
        if kind == "folder":
            if path.is_symlink() or not path.is_dir():
                _clear(path)
                path.mkdir()
            path.chmod(mode)
            return
        _clear(path)
        if kind == "file":
            put(path.parent, path.name, what, mode)
        else:
            path.symlink_to(what)
    elif not _inside(root, path):
        return
    elif kind == "remove":
        _clear(path)
    elif kind == "move":
        target = root / what
        if target == path or path in target.parents or target in path.parents:
            return
        _parents(root, target)
        if _inside(root, path):
            _clear(target)
            path.rename(target)
    elif stat.S_ISREG(path.lstat().st_mode):
        path.chmod(mode)


def _check(place: Path, is_repository: bool, first: list[Any], turns: list[list[Any]]) -> None:
    root, home = place / "tree", place / "home"
    root.mkdir()
    found = repository(root) if is_repository else None
    for edit in first:
        apply(root, edit)
    if found is not None and first:
        put(root, "tracked", "x")
        commit(found)
    git = git_state(root) if found is not None else {}
    states, ids = [manifest(root)], [undo.take(home, root, NOW).id]
    for turn in turns:
        for edit in turn:
            apply(root, edit)
        states.append(manifest(root))
        ids.append(undo.take(home, root, NOW).id)
    for number in (*range(len(ids)), *reversed(range(len(ids))), 0):
        preview = undo.diff(home, ids[number])
        now = manifest(root)
        restored = undo.restore(home, ids[number], NOW)
        assert manifest(root) == states[number]
        assert restored.left_alone == ()
        assert bool(preview.changed or preview.removed or preview.recreated) == (now != states[number])
        undo.restore(home, restored.redo, NOW)
        assert manifest(root) == now
        undo.restore(home, ids[number], NOW)
    if found is not None:
        assert git_state(root) == git
    keep = undo.SnapshotLimits(snapshots=len(ids) * 20)
    prune(home, NOW, keep)
    undo.restore(home, ids[-1], NOW)
    assert manifest(root) == states[-1]


@given(is_repository=st.booleans(), first=_EDITS, turns=st.lists(_EDITS, min_size=1, max_size=2))
def test_random_turns_are_taken_back_and_done_again(
    tmp_path_factory: pytest.TempPathFactory, is_repository: bool, first: list[Any], turns: list[list[Any]]
) -> None:
    place = tmp_path_factory.mktemp("random")
    _check(place, is_repository, first, turns)
    shutil.rmtree(place)


@pytest.mark.soak
@pytest.mark.timeout(1800)
@settings(max_examples=1500)
@given(is_repository=st.booleans(), first=_EDITS, turns=st.lists(_EDITS, min_size=1, max_size=4))
def test_many_random_turns_are_taken_back_and_done_again(
    tmp_path_factory: pytest.TempPathFactory, is_repository: bool, first: list[Any], turns: list[list[Any]]
) -> None:
    place = tmp_path_factory.mktemp("random")
    _check(place, is_repository, first, turns)
    shutil.rmtree(place)
