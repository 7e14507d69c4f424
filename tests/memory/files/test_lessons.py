"""What a session taught is one value: stored as JSON, rendered as Markdown, and read back the same from either."""

from __future__ import annotations

from pathlib import Path

import anyio
import msgspec
import pytest

import gold
from commonplace.learning.evaluate import files, scoring
from commonplace.learning.evaluate.run import ledger_of
from commonplace.learning.extract import session_reading
from commonplace.learning.extract.rules import RuleExtractor
from commonplace.memory import lessons
from commonplace.memory.edits import removal
from commonplace.memory.edits.forgotten import Forgotten, decision
from commonplace.memory.entries import LISTED
from commonplace.memory.files import lesson_parser, lesson_text
from commonplace.memory.files.raw_memories import RawMemory
from commonplace.memory.lessons import Evidence, Lesson, SessionLesson, SessionLessons, TaskLessons
from commonplace.rollout.decisions import DecisionLine
from commonplace.state.outputs import Output

SAID = Lesson(
    kind="preference",
    words="Use pnpm here.",
    lead="said by the user",
    default="use pnpm here",
    evidence=(Evidence(2, 100, 180, "Use pnpm here.", "said by the user"),),
)
CHECK = Lesson(
    kind="verify",
    shown="verify with `pnpm test` (exit 0 here)",
    commands=("pnpm test",),
    evidence=(Evidence(3, 300, 380, "pnpm test", "verified by exit status"),),
)
SESSION = SessionLessons(
    tasks=(TaskLessons("Add a page", "success", (CHECK, SAID), ("pnpm add x",)), TaskLessons("Look", "uncertain")),
    project="example.org/acme/shop",
    cwd="/home/dev/shop",
    keywords=("pnpm", "page"),
    slug="add-page",
    dialogue_bytes=1200,
    spoken_bytes=300,
)


def stored(output: Output, *, as_text: bool) -> RawMemory:
    texts = (output.raw_memory, output.rollout_summary, output.rollout_slug)
    return RawMemory("t1", 50, "/home/dev/shop", "/p", None, *texts, None if as_text else output.lessons)


def taught(source: RawMemory) -> list[SessionLesson]:
    """What of a session is listed, as Markdown can tell it: without sums of the judge and commands."""
    return [
        msgspec.structs.replace(
            each, commands=(), role="", stretch="", judged=None, confidence=round(each.confidence, 2), place=0
        )
        for each in lesson_parser.of_input(source, "p")
        if each.confidence >= LISTED
    ]


def test_json_and_markdown_of_a_session_teach_the_same() -> None:
    output = lesson_text.output(SESSION)

    assert lesson_parser.of_input(stored(output, as_text=False), "p") == lesson_parser.of_input(
        stored(output, as_text=True), "p"
    )


@pytest.mark.parametrize("name", ["near", "together"])
async def test_json_and_markdown_of_labelled_sessions_teach_the_same(name: str, tmp_path: Path) -> None:
    different: list[str] = []
    for case in gold.load(name)[:60]:
        folder = tmp_path / case.id
        for session, _, path in files.write(case, folder, scoring.NOW):
            place = await anyio.to_thread.run_sync(ledger_of, session, path, folder)
            output = await session_reading.extract_session(RuleExtractor(), place, session.cwd, Forgotten(()))
            if not output.is_empty:
                typed, parsed = (taught(stored(output, as_text=each)) for each in (False, True))
                if typed != parsed:
                    different.append(case.id)

    assert [] == different


def test_a_newer_versions_json_does_not_hide_what_its_text_says() -> None:
    output = msgspec.structs.replace(lesson_text.output(SESSION), lessons='{"tasks": 7}')

    assert ["preference", "verify"] == [
        each.kind for each in lesson_parser.of_input(stored(output, as_text=False), "p")
    ]


def test_a_session_that_taught_nothing_is_stored_as_nothing() -> None:
    assert Output("", "") == lesson_text.output(SessionLessons(tasks=(TaskLessons("Look", "success"),)))


def test_forgetting_takes_a_lesson_out_of_value_and_texts() -> None:
    line = msgspec.convert(
        {"time": "2026-11-01T00:00:00Z", "kind": "forget", **decision(["Use pnpm here."])}, DecisionLine
    )
    left = removal.output(lesson_text.output(SESSION), Forgotten([line]))

    assert left.lessons is not None
    assert [("verify",), ()] == [
        tuple(each.kind for each in task.lessons) for task in lessons.decode(left.lessons).tasks
    ]
    assert "Use pnpm" not in f"{left.raw_memory}{left.rollout_summary}{left.lessons}"
    assert "pnpm test" in left.raw_memory


def test_secrets_are_taken_out_of_value_and_texts() -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    said = msgspec.structs.replace(SAID, words=f"The token is {secret}.")
    session = msgspec.structs.replace(SESSION, tasks=(TaskLessons("x", "success", (said,)),))
    clean = lesson_text.redacted(lesson_text.output(session))

    assert secret not in f"{clean.raw_memory}{clean.rollout_summary}{clean.lessons}"
    assert lesson_text.redacted(clean) == clean


def test_what_a_model_read_is_told_with_kind_scope_and_what_to_do() -> None:
    said = msgspec.structs.replace(SAID, default="install with pnpm", scope="everywhere", judged=None)
    shown = Lesson(kind="procedure", shown="Migrations run first.", default="run them", evidence=SAID.evidence)
    session = msgspec.structs.replace(SESSION, tasks=(TaskLessons("x", "success", (said, shown)),), reader="m")
    told = lesson_parser.parse(lesson_text.raw_memory(session)).tasks[0].lessons

    assert [each.text for each in (said, shown)] == [each.text for each in told]
    assert [("preference", "everywhere"), ("procedure", "")] == [(each.kind, each.scope) for each in told]
