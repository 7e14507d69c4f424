"""`commonplace memory review` in a real terminal: one key for each entry, stored at once, rebuilt at the end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import taught_homes as taught
from command import Command

from commonplace.rollout import decisions
from exec_driver import Place
from ledgers import assistant, user
from terminal import CTRL_C, CTRL_D, ENTER, UP, Terminal

Json = dict[str, Any]
THREADS = [f"0198c0de-0000-7000-8000-00000000000{number}" for number in range(1, 4)]
WISHES = [
    "From now on, never push to main without asking me first.",
    "From now on, always write the changelog in German.",
    "From now on, never use abbreviations in names.",
]
HINT = "k keep · d drop · e edit · c more context · n or Enter skip · s stop ›"


@pytest.fixture
def place(tmp_path: Path, home: Path, commonplace: Command, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A home in which three wishes wait for a review."""
    monkeypatch.setenv("COMMONPLACE_MEMORY_REVIEW", "true")
    monkeypatch.setenv("COMMONPLACE_NOW", "2026-11-15T12:00:00Z")
    for thread, wish in zip(THREADS, WISHES, strict=True):
        taught.session(thread, "shop").turn(user(wish), assistant(f"Understood: {thread}.")).write_home(home)
    commonplace.ok("memory", "run")
    assert len(waiting(commonplace)) == len(WISHES)
    (tmp_path / "demo").mkdir()
    (tmp_path / "user").mkdir()
    return Place(tmp_path)


def waiting(commonplace: Command) -> list[Json]:
    return list(commonplace.ok("memory", "review")["candidates"])


def listed(commonplace: Command) -> dict[str, str]:
    return {each["id"]: each["text"] for each in commonplace.ok("memory", "list")["entries"]}


def verdicts(home: Path) -> dict[str, bool]:
    return {name: found.is_kept for name, found in decisions.reviews(home).items()}


def terminal(place: Place, **more: str) -> Terminal:
    return Terminal(place, "memory", "review", more={"COMMONPLACE_MEMORY_REVIEW": "true", **more})


def asked(shown: Terminal, number: int, of: int = 3) -> str:
    """Return the screen when an entry is asked about."""
    return shown.wait(lambda text: f"{number} of {of} · candidate" in text and text.endswith(HINT))


def test_each_entry_has_a_screen_and_each_answer_is_one_key(commonplace: Command, place: Place) -> None:
    first, second, third = waiting(commonplace)
    with terminal(place) as shown:
        screen = asked(shown, 1)
        assert f"candidate {first['id']}" in screen
        assert first["text"] in screen
        assert f"{first['kind']} for github.com/acme/shop" in screen
        assert f"session {first['chain'][0]['thread_id']}, turn 1" in screen
        assert "seen on 2026-11-15" in screen
        assert f"in doubt: {first['reason']}"[:60] in screen
        shown.type("k")
        screen = asked(shown, 2)
        assert second["text"] in screen
        assert first["text"] not in screen
        shown.type("D")
        asked(shown, 3)
        shown.type("n")
        assert shown.end() == 0
        assert "1 kept, 1 dropped; 1 still waits." in shown.text

    assert verdicts(place.home) == {first["id"]: True, second["id"]: False}
    assert listed(commonplace) == {first["id"]: first["text"]}
    assert [each["id"] for each in waiting(commonplace)] == [third["id"]]
    assert first["text"].strip('"') in (place.home / "memories" / "MEMORY.md").read_text("utf-8")


def test_what_was_decided_is_not_asked_again(commonplace: Command, place: Place) -> None:
    for each in waiting(commonplace)[:2]:
        commonplace.ok("memory", "drop", each["id"])
    with terminal(place) as shown:
        asked(shown, 1, of=1)
        shown.type("k")
        assert shown.end() == 0
    with terminal(place) as shown:
        assert shown.end() == 0
        assert "Nothing waits for a review." in shown.text


@pytest.mark.parametrize("key", ["s", "q", CTRL_C, CTRL_D])
def test_a_review_can_be_stopped_and_keeps_what_was_decided(commonplace: Command, place: Place, key: str) -> None:
    first = waiting(commonplace)[0]
    with terminal(place) as shown:
        asked(shown, 1)
        shown.type("k")
        asked(shown, 2)
        shown.type(key)
        assert shown.end() == 0
        assert "1 kept, 0 dropped; 2 still wait." in shown.text

    assert list(listed(commonplace)) == [first["id"]]


