"""`commonplace mcp install|uninstall`: other programs' files change in one place, and come back as they were."""

from __future__ import annotations

import json
import os
import stat
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from command import Command
from hypothesis import given
from hypothesis import strategies as st

from commonplace.clients import json_text, registration, toml_text

NOW = "2026-11-15T12:00:00Z"
STAMP = "20261115T120000Z"
CODEX = """# my settings
model = "gpt-5.5"   # the good one

[mcp_servers.other]
command = "other"
args = [
  "a",
  ["b"],
]

# below are projects
[projects."/repo/shop"]
trust_level = "trusted"
"""
SETTINGS = """{
    "model": "opus",
    "hooks": {
        "SessionStart": [
            {"hooks": [{"type": "command", "command": "date"}]}
        ],
        "Stop": []
    },
    "last": [1, 2,   3]
}
"""


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COMMONPLACE_NOW", NOW)
    monkeypatch.delenv("COMMONPLACE_HOME")
    folder = tmp_path / "user"
    folder.mkdir()
    return folder


def ours() -> str:
    return str(Path(sys.executable).with_name("commonplace"))


def write(path: Path, text: str, mode: int = 0o644) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    path.chmod(mode)
    return path


def test_codex_is_told_and_told_off(user: Path, commonplace: Command) -> None:
    config = write(user / ".codex" / "config.toml", CODEX, 0o640)
    done = commonplace.ok("mcp", "install", "codex", "--yes")

    text = config.read_text("utf-8")
    assert text.startswith(CODEX)
    assert tomllib.loads(text)["mcp_servers"]["commonplace"] == {"command": ours(), "args": ["mcp"]}
    backup = f"{config}.backup-{STAMP}"
    assert done == {"client": "codex", "files": [{"path": str(config), "changed": True, "backup": backup}]}
    assert Path(backup).read_text("utf-8") == CODEX
    assert stat.S_IMODE(Path(backup).stat().st_mode) == 0o600
    assert stat.S_IMODE(config.stat().st_mode) == 0o640

    again = commonplace.ok("mcp", "install", "codex", "--yes")
    assert again["files"] == [{"path": str(config), "changed": False, "backup": None}]
    assert config.read_text("utf-8") == text

    gone = commonplace.ok("mcp", "uninstall", "codex", "--yes")
    assert gone["files"][0]["backup"] == f"{backup}-2"
    assert config.read_text("utf-8") == CODEX
    assert commonplace.ok("mcp", "uninstall", "codex", "--yes")["files"][0]["changed"] is False


def test_claude_code_is_told_and_told_off(user: Path, commonplace: Command) -> None:
    state = write(user / ".claude.json", '{\n  "numStartups": 3,\n  "mcpServers": {\n    "x": {}\n  }\n}', 0o600)
    settings = write(user / ".claude" / "settings.json", SETTINGS)
    before = state.read_text("utf-8")
    done = commonplace.ok("mcp", "install", "claude-code", "--yes")

    assert [file["path"] for file in done["files"]] == [str(state), str(settings)]
    servers = json.loads(state.read_text("utf-8"))["mcpServers"]
    assert servers == {"x": {}, "commonplace": {"type": "stdio", "command": ours(), "args": ["mcp"], "env": {}}}
    hooks = json.loads(settings.read_text("utf-8"))["hooks"]
    assert [group["hooks"][0]["command"] for group in hooks["SessionStart"]] == [
        "date",
        f"{ours()} mcp hook session-start",
    ]
    assert hooks["SessionStart"][1]["matcher"] == "startup|clear|compact"
    assert [group["hooks"][0]["command"] for group in hooks["SessionEnd"]] == [f"{ours()} mcp hook session-end"]
    assert settings.read_text("utf-8").endswith('"last": [1, 2,   3]\n}\n')

    again = commonplace.ok("mcp", "install", "claude-code", "--yes")
    assert [file["changed"] for file in again["files"]] == [False, False]

    commonplace.ok("mcp", "uninstall", "claude-code", "--yes")
    assert state.read_text("utf-8") == before
    assert settings.read_text("utf-8") == SETTINGS


@pytest.mark.parametrize("client", ["codex", "claude-code"])
def test_files_that_are_not_there_are_made(client: str, user: Path, commonplace: Command) -> None:
    done = commonplace.ok("mcp", "install", client, "--yes")

    for file in done["files"]:
        assert file["backup"] is None
        assert stat.S_IMODE(Path(file["path"]).stat().st_mode) == 0o600
    commonplace.ok("mcp", "uninstall", client, "--yes")
    assert {Path(file["path"]).read_text("utf-8") for file in done["files"]} <= {"", "{}\n"}


