"""What a person takes away or changes: shown first, asked about, and never picked from several."""

from __future__ import annotations

import os
import re
import sys
from importlib import resources
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest
from command import Command
from talking import checkout, teach

import processes
from commonplace.config import edit
from commonplace.errors import BadSetting
from commonplace.memory.entries import KINDS
from commonplace.surfaces.cli import learn_report


class Person:
    """Sits at a terminal and answers every question alike."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[str] = []
        self.says_yes = False
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: True))
        monkeypatch.setattr(click, "confirm", self._answer)

    def _answer(self, question: str, **_: Any) -> bool:
        self.asked.append(question)
        if not self.says_yes:
            raise click.Abort
        return True


@pytest.fixture
def person(monkeypatch: pytest.MonkeyPatch) -> Person:
    return Person(monkeypatch)


def texts(commonplace: Command) -> list[str]:
    return [each["text"] for each in commonplace.ok("memory", "list")["entries"]]


def test_a_text_that_means_several_entries_removes_none_of_them(home: Path, commonplace: Command) -> None:
    teach(home)
    before = commonplace.ok("memory", "list")["entries"]
    meant = [each["id"] for each in before if "project" in each["text"]]
    said = commonplace.refused("bad_input", "memory", "forget", "project", "--yes")

    assert len(meant) > 1
    assert said.startswith(f"'project' means {len(meant)} entries: ")
    assert all(each in said for each in meant)
    assert commonplace.ok("memory", "list")["entries"] == before
    assert meant[0] in commonplace.ok("memory", "forget", meant[0])["removed"]
    assert meant[1] in {each["id"] for each in commonplace.ok("memory", "list")["entries"]}


@pytest.mark.parametrize("words", [("pin", "project"), ("note", "use tabs", "--change", "project")])
def test_a_text_that_means_several_entries_changes_none_of_them(
    words: tuple[str, ...], home: Path, commonplace: Command
) -> None:
    teach(home)
    before = commonplace.ok("memory", "list")["entries"]
    said = commonplace.refused("bad_input", "memory", *words)

    assert said.startswith("'project' means ")
    assert commonplace.ok("memory", "list")["entries"] == before
    one = next(each for each in before if "quokkas" in each["text"])
    assert commonplace.ok("memory", "pin", "quokkas") == {"id": one["id"], "pinned": True}


def test_the_whole_text_of_an_entry_means_that_entry(home: Path, commonplace: Command) -> None:
    teach(home)
    entry = next(each for each in commonplace.ok("memory", "list")["entries"] if "quokkas" in each["text"])

    assert commonplace.ok("memory", "forget", entry["text"].strip('"'))["removed"] == [entry["id"]]


def test_forgetting_shows_what_would_go_and_asks(home: Path, commonplace: Command, person: Person) -> None:
    teach(home)
    before = texts(commonplace)
    entry = next(each for each in commonplace.ok("memory", "list")["entries"] if "quokkas" in each["text"])
    ran = commonplace("memory", "forget", "quokkas")

    assert ran.code == 130
    assert ran.out.startswith(f"{entry['id']} would go; ")
    assert entry["text"] in ran.out
    assert person.asked == ["Forget this?"]
    assert texts(commonplace) == before
    assert commonplace("memory", "forget", "quokkas", "--yes").code == 0
    assert len(person.asked) == 1
    assert not any("quokkas" in text for text in texts(commonplace))


def test_deleting_a_session_shows_which_one_and_asks(home: Path, commonplace: Command, person: Person) -> None:
    teach(home)
    threads = commonplace.ok("sessions", "list")["threads"]
    chosen = threads[0]["thread_id"]
    ran = commonplace("sessions", "delete", chosen)

    assert ran.code == 130
    assert chosen in ran.out
    assert threads[0]["path"] in ran.out
    assert len(commonplace.ok("sessions", "list")["threads"]) == len(threads)
    person.says_yes = True
    assert commonplace("sessions", "delete", chosen).code == 0
    assert person.asked == ["Delete this thread?"] * 2
    assert len(commonplace.ok("sessions", "list")["threads"]) == len(threads) - 1


def test_a_note_counts_at_once(home: Path, commonplace: Command, tmp_path: Path) -> None:
    teach(home)
    shop = checkout(tmp_path / "shop", "shop")
    commonplace.ok("memory", "note", "Invoices are numbered by year.", "--project", shop)

    assert any("Invoices are numbered" in text for text in texts(commonplace))
    assert "Invoices are numbered" in commonplace.ok("memory", "prompt", "-C", shop)["text"]


def test_a_note_is_the_first_thing_in_an_empty_home(home: Path, commonplace: Command) -> None:
    commonplace.ok("memory", "note", "Answers are short.", "--global")

    assert [text.strip('"') for text in texts(commonplace)] == ["Answers are short."]


FILE = """# mine
model = "openai:x"  # the good one
fsync = "line"

[memory] # lessons
use = true
exclude = ["a", "b"]

