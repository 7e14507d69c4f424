"""Undo in a session: what is kept before a turn, and the way back through the library."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from consent_doubles import warnings
from manifests import commit, git_state, manifest, put, repository
from scripted_session import Model, stage
from session_invariants import Json

import commonplace
from commonplace.agent import turn_snapshots, undo
from commonplace.agent.thread import Thread
from commonplace.agent.undo import Snapshot, SnapshotLimits
from commonplace.app.book import Book
from commonplace.errors import BadInput
from commonplace.models.scripted import answer, call, custom, say

SCRIPTS = [
    "rm tracked.txt; mkdir -p new/deep; echo new > new/deep/file; chmod 755 script.sh",
    "mv loose.bin moved.bin; printf '\\0\\1\\2' > binary; echo more >> kept.txt; ln -s kept.txt link",
]
PATCH = """*** Begin Patch
*** Add File: added.txt
+one
*** Update File: kept.txt
*** Move to: renamed.txt
@@
-a line
+another line
*** Delete File: doomed.txt
*** End Patch"""


def shell(script: str, number: int = 1) -> Json:
    return call("shell", {"command": script}, f"c{number}")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    repo = repository(root)
    for name, data in {"tracked.txt": "tracked\n", "kept.txt": "a line\n", "doomed.txt": "x\n"}.items():
        put(root, name, data)
    put(root, "script.sh", "#!/bin/sh\n", 0o644)
    commit(repo)
    put(root, "loose.bin", bytes(range(256)))
    put(root, "staged.txt", "staged\n")
    repo.index.add("staged.txt")
    repo.index.write()
    return root


async def started(book: Book, project: Path, model: Model, **wishes: Any) -> Thread:
    wanted: dict[str, Any] = {"cwd": project, "speaker": model, "sandbox": "danger-full-access", **wishes}
    return await book.start(**wanted)


def kept(path: Path | None) -> int:
    assert path is not None
    return path.read_text("utf-8").count('"kind":"snapshot"')


async def test_turns_are_taken_back_one_after_the_other_and_done_again(project: Path) -> None:
    steps = [part for script in SCRIPTS for part in (answer(shell(script)), answer(say("Done.")))]
    steps += [answer(custom("apply_patch", PATCH, "c9")), answer(say("Patched."))]
    async with Model(*steps) as model, commonplace.open() as book:
        thread = await started(book, project, model)
        git = git_state(project)
        states = [manifest(project)]
        for words in ("One.", "Two."):
            await thread.turn(words)
            states.append(manifest(project))
        put(project, "kept.txt", "a line\n")
        states.append(manifest(project))
        await thread.turn("Three.")
        states.append(manifest(project))
        assert (project / "renamed.txt").exists()
        await thread.close()

        back = [(False, 3), (False, 1), (False, 0)]
        for redo, place in [*back, (True, 1), (False, 0), (True, 1), (True, 3), (True, 4)]:
            done = await book.sessions.undo(thread.id, redo=redo)
            assert str(project) == done["tree"]
            assert states[place] == manifest(project), (redo, place)
        assert git == git_state(project)
        with pytest.raises(BadInput, match="nothing to be taken back"):
            await book.sessions.undo(thread.id, redo=True)


async def test_a_new_turn_ends_the_way_forward(project: Path) -> None:
    steps = [answer(shell("echo 1 > a")), answer(say("1")), answer(shell("echo 2 > b")), answer(say("2"))]
    async with Model(*steps) as model, commonplace.open() as book:
        thread = await started(book, project, model)
        await thread.turn("One.")
        await thread.close()
        await book.sessions.undo(thread.id)
        again = await book.resume(thread.id, cwd=project, speaker=model, sandbox="danger-full-access")
        before = manifest(project)
        await again.turn("Two.")
        await again.close()

        with pytest.raises(BadInput, match="nothing to be taken back"):
            await book.sessions.undo(thread.id, redo=True)
        await book.sessions.undo(thread.id)
        assert before == manifest(project)
        with pytest.raises(BadInput, match="nothing to be undone"):
            await book.sessions.undo(thread.id)


async def test_snapshots_outlive_compaction_and_resume(project: Path) -> None:
    long = [say("word " * 4_000)] * 3
    steps = [answer(shell("echo 1 > a")), answer(*long), answer(say("A summary.")), answer(say("Yes."))]
    async with Model(*steps) as model, commonplace.open() as book:
        before = manifest(project)
        thread = await started(book, project, model)
        await thread.turn("One.")
        await thread.compact()
        assert thread.path is not None
        assert '"type":"compacted"' in thread.path.read_text("utf-8")
        await thread.close()
        again = await book.resume(thread.id, cwd=project, speaker=model, sandbox="danger-full-access")
        await again.turn("Two.")
        await again.close()
        await book.sessions.undo(thread.id)

        assert before == manifest(project)


@pytest.mark.parametrize(
    ("steps", "wishes", "settings"),
    [
        ([shell("cat kept.txt | head -1")], {}, ""),
        ([call("update_plan", {"plan": [{"step": "one", "status": "pending"}]}, "c1")], {}, ""),
        ([shell("echo 1 > a")], {"ephemeral": True}, ""),
        ([shell("echo 1 > a")], {}, "undo = false\n"),
    ],
    ids=["looks", "plans", "ephemeral", "off"],
)
async def test_where_nothing_is_to_be_kept_nothing_is(
    project: Path, home: Path, steps: list[Json], wishes: dict[str, Any], settings: str
) -> None:
    home.mkdir()
    (home / "config.toml").write_text(settings)
    async with Model(answer(*steps), answer(say("Done."))) as model, commonplace.open() as book:
        thread = await started(book, project, model, **wishes)
        await thread.turn("Work.")

        assert [] == undo.listed(home)
        assert thread.path is None or 0 == kept(thread.path)


async def test_one_snapshot_is_taken_per_turn_before_the_first_change(tmp_path: Path) -> None:
    calls = answer(shell("ls", 1), shell("echo 1 > a", 2), shell("echo 2 > b", 3))
    async with stage(tmp_path, calls, answer(say("Done."))) as here:
        await here.run("Work.")

        assert 1 == kept(here.path)
        (snapshot,) = undo.listed(here.home)
        assert ("turn", 0) == (snapshot.kind, snapshot.files)


async def test_a_folder_that_is_too_large_is_warned_about_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = undo.take

    def take(home: Path, tree: Path, now: Any, *, limits: SnapshotLimits) -> Snapshot:
        return real(home, tree, now, limits=msgspec.structs.replace(limits, files=1))

    monkeypatch.setattr(undo, "take", take)
    steps = [part for number in range(3) for part in (answer(shell(f"echo > f{number}")), answer(say("Done.")))]
    async with stage(tmp_path, *steps) as here:
        for name in "abc":
            put(here.cwd, name)
        await here.run("One.")
        await here.run("Two.")
        assert 1 == len(warnings(here))
        assert "There is no way back from this turn" in warnings(here)[0]
        await here.resume()
        await here.run("Three.")

        assert 2 == len(warnings(here)), "a new session says so, too, and does not try"
        assert 1 == kept(here.path)
        assert (here.home / turn_snapshots.TOO_LARGE).exists()


async def test_a_snapshot_that_fails_stops_no_turn(tmp_path: Path) -> None:
    async with stage(tmp_path, answer(shell("echo 1 > a")), answer(say("Done."))) as here:
        (here.home / "snapshots").parent.mkdir(exist_ok=True)
        (here.home / "snapshots").write_text("a file")
        await here.run("Work.")

        assert (here.cwd / "a").exists()
        assert ["There is no way back from this turn"] == [text.partition(":")[0] for text in warnings(here)]


async def test_with_a_thread_go_its_snapshots_and_no_others(project: Path, home: Path) -> None:
    steps = [part for name in "abc" for part in (answer(shell(f"echo > {name}")), answer(say("Done.")))]
    async with Model(*steps) as model, commonplace.open() as book:
        first = await started(book, project, model)
        await first.turn("One.")
        await first.turn("Two.")
        await first.close()
        second = await started(book, project, model)
        await second.turn("Three.")
        await second.close()
        await book.sessions.undo(first.id)
        assert 4 == len(undo.listed(home))
        await book.sessions.delete(first.id)

        assert 1 == len(undo.listed(home))
        await book.sessions.undo(second.id)
        await book.sessions.delete(second.id)
        assert [] == undo.listed(home)
