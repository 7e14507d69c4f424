"""`sessions compact`: for our threads, and to look at for any file."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from command import Command

from anchors.scripted_responses import ScriptedResponses, failure, reply

SHAPE = {"status", "tokens_before", "tokens_after", "items", "digest", "score", "fallback", "contract"}


@pytest.fixture
def talk(tmp_path: Path) -> Path:
    """A long session of some agent."""
    lines: list[dict[str, Any]] = [{"role": "user", "text": "fix src/auth.py, and never touch src/legacy.py"}]
    for number in range(80):
        lines.append({"role": "tool", "name": "shell", "text": f"def handler_{number}(): pass\n" * 60})
        lines.append(
            {"role": "assistant", "text": f"I found that handler_{number} in src/mod_{number}.py drops the token."}
        )
    lines.append({"role": "user", "text": "now run pytest -q tests/test_auth.py"})
    path = tmp_path / "talk.jsonl"
    told = [
        {"session": "s", "id": str(place), "time": "2026-03-01T10:00:00Z", "cwd": "/repo", **line}
        for place, line in enumerate(lines)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in told))
    return path


def texts(document: Any) -> str:
    return json.dumps(document["items"])


def test_a_foreign_file_is_looked_at_and_not_touched(commonplace: Command, talk: Path) -> None:
    before = talk.read_bytes()
    made = commonplace.ok("sessions", "compact", talk, "--dry-run", "--window", 20_000)
    assert set(made) == SHAPE
    assert made["status"] == "compacted"
    assert made["fallback"] is True
    assert all(made["contract"].values())
    assert made["tokens_after"] <= 6_000 < made["tokens_before"]
    assert set(made["score"]) == {"r_p", "r_d", "constraints"}
    assert made["score"]["constraints"] == 1.0
    assert "never touch src/legacy.py" in texts(made)
    assert "now run pytest -q tests/test_auth.py" in texts(made)
    assert talk.read_bytes() == before
    assert "rolled" not in commonplace.refused("foreign_file", "sessions", "compact", talk)


def test_a_thread_of_ours_goes_on_from_what_was_kept(commonplace: Command, talk: Path) -> None:
    commonplace.ok("sessions", "import", "--from", "transcript", "--path", talk)
    thread = commonplace.ok("sessions", "list")["threads"][0]["thread_id"]
    before = commonplace.ok("sessions", "context", thread)
    made = commonplace.ok("sessions", "compact", thread, "--window", 20_000)
    after = commonplace.ok("sessions", "context", thread)
    assert made["status"] == "compacted"
    assert len(after["items"]) < len(before["items"])
    assert [item["content"] for item in after["items"]] == [item["content"] for item in made["items"]]
    assert after["window_number"] == before["window_number"] + 1
    shown = commonplace.ok("sessions", "show", thread)
    assert shown["compactions"][0]["score"] == made["score"]
    assert len(shown["calls"]) == 80
    assert commonplace.ok("sessions", "verify", thread)["ok"]
    again = commonplace.ok("sessions", "compact", thread, "--window", 20_000)
    assert again["status"] == "unchanged"
    assert "Nothing to do" in commonplace("sessions", "compact", thread, "--window", 20_000).out


def test_the_target_and_the_window_can_be_set(commonplace: Command, talk: Path) -> None:
    small = commonplace.ok("sessions", "compact", talk, "--dry-run", "--window", 20_000, "--target", 10)
    assert small["tokens_after"] <= 2_000
    commonplace.refused("window_too_small", "sessions", "compact", talk, "--dry-run", "--window", 300)
    commonplace.refused("bad_setting", "sessions", "compact", talk, "--dry-run", "--model", "nobody:x")
    assert commonplace("sessions", "compact", talk, "--dry-run", "--target", 99).code == 2
    assert commonplace.ok("sessions", "compact", talk, "--dry-run")["status"] == "unchanged"


def test_people_see_what_is_kept(commonplace: Command, talk: Path) -> None:
    ran = commonplace("sessions", "compact", talk, "--dry-run", "--window", 20_000)
    assert ran.code == 0
    assert "tokens became" in ran.out
    assert "never touch src/legacy.py" in ran.out
    assert "## Files" in ran.out


def test_a_message_that_is_kept_is_not_said_again_in_the_digest(commonplace: Command, talk: Path) -> None:
    made = commonplace.ok("sessions", "compact", talk, "--dry-run", "--window", 20_000)
    assert texts(made).count("never touch src/legacy.py") == 1
    assert "never touch src/legacy.py" not in made["digest"]


def test_the_digest_is_shown_also_when_nothing_has_to_be_compacted_and_has_the_size_that_was_asked_for(
    commonplace: Command, talk: Path
) -> None:
    small = commonplace.ok("sessions", "compact", talk, "--dry-run", "--digest-tokens", 300)
    assert small["status"] == "unchanged"
    assert 0 < len(small["digest"]) <= 1_200
    alone = commonplace.ok("sessions", "compact", talk, "--dry-run", "--window", 20_000, "--digest-tokens", 300)
    assert 0 < len(alone["digest"]) <= 1_200
    assert len(commonplace.ok("sessions", "compact", talk, "--dry-run", "--window", 20_000)["digest"]) > 1_200


def test_what_was_rolled_back_does_not_come_back(commonplace: Command, talk: Path) -> None:
    commonplace.ok("sessions", "import", "--from", "transcript", "--path", talk)
    thread = commonplace.ok("sessions", "list")["threads"][0]["thread_id"]
    commonplace.ok("sessions", "rollback", thread, "--turns", 1)
    made = commonplace.ok("sessions", "compact", thread, "--window", 20_000, "--dry-run")
    assert "tests/test_auth.py" not in texts(made)
    assert "never touch src/legacy.py" in texts(made)


@pytest.mark.parametrize("works", [True, False], ids=["a model", "a model that fails"])
def test_a_model_writes_the_summary_and_the_digest_stands_in_for_one_that_fails(
    commonplace: Command, talk: Path, works: bool
) -> None:
    steps = [reply("The handlers drop the token; auth comes next.")] if works else [failure("server_error")] * 2
    with ScriptedResponses(steps) as server:
        home = Path(os.environ["COMMONPLACE_HOME"])
        home.mkdir(parents=True, exist_ok=True)
        config = f'[providers.mock]\napi = "responses"\nbase_url = "{server.base_url}"\nretries = 0\n'
        (home / "config.toml").write_text(config)
        made = commonplace.ok("sessions", "compact", talk, "--dry-run", "--window", 20_000, "--model", "mock:gpt-5.5")
        server.add(*steps)
        shown = commonplace("sessions", "compact", talk, "--dry-run", "--window", 20_000, "--model", "mock:gpt-5.5").out
    assert ("The handlers drop the token" in shown) is works
    assert made["fallback"] is not works
    assert ("The handlers drop the token" in texts(made)) is works
    assert all(made["contract"].values())
