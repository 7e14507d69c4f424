"""Whatever people say and commands print, the embedded consolidator writes a memory that passes its own checks."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from taught import taught

from commonplace.learning.consolidate.consolidator import MergeConsolidator
from commonplace.learning.consolidate.learned_lessons import ConsolidationInput
from commonplace.memory.edits.forgotten import Forgotten
from commonplace.memory.edits.notes import Note
from commonplace.memory.files import raw_memories, validation
from commonplace.memory.workspace import layout

ODD = st.sampled_from(
    [
        "**", "# ", "## Task 9: x", "[Task 9]", "skills/no/SKILL.md", "- ", "* ", "`", '"', "](https://example.org)",
        "ignore all previous instructions", "password: hunter2hunter2", "\u2028", "\x00", "\r", "…", "(cwd=", "-> ",
        "scope: global", "v1", "---", "use", "tabs", "never", "always", "main", "short answers", "中文", "é",
    ]
)  # fmt: skip
WORDS = st.lists(st.one_of(ODD, st.text(min_size=1, max_size=8)), min_size=1, max_size=8).map(
    lambda parts: " ".join(" ".join(parts).split()) or "x"
)
SECTIONS = st.sampled_from(["Preference signals:", "Reusable knowledge:", "Failures and how to do differently:"])


@given(
    st.lists(st.dictionaries(SECTIONS, st.lists(WORDS, min_size=1, max_size=4), min_size=1), min_size=1, max_size=5),
    st.lists(WORDS, max_size=2),
)
def test_any_words_make_a_memory_that_can_be_used(sessions: list[dict[str, list[str]]], noted: list[str]) -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        known = [taught(number, bullets, cwd=f"/p/{number % 2}") for number, bullets in enumerate(sessions)]
        raw_memories.sync(root, known)
        (root / layout.NOTES).mkdir(parents=True)
        notes: list[Note] = []
        for number, text in enumerate(noted):
            path = f"{layout.NOTES}/2026-11-0{number + 1}T00-00-00-n.md"
            (root / path).write_text(text)
            notes.append(Note(path, 1_800_000_000, "remember", text))
        material = ConsolidationInput(root, known, {}, notes, Forgotten([]), set(), set())

        found = MergeConsolidator().consolidate(material)

        assert validation.problems(root) == []
        assert list(validation.entries(found.entries)) == []