def test_nothing_is_made_to_take_something_out(user: Path, commonplace: Command) -> None:
    for client in ("codex", "claude-code"):
        done = commonplace.ok("mcp", "uninstall", client, "--yes")
        assert not any(file["changed"] for file in done["files"])

    assert list(user.iterdir()) == []


def test_the_places_are_those_that_the_clients_look_at(
    user: Path, tmp_path: Path, commonplace: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "c"))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "d"))
    codex = commonplace.ok("mcp", "install", "codex", "--yes")
    claude = commonplace.ok("mcp", "install", "claude-code", "--yes")

    assert [file["path"] for file in codex["files"]] == [str(tmp_path / "c" / "config.toml")]
    found = [file["path"] for file in claude["files"]]
    assert found == [str(tmp_path / "d" / ".claude.json"), str(tmp_path / "d" / "settings.json")]
    assert list(user.iterdir()) == []


def test_a_home_of_one_s_own_is_passed_on(
    user: Path, tmp_path: Path, commonplace: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "a home"
    monkeypatch.setenv("COMMONPLACE_HOME", str(home))
    commonplace.ok("mcp", "install", "codex", "--yes", "--allow-notes")
    commonplace.ok("mcp", "install", "claude-code", "--yes")

    table = tomllib.loads((user / ".codex" / "config.toml").read_text("utf-8"))["mcp_servers"]["commonplace"]
    assert table == {"command": ours(), "args": ["mcp", "--allow-notes"], "env": {"COMMONPLACE_HOME": str(home)}}
    assert json.loads((user / ".claude.json").read_text("utf-8"))["mcpServers"]["commonplace"]["env"] == table["env"]
    settings = (user / ".claude" / "settings.json").read_text("utf-8")
    assert f"env 'COMMONPLACE_HOME={home}' {ours()} mcp hook session-start" in settings
    commonplace.ok("mcp", "install", "claude-code", "--yes", "--allow-notes")
    assert "session-start --allow-notes" in (user / ".claude" / "settings.json").read_text("utf-8")
    commonplace.ok("mcp", "uninstall", "claude-code", "--yes")
    assert (user / ".claude" / "settings.json").read_text("utf-8") == "{}\n"


def test_an_older_way_to_start_us_is_replaced(user: Path, commonplace: Command) -> None:
    config = write(
        user / ".codex" / "config.toml",
        'a = 1\n\n[mcp_servers.commonplace] # mine\ncommand = "/old/commonplace"\nargs = ["mcp"]\n'
        "\n# about b\n[b]\nc = 2\n",
    )
    hook = {"type": "command", "command": "/old/commonplace mcp hook session-start", "timeout": 10}
    groups = [{"hooks": [hook, {"type": "command", "command": "date"}]}]
    settings = write(user / ".claude" / "settings.json", json.dumps({"hooks": {"SessionStart": groups}}))
    commonplace.ok("mcp", "install", "codex", "--yes")
    commonplace.ok("mcp", "install", "claude-code", "--yes")

    text = config.read_text("utf-8")
    assert text.startswith("a = 1\n\n[mcp_servers.commonplace]\n")
    assert text.endswith("\n\n# about b\n[b]\nc = 2\n")
    assert "/old/" not in text
    told = json.loads(settings.read_text("utf-8"))["hooks"]["SessionStart"]
    assert [each["command"] for group in told for each in group["hooks"]] == [
        "date",
        f"{ours()} mcp hook session-start",
    ]


@pytest.mark.parametrize(
    ("client", "path", "text"),
    [
        ("codex", ".codex/config.toml", "model = \n"),
        ("codex", ".codex/config.toml", 'mcp_servers = { other = { command = "x" } }\n'),
        ("codex", ".codex/config.toml", "mcp_servers = 3\n"),
        ("codex", ".codex/config.toml", '[mcp_servers]\ncommonplace = { command = "x" }\n'),
        ("claude-code", ".claude.json", "{ not json"),
        ("claude-code", ".claude.json", "[]"),
        ("claude-code", ".claude.json", '{"mcpServers": []}'),
        ("claude-code", ".claude/settings.json", '{"hooks": 3}'),
        ("claude-code", ".claude/settings.json", '{"hooks": {"SessionStart": {}}}'),
    ],
)
def test_a_file_that_is_not_understood_stays_as_it_is(
    client: str, path: str, text: str, user: Path, commonplace: Command
) -> None:
    file = write(user / path, text)
    commonplace.refused("bad_input", "mcp", "install", client, "--yes")

    assert file.read_text("utf-8") == text
    assert [each for each in user.rglob("*") if each.is_file()] == [file]


def test_bytes_that_are_no_text_stay_as_they_are(user: Path, commonplace: Command) -> None:
    file = user / ".claude.json"
    file.write_bytes(b'{"a": "\xff"}')
    commonplace.refused("bad_input", "mcp", "install", "claude-code", "--yes")

    assert file.read_bytes() == b'{"a": "\xff"}'


def test_without_a_terminal_it_wants_to_be_told_yes(user: Path, commonplace: Command) -> None:
    assert "changes files of codex" in commonplace.refused("bad_input", "mcp", "install", "codex")
    assert list(user.iterdir()) == []


def test_the_change_is_shown(user: Path, commonplace: Command) -> None:
    write(user / ".codex" / "config.toml", CODEX)
    ran = commonplace("mcp", "install", "codex", "--yes")

    assert ran.code == 0
    assert "+[mcp_servers.commonplace]" in ran.out
    assert f"backup-{STAMP}" in ran.out
    assert "Nothing to change" in commonplace("mcp", "install", "codex", "--yes").out


def test_a_link_is_followed(user: Path, tmp_path: Path, commonplace: Command) -> None:
    real = write(tmp_path / "dotfiles" / "config.toml", CODEX)
    (user / ".codex").mkdir()
    (user / ".codex" / "config.toml").symlink_to(real)
    commonplace.ok("mcp", "install", "codex", "--yes")

    assert (user / ".codex" / "config.toml").is_symlink()
    assert "commonplace" in real.read_text("utf-8")
    assert (tmp_path / "dotfiles" / f"config.toml.backup-{STAMP}").is_file()


def test_a_file_that_changes_meanwhile_is_left_alone(user: Path) -> None:
    from datetime import UTC, datetime

    from commonplace.errors import BadInput

    file = write(user / ".codex" / "config.toml", CODEX)
    plan = registration.install("codex", os.environ)
    file.write_text("other = 1\n", "utf-8")

    with pytest.raises(BadInput, match="meanwhile"):
        registration.apply("codex", plan, datetime.now(UTC))
    assert file.read_text("utf-8") == "other = 1\n"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a = 1",
        "a = 1\n",
        "a = 1\n\n",
        "a = 1\r\n[b]\r\nc = 2\r\n",
        "# only words",
        '[a]\nb = """\n[mcp_servers.x]\n"""\n',
        "[[a]]\nb = 1\n[[a]]\nb = 2\n",
    ],
)
def test_a_table_that_is_put_and_dropped_leaves_no_trace(text: str) -> None:
    path = ("mcp_servers", "commonplace")
    values: dict[str, Any] = {
        "command": 'with "quotes" \\ and é\t',
        "args": ["a", "b c"],
        "env": {"A-b": "1", "c d": "2"},
    }
    more = toml_text.put(text, path, values)

    assert tomllib.loads(more) == {**tomllib.loads(text), "mcp_servers": {"commonplace": values}}
    assert toml_text.drop(more, path) == text
    assert toml_text.put(more, path, values) == more