def test_a_decision_is_stored_before_the_next_question(commonplace: Command, place: Place) -> None:
    first = waiting(commonplace)[0]
    with terminal(place) as shown:
        asked(shown, 1)
        shown.type("k")
        asked(shown, 2)
        shown.process.kill()
        shown.process.wait(60)

    assert verdicts(place.home) == {first["id"]: True}
    assert len(waiting(commonplace)) == 2
    commonplace.ok("memory", "run")
    assert list(listed(commonplace)) == [first["id"]]


def test_a_window_that_is_closed_leaves_what_was_decided(commonplace: Command, place: Place) -> None:
    first = waiting(commonplace)[0]
    shown = terminal(place)
    asked(shown, 1)
    shown.type("d")
    asked(shown, 2)
    shown.hang_up()

    assert verdicts(place.home) == {first["id"]: False}


def test_other_keys_answer_nothing(commonplace: Command, place: Place) -> None:
    with terminal(place) as shown:
        asked(shown, 1)
        shown.type(f"xö{UP}1")
        shown.type(ENTER)
        asked(shown, 2)
        shown.type("s")
        assert shown.end() == 0
        assert "0 kept, 0 dropped; 3 still wait." in shown.text
    assert verdicts(place.home) == {}


def test_more_context_is_the_turn_around_the_words(commonplace: Command, place: Place) -> None:
    first = waiting(commonplace)[0]
    with terminal(place) as shown:
        asked(shown, 1)
        shown.type("c")
        screen = shown.wait(lambda text: text.count(HINT) == 2 and text.endswith(HINT))
        assert f"› {first['text'].strip(chr(34))}" in screen
        assert f"· Understood: {first['chain'][0]['thread_id']}." in screen
        Path(first["chain"][0]["path"]).unlink()
        shown.type("c")
        shown.wait(lambda text: "There is no more" in text and text.endswith(HINT))
        shown.type("s")
        assert shown.end() == 0


def editor(folder: Path, script: str) -> str:
    path = folder / "editor.sh"
    path.write_text(f"#!/bin/sh\n{script}\n", "utf-8")
    path.chmod(0o700)
    return str(path)


def test_an_entry_is_edited_in_the_editor_and_becomes_a_note(commonplace: Command, place: Place) -> None:
    first = waiting(commonplace)[0]
    other = "Push to main only on Mondays,\nand tell the team."
    program = editor(place.root, f'cp "$1" {place.root}/seen\nprintf \'{other}\\n\' > "$1"\ntouch -d 2030-01-01 "$1"')
    with terminal(place, EDITOR=program) as shown:
        asked(shown, 1)
        shown.type("e")
        asked(shown, 2)
        shown.type("s")
        assert shown.end() == 0
        assert "0 kept, 0 dropped, 1 edited; 2 still wait." in shown.text

    assert (place.root / "seen").read_text("utf-8") == first["text"].strip('"') + "\n"
    assert verdicts(place.home) == {first["id"]: False}
    ((name, text),) = listed(commonplace).items()
    assert text == '"Push to main only on Mondays, and tell the team."'
    assert commonplace.ok("memory", "why", name)["entry"]["scope"] == "github.com/acme/shop"
    assert len(waiting(commonplace)) == 2


def test_without_an_editor_a_line_is_asked_for(commonplace: Command, place: Place) -> None:
    first = waiting(commonplace)[0]
    shorter = " ".join(first["text"].strip('"').split()[3:])  # the same wish in fewer words
    with terminal(place) as shown:
        asked(shown, 1)
        shown.type("e")
        shown.wait("on one line")
        shown.say("")
        shown.wait("Nothing was changed.")
        asked(shown, 1)
        shown.type("e")
        shown.wait(lambda text: text.count("on one line") == 2)
        shown.say(shorter)
        asked(shown, 2)
        shown.type("s")
        assert shown.end() == 0

    assert list(listed(commonplace).values()) == [f'"{shorter}"']
    assert len(waiting(commonplace)) == 2


def test_an_editor_that_fails_changes_nothing(commonplace: Command, place: Place) -> None:
    with terminal(place, EDITOR=editor(place.root, "exit 3")) as shown:
        asked(shown, 1)
        shown.type("e")
        shown.wait(lambda text: "editor.sh" in text and text.count(HINT) == 2)
        shown.type("s")
        assert shown.end() == 0
    assert verdicts(place.home) == {}
