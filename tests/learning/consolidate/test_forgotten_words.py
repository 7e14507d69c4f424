"""Recognising what was forgotten by hashes: the same words in any dress, in longer texts, and nothing else."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.memory.edits import removal
from commonplace.memory.edits.forgotten import Forgotten, decision
from commonplace.memory.files import output_shape
from commonplace.rollout.decisions import DecisionLine
from commonplace.state.outputs import Output

TEXT = "Always deploy the Zanzibar cluster from release/7, never from main."
RAW = """\
---
description: fix it (success). Best takeaway: said by the user: "{text}" -> deploy the Zanzibar
task: fix it
task_group: github.com/acme/shop
task_outcome: success
cwd: /repo/shop
keywords: zanzibar, cluster, pytest
---

### Task 1: fix it

task: fix it
task_group: github.com/acme/shop
task_outcome: success

Preference signals:
- said by the user: "{text}" -> deploy the Zanzibar [1]

Reusable knowledge:
- verify with `pytest -q` (exit 0 here) [2]

References:
- [1] turn 1, bytes 1-2, said by the user: "{text}"
- [2] turn 1, bytes 3-4, verified by exit status: "pytest -q"
"""
SUMMARY = (
    "# fix it: success\n\nRollout context: 1 task(s).\n\n## Task 1: fix it\nOutcome: success\n\nPreference signals:\n"
)


def forgotten(*texts: str, at: str = "2026-11-15T09:00:00Z") -> Forgotten:
    line = {"time": at, "kind": "forget", **decision(texts)}
    return Forgotten([msgspec.convert(line, DecisionLine)])


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        TEXT.upper(),
        "always deploy   the zanzibar cluster\nfrom release/7 never from main",
        "“Always” deploy the *Zanzibar* cluster, from release/7: never from main!",
    ],
)
def test_the_same_words_are_recognised_in_any_dress(text: str) -> None:
    assert text in forgotten(TEXT)


@pytest.mark.parametrize(
    "text", ["", "Always run the linter.", "Deploy the blog.", "zanzibar", "the cluster from main", "!?"]
)
def test_other_words_are_not(text: str) -> None:
    known = forgotten(TEXT)

    assert text not in known
    assert text == known.without_forgotten(text)


@given(st.text(max_size=40), st.text(max_size=40))
def test_the_words_are_taken_out_of_any_text_around_them(before: str, after: str) -> None:
    known = forgotten(TEXT)

    assert "zanzibar" not in known.without_forgotten(f"{before} {TEXT} {after}").lower().replace(before.lower(), "")


@given(st.text(max_size=200))
def test_nothing_forgotten_changes_nothing(text: str) -> None:
    assert Forgotten([]).without_forgotten(text) is text
    assert not Forgotten([])


def test_no_word_of_it_can_be_read_in_the_decision() -> None:
    noted = msgspec.json.encode(decision([TEXT])).decode().lower()

    assert not any(word in noted for word in ("zanzibar", "cluster", "release", "deploy"))
    assert decision([TEXT])["hashes"] != decision([TEXT])["hashes"]


def test_a_single_word_is_taken_out_as_a_word_only() -> None:
    assert forgotten("ok").without_forgotten("a token is ok here") == "a token is  here"


def test_chinese_is_recognised_without_blanks() -> None:
    assert "总是用" not in forgotten("总是用中文回答").without_forgotten("好的,请总是用中文回答,谢谢")


def test_a_bullet_goes_with_its_references_names_and_keywords() -> None:
    bullets = f'- said by the user: "{TEXT}" [1]\n\nReusable knowledge:\n- verify with `pytest -q` [2]\n'
    left = removal.output(Output(RAW.format(text=TEXT), SUMMARY + bullets, "deploy_the_zanzibar"), forgotten(TEXT))

    assert "anzibar" not in left.raw_memory + left.rollout_summary
    assert left.rollout_slug is None
    assert output_shape.problem(left) is None
    assert "pytest -q" in left.raw_memory
    assert "keywords: pytest" in left.raw_memory
    assert "[1]" not in left.raw_memory


def test_an_extraction_with_no_bullet_left_teaches_nothing() -> None:
    raw = RAW.format(text=TEXT).replace("- verify with `pytest -q` (exit 0 here) [2]\n", "")

    assert removal.output(Output(raw, SUMMARY, "x"), forgotten(TEXT)) == Output("", "")


def test_an_extraction_that_holds_nothing_of_it_is_the_same() -> None:
    found = Output(RAW.format(text="Something else entirely, about trains."), SUMMARY, "x")

    assert removal.output(found, forgotten(TEXT)) is found


def test_notes_that_say_it_go_unless_they_are_newer(tmp_path: Path) -> None:
    folder = tmp_path / "extensions" / "ad_hoc" / "notes"
    folder.mkdir(parents=True)
    names = {
        "older": "2026-11-15T08-00-00-a.md", "newer": "2026-11-15T10-00-00-a.md",
        "other": "2026-11-15T08-00-00-b.md", "change": "2026-11-15T10-00-00-c.md",
    }  # fmt: skip
    for name in ("older", "newer"):
        (folder / names[name]).write_text(f"remember: {TEXT}\n", "utf-8")
    (folder / names["other"]).write_text("remember: use tabs\n", "utf-8")
    (folder / names["change"]).write_text(f"change: {TEXT}\nto: deploy by hand\n", "utf-8")

    changed = removal.workspace(tmp_path, forgotten(TEXT))

    assert changed == [f"extensions/ad_hoc/notes/{names[name]}" for name in ("older", "change")]
    assert sorted(path.name for path in folder.iterdir()) == sorted(set(names.values()) - {names["older"]})
    assert (folder / names["change"]).read_text("utf-8") == "remember: deploy by hand\n"