def test_tables_below_ours_go_with_it() -> None:
    text = 'a = 1\n\n[mcp_servers.commonplace]\ncommand = "x"\n\n[mcp_servers.commonplace.env]\nb = "c"\n\n[z]\n'

    assert toml_text.drop(text, ("mcp_servers", "commonplace")) == "a = 1\n\n[z]\n"


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), VALUES, max_size=5), st.sampled_from([None, 0, 1, 2, 4, "\t"]), VALUES, st.booleans())
def test_whatever_is_put_into_json_is_there_and_leaves_no_trace(
    document: dict[str, Any], indent: int | str | None, value: Any, ascii_only: bool
) -> None:
    document.pop("mcpServers", None)
    text = json.dumps(document, indent=indent, ensure_ascii=ascii_only)
    more = json_text.put(text, ("mcpServers", "commonplace"), value)

    assert json.loads(more) == {**document, "mcpServers": {"commonplace": value}}
    assert json_text.drop(more, ("mcpServers", "commonplace")) == text


@given(st.dictionaries(st.text(), VALUES, min_size=1, max_size=5), st.sampled_from([None, 2, "\t"]), VALUES, st.data())
def test_a_value_in_json_is_changed_in_its_place(
    document: dict[str, Any], indent: int | str | None, value: Any, data: st.DataObject
) -> None:
    key = data.draw(st.sampled_from(sorted(document)))
    text = json.dumps(document, indent=indent)

    assert json.loads(json_text.put(text, (key,), value)) == {**document, key: value}
    without = {name: each for name, each in document.items() if name != key}
    assert json.loads(json_text.drop(text, (key,))) == without


def test_our_command_is_found_beside_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    assert registration.command() == [str(tmp_path / "python"), "-m", "commonplace"]

    write(tmp_path / "commonplace", "#!/bin/sh\n", 0o755)
    assert registration.command() == [str(tmp_path / "commonplace")]