[providers.local]
base_url = "http://127.0.0.1:1/v1"
"""


@pytest.mark.parametrize(
    ("key", "value", "old", "new"),
    [
        ("fsync", "never", 'fsync = "line"', 'fsync = "never"'),
        ("model", "openai:y", 'model = "openai:x"  # the good one', 'model = "openai:y"  # the good one'),
        ("memory.use", "false", "use = true", "use = false"),
        ("memory.use_memories", "false", "use = true", "use = false"),
        ("memory.exclude", "c", 'exclude = ["a", "b"]', 'exclude = ["c"]'),
        ("memory.review", "true", 'exclude = ["a", "b"]\n', 'exclude = ["a", "b"]\nreview = true\n'),
        ("sandbox", "read-only", 'fsync = "line"\n', 'fsync = "line"\nsandbox = "read-only"\n'),
        ("compaction.remote", "true", "/v1\"\n", "/v1\"\n\n[compaction]\nremote = true\n"),
        ("fsync", None, 'fsync = "line"\n', ""),
        ("undo", None, "", ""),
    ],
)  # fmt: skip
def test_one_line_of_the_settings_changes(key: str, value: str | None, old: str, new: str, home: Path) -> None:
    home.mkdir()
    (home / "config.toml").write_text(FILE, "utf-8")
    edit.change(home, key, value)

    assert (home / "config.toml").read_text("utf-8") == FILE.replace(old, new, 1)


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("memory.backgroud", "true", "Did you mean memory.background?"),
        ("nonsense", "true", "`config show` lists all."),
        ("memory.use", "maybe", "must be true or false"),
        ("memory.max_rollout_age_days", "91", "from 0 to 90"),
        ("fsync", "often", "Use one of turn, line, never."),
    ],
)
def test_a_wrong_setting_changes_nothing(key: str, value: str, says: str, home: Path) -> None:
    home.mkdir()
    (home / "config.toml").write_text(FILE, "utf-8")
    with pytest.raises(BadSetting) as refused:
        edit.change(home, key, value)

    assert says in refused.value.sentence()
    assert (home / "config.toml").read_text("utf-8") == FILE


@pytest.mark.parametrize("text", ["memory = {use = true}\n", "memory.use = true\n", '"memory".use = true', "not toml"])
def test_a_file_that_is_not_changed_safely_stays(text: str, home: Path) -> None:
    home.mkdir()
    (home / "config.toml").write_text(text, "utf-8")
    with pytest.raises(BadSetting):
        edit.change(home, "memory.use", "false")

    assert (home / "config.toml").read_text("utf-8") == text


def test_config_set_says_what_counts_now(home: Path, commonplace: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    done = commonplace.ok("config", "set", "memory.review", "true")

    assert done == {
        "key": "memory.review", "value": True, "source": "config.toml", "path": str(home / "config.toml"),
    }  # fmt: skip
    assert commonplace.ok("config", "unset", "memory.review")["value"] is False
    assert commonplace("config", "set", "memory.review", "yes").code == 1
    assert commonplace("config", "set", "memory.review", "true").out == "memory.review is true now (config.toml).\n"
    assert commonplace("config", "set", "memory.exclude", "a,b").out.startswith('memory.exclude is ["a", "b"] now ')
    monkeypatch.setenv("COMMONPLACE_MEMORY_REVIEW", "true")
    assert "overrides" in commonplace("config", "set", "memory.review", "false").err


@pytest.mark.parametrize(
    ("words", "near"),
    [(["sesions", "list"], "sessions"), (["memory", "serch", "x"], "search"), (["config", "shwo"], "show")],
)
def test_a_misspelt_command_gets_the_nearest_one(words: list[str], near: str, commonplace: Command) -> None:
    ran = commonplace(*words)

    assert ran.code == 2
    assert f"Did you mean '{near}'?" in ran.err
    assert commonplace("xyzzy").err.endswith("No such command 'xyzzy'.\n")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["search", "x"], "Did you mean 'sessions search' or 'memory search'?"),
        (["forget", "x"], "Did you mean 'memory forget'?"),
        (["help"], "Did you mean '--help'?"),
        (["sessions", "help"], "Did you mean '--help'?"),
        (["xyzzy"], "No such command 'xyzzy'.\n"),
    ],
)
def test_a_command_in_another_place_is_named(words: list[str], says: str, commonplace: Command) -> None:
    ran = commonplace(*words)

    assert ran.code == 2
    assert says in ran.err


def test_kinds_have_the_same_names_everywhere(home: Path, commonplace: Command) -> None:
    teach(home)
    prompt = resources.files("commonplace.learning.extract.model").joinpath("prompt.md").read_text("utf-8")
    listed = {each["kind"] for each in commonplace.ok("memory", "list")["entries"]}

    assert set(re.findall(r"^  - `(\w+)`:", prompt, re.MULTILINE)) == {*KINDS}
    assert f"[{'|'.join(KINDS)}]" in "".join(commonplace("memory", "list", "--help").out.split())
    assert listed <= {*KINDS}
    assert set(learn_report.COLOURS) == {*KINDS}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_gets_a_script_that_asks_the_program(shell: str, commonplace: Command) -> None:
    assert f"_COMMONPLACE_COMPLETE={shell}_complete" in commonplace("completion", shell).out


def test_completions_name_commands_and_options() -> None:
    def complete(words: str) -> list[str]:
        asked = {"_COMMONPLACE_COMPLETE": "bash_complete", "COMP_WORDS": words}
        place = {"COMP_CWORD": str(len(words.split(" ")) - 1)}
        ran = processes.run([], env=dict(os.environ) | asked | place, text=True)
        return [line.partition(",")[2] for line in ran.stdout.splitlines()]

    assert complete("commonplace se") == ["setup", "sessions"]
    assert complete("commonplace memory fo") == ["forget"]
    assert complete("commonplace completion z") == ["zsh"]
    assert "--undo" in complete("commonplace setup --u")
