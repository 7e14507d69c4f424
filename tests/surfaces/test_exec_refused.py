"""What `commonplace exec` cannot use gives one sentence, and changes nothing on disk."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest
from agents import stamps
from command import Command

from anchors.scripted_responses import ScriptedResponses, reply
from exec_driver import Place, make_place, run_exec

NOWHERE = "http://127.0.0.1:9/v1"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A home with settings, as this process's own."""
    found = make_place(tmp_path, NOWHERE)
    monkeypatch.chdir(found.cwd)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    typed(monkeypatch, b"")
    return found


def typed(monkeypatch: pytest.MonkeyPatch, given: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))


def unchanged(place: Place) -> dict[str, tuple[int, int, str]]:
    return stamps(place.root)


REFUSED: dict[str, tuple[str, list[str], str]] = {
    "no prompt": ("bad_input", [], "nothing to do"),
    "a blank prompt": ("bad_input", ["  \n"], "nothing to do"),
    "a prompt that is too long": ("bad_input", ["x" * 1_048_577], "1,048,577 characters"),
    "a prompt that is no text": ("bad_input", ["\udcff"], "not valid Unicode"),
    "a picture that is not there": ("bad_input", ["-i", "none.png", "x"], "picture"),
    "a picture that is none": ("bad_input", ["-i", "config", "x"], "picture"),
    "a picture that is a folder": ("bad_input", ["-i", ".", "x"], "picture"),
    "a schema that is not there": ("bad_input", ["--output-schema", "none.json", "x"], "none.json cannot be read"),
    "a schema that is no JSON": ("bad_input", ["--output-schema", "config", "x"], "config is no JSON object"),
    "a schema that is a list": ("bad_input", ["--output-schema", "list", "x"], "list is no JSON object"),
    "a schema that is deep": ("bad_input", ["--output-schema", "deep", "x"], "deep is no JSON object"),
    "a file for the answer in no folder": ("bad_input", ["-o", "none/answer", "x"], "none/answer cannot be written"),
    "a file for the answer that is a folder": ("bad_input", ["-o", ".", "x"], "cannot be written"),
    "a folder that is not there": ("bad_input", ["-C", "none", "x"], "There is no folder"),
    "a folder that is a file": ("bad_input", ["-C", "config", "x"], "There is no folder"),
    "a setting that is no pair": ("bad_input", ["-c", "model", "x"], "no key=value"),
    "a setting without a name": ("bad_input", ["-c", "=1", "x"], "no key=value"),
    "a setting of the wrong kind": ("bad_setting", ["-c", "compaction.at_tokens=many", "x"], "must be a number"),
    "a setting out of its range": ("bad_setting", ["-c", "compaction.target_percent=99", "x"], "99"),
    "a setting that is no choice": ("bad_setting", ["-c", "sandbox_mode=open", "x"], "'open'"),
    "a model that is a number": ("bad_setting", ["-c", "model=5", "x"], "must be a text"),
    "a model that is a number, of a provider": (
        "bad_setting",
        ["-c", "model=5", "-c", "model_provider=mock", "x"],
        "text",
    ),
    "a provider that is not there": ("bad_setting", ["-c", "model_provider=none", "-m", "m", "x"], "who serves"),
    "a provider's address that is none": ("bad_setting", ["-c", "providers.mock.base_url=5", "x"], "providers.mock"),
    "a provider's field that is none": ("bad_setting", ["-c", "providers.mock.nonsense=5", "x"], "providers.mock"),
    "a provider that is no table": ("bad_setting", ["-c", "providers.mock.headers=5", "x"], "providers.mock"),
    "a model that nobody serves": ("bad_setting", ["-m", "none:model", "x"], "who serves"),
    "a model that learns": ("bad_setting", ["-m", "embedded", "x"], "embedded"),
    "a key that is missing": ("bad_setting", ["-m", "openai:gpt-5.5", "x"], "OPENAI_API_KEY is not set"),
    "a thread that is not there": ("unknown_thread", ["resume", "nobody", "x"], "nobody"),
    "a thread to fork that is not there": ("unknown_thread", ["fork", "nobody", "x"], "nobody"),
    "no thread to go on with here": ("bad_input", ["resume", "--last", "x"], "no session in this folder"),
    "no thread to go on with": ("bad_input", ["resume", "--last", "--all", "x"], "There is no session to go on with"),
    "a thread that would be gone on with unwritten": ("bad_input", ["--ephemeral", "resume", "t", "x"], "written to"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_it_refuses(place: Place, commonplace: Command, what: str) -> None:
    code, arguments, words = REFUSED[what]
    (place.cwd / "config").write_text("model = nothing")
    (place.cwd / "list").write_text("[]")
    (place.cwd / "deep").write_text('{"a":' * 100_000)
    before = unchanged(place)

    message = commonplace.refused(code, "exec", "--skip-git-repo-check", *arguments)

    assert words in message
    assert unchanged(place) == before


USAGE: dict[str, list[str]] = {
    "no thread": ["resume"],
    "no thread to fork": ["fork"],
    "two prompts": ["one", "two"],
    "two prompts for a thread": ["resume", "id", "one", "two"],
    "the last one of nothing": ["--last", "x"],
    "an option that there is not": ["--nonsense", "x"],
    "a sandbox that there is not": ["--sandbox", "open", "x"],
}


@pytest.mark.parametrize("what", USAGE)
def test_wrong_usage_is(place: Place, commonplace: Command, what: str) -> None:
    before = unchanged(place)

    ran = commonplace("exec", *USAGE[what])

    assert ran.code == 2
    assert "Traceback" not in ran.err
    assert (ran.out, unchanged(place)) == ("", before)


def test_no_model_is_one_sentence_that_says_how_to_set_one(
    place: Place, commonplace: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMMONPLACE_HOME", str(tmp_path / "none"))
    before = unchanged(place)

    ran = commonplace("exec", "--skip-git-repo-check", "do it")

    assert ran.code == 1
    assert ran.err.startswith("commonplace: No model is set. Set one, for example")
    assert (ran.err.count("\n"), ran.out, unchanged(place)) == (1, "", before)


def test_standard_input_that_is_no_text_is_refused(
    place: Place, commonplace: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed(monkeypatch, b"\xff\xfe")
    before = unchanged(place)

    assert commonplace.refused("bad_input", "exec", "-") == "Standard input is not UTF-8."
    assert unchanged(place) == before


@pytest.mark.parametrize("arguments", [[], ["-"]], ids=["no prompt", "a dash"])
def test_without_standard_input_a_prompt_is_asked_for(
    place: Place, commonplace: Command, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", None)

    assert commonplace.refused("bad_input", "exec", "--skip-git-repo-check", *arguments) == "There is no prompt."


def test_without_standard_input_an_argument_is_enough(
    place: Place, commonplace: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with ScriptedResponses([reply("Done.")]) as server:
        make_place(place.root, server.base_url)
        ran = commonplace("exec", "--skip-git-repo-check", "do it")

    assert (ran.code, ran.out) == (0, "Done.\n")


def test_nothing_is_forked_for_a_turn_that_cannot_run(place: Place, commonplace: Command) -> None:
    with ScriptedResponses([reply("One.")]) as server:
        make_place(place.root, server.base_url)
        thread = run_exec(place, "first").thread_id
    before = [path.name for path in place.ledgers()]

    for arguments in (["-m", "openai:gpt-5.5"], ["-C", "none"], ["--ephemeral"]):
        assert commonplace("exec", "--skip-git-repo-check", *arguments, "fork", thread, "second").code == 1

    assert [path.name for path in place.ledgers()] == before


def test_a_file_of_another_program_is_not_written_to(place: Place, commonplace: Command) -> None:
    with ScriptedResponses([reply("One.")]) as server:
        make_place(place.root, server.base_url)
        run_exec(place, "first")
    (ledger,) = place.ledgers()
    foreign = place.root / "elsewhere" / "sessions" / "2026" / "11" / "15" / ledger.name
    foreign.parent.mkdir(parents=True)
    ledger.rename(foreign)
    before = foreign.read_bytes()

    commonplace.refused("foreign_file", "exec", "--skip-git-repo-check", "resume", foreign, "second")

    assert foreign.read_bytes() == before


def test_a_broken_config_file_is_one_sentence(place: Place, commonplace: Command) -> None:
    (place.home / "config.toml").write_text("model = \n")

    assert "not valid TOML" in commonplace.refused("bad_setting", "exec", "do it")


def test_an_error_is_a_line_of_json_for_a_client_of_codex(place: Place, commonplace: Command) -> None:
    ran = commonplace("exec", "--skip-git-repo-check", "--experimental-json", "-m", "none:m", "x")

    assert ran.code == 1
    assert json.loads(ran.out)["error"]["code"] == "bad_setting"


def test_outside_a_repository_it_needs_a_flag_or_trust(place: Place, commonplace: Command) -> None:
    before = unchanged(place)

    message = commonplace.refused("bad_input", "exec", "-C", place.cwd, "do it")

    assert "in no git repository" in message
    assert unchanged(place) == before


@pytest.mark.parametrize(
    ("level", "code", "words"),
    [("untrusted", "bad_input", "in no git repository"), ("some", "bad_setting", "trust_level is 'some'")],
)
def test_only_trust_replaces_a_repository(
    place: Place, commonplace: Command, level: str, code: str, words: str
) -> None:
    with (place.home / "config.toml").open("a") as file:
        file.write(f'[projects."{place.cwd}"]\ntrust_level = "{level}"\n')

    assert words in commonplace.refused(code, "exec", "-C", place.cwd, "do it")
