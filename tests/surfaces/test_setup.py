"""`commonplace setup` and `setup --undo`: agents' files change in one place, and come back byte for byte."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import stat
import tomllib
from pathlib import Path
from typing import Any

import pytest
from command import Command

from commonplace.clients import json_text

CODEX = '# mine\nmodel = "gpt-5.5"   # the good one\n\n[projects."/repo"]\ntrust_level = "trusted"'
HOOKS = '{"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "date"}]}]}}\n'
SERVERS = '{"numStartups": 3,  "mcpServers": {"x": {}}}'
SETTINGS = '{\n    "permissions": {"allow": ["Bash(ls)"]},\n    "hooks": {"Stop": []}\n}\n'
OPENCODE = """{
  // my theme
  "theme": "dark", /* and
  more */
  "mcp": {
    "other": {"type": "local", "command": ["x"]}, // keep
  },
}
"""
GEMINI = '{"ui": {"theme": "x"}}'
FILES = {
    ".codex/config.toml": CODEX,
    ".codex/hooks.json": HOOKS,
    ".claude.json": SERVERS,
    ".claude/settings.json": SETTINGS,
    ".config/opencode/opencode.jsonc": OPENCODE,
    ".gemini/settings.json": GEMINI,
    ".copilot/mcp-config.json": '{"mcpServers": {}}',
}


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home folder of a person without any agent, and no agent's program on the PATH."""
    folder = tmp_path / "user"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return folder


def write(user: Path, files: dict[str, str] = FILES) -> None:
    for name, text in files.items():
        path = user / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
        path.chmod(0o640)


def tree(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Every file below a folder: its bytes and its permissions."""
    return {
        str(path.relative_to(folder)): (path.read_bytes(), stat.S_IMODE(path.stat().st_mode))
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def states(done: Any) -> dict[str, str]:
    return {row["agent"]: row["state"] for row in done["agents"]}


def test_every_agent_is_set_up_and_comes_back_byte_for_byte(user: Path, home: Path, commonplace: Command) -> None:
    write(user)
    before = tree(user)
    done = commonplace.ok("setup", "--yes", "--no-learn")

    assert set(states(done).values()) == {"done"}
    ours = f"COMMONPLACE_HOME={home}"
    config = tomllib.loads((user / ".codex/config.toml").read_text("utf-8"))
    assert config["mcp_servers"]["commonplace"]["env"] == {"COMMONPLACE_HOME": str(home)}
    for name in (".codex/hooks.json", ".claude/settings.json"):
        hooks = json.loads((user / name).read_text("utf-8"))["hooks"]
        command = hooks["SessionStart"][-1]["hooks"][0]["command"]
        assert ours in command
        assert command.endswith("mcp hook session-start")
        assert "UserPromptSubmit" not in hooks
    allowed = json.loads((user / ".claude/settings.json").read_text("utf-8"))["permissions"]["allow"]
    assert allowed == ["Bash(ls)", *(f"mcp__commonplace__{name}" for name in ("list", "read", "search", "find"))]
    opencode = (user / ".config/opencode/opencode.jsonc").read_text("utf-8")
    assert all(comment in opencode for comment in ("// my theme", "/* and\n  more */", "// keep"))
    assert set(json_text.loads(opencode)["mcp"]) == {"other", "commonplace"}
    for name in (".gemini/settings.json", ".copilot/mcp-config.json", ".claude.json"):
        assert "commonplace" in json.loads((user / name).read_text("utf-8"))["mcpServers"]
    assert {mode for _, mode in tree(user).values()} == {0o640}

    undone = commonplace.ok("setup", "--undo", "--yes")
    assert set(states(undone).values()) == {"undone"}
    assert tree(user) == before
    assert not (home / "setup.json").exists()


def test_a_second_setup_changes_nothing_and_its_undo_still_restores_everything(
    user: Path, commonplace: Command
) -> None:
    write(user)
    before = tree(user)
    commonplace.ok("setup", "--yes", "--no-learn")
    after = tree(user)

    assert set(states(commonplace.ok("setup", "--yes", "--no-learn")).values()) == {"unchanged"}
    assert tree(user) == after
    commonplace.ok("config", "set", "memory.prompt_hits", "true")
    again = states(commonplace.ok("setup", "--yes", "--no-learn"))
    assert (again["codex"], again["claude-code"], again["gemini"]) == ("done", "done", "unchanged")
    assert "user-prompt" in (user / ".codex/hooks.json").read_text("utf-8")
    commonplace.ok("setup", "--undo", "--yes")
    assert tree(user) == before


def test_what_setup_made_is_removed_again(user: Path, commonplace: Command) -> None:
    for name in (".codex", ".claude", ".gemini", ".copilot"):
        (user / name).mkdir()
    commonplace.ok("setup", "--yes", "--no-learn")

    assert {"config.toml", "hooks.json"} == {path.name for path in (user / ".codex").iterdir()}
    commonplace.ok("setup", "--undo", "--yes")
    assert tree(user) == {}
    assert {path.name for path in user.iterdir()} == {".codex", ".claude", ".gemini", ".copilot"}


def test_an_undo_keeps_what_somebody_else_wrote_since(user: Path, commonplace: Command) -> None:
    write(user)
    commonplace.ok("setup", "--yes", "--no-learn")
    config = user / ".codex/config.toml"
    config.write_text(config.read_text("utf-8") + '\n[hooks.state."x"]\ntrusted_hash = "y"\n', "utf-8")
    servers = user / ".claude.json"
    state = json.loads(servers.read_text("utf-8")) | {"numStartups": 4}
    servers.write_text(json.dumps(state, indent=2), "utf-8")
    commonplace.ok("setup", "--undo", "--yes")

    left = config.read_text("utf-8")
    assert left.startswith(CODEX)
    assert tomllib.loads(left) == tomllib.loads(CODEX) | {"hooks": {"state": {"x": {"trusted_hash": "y"}}}}
    assert json.loads(servers.read_text("utf-8")) == {"numStartups": 4, "mcpServers": {"x": {}}}


MARK = "\ufeff"
TABLES = '{"mcpServers": {}, "hooks": {"SessionStart": []}, "permissions": {"allow": []}}'
KEYS = '{\n  "b": 1\n}\n'
COMMENTED = "{\n  // mine\n}\n"
RULE = '{"permissions": {"allow": ["mcp__commonplace__read", "Bash(ls)"]}}'


@pytest.mark.parametrize(
    ("name", "text", "old", "new"),
    [
        (".codex/config.toml", "a = 1\n", "$", "# mine\n"),
        (".codex/config.toml", "a = 1\r\n[b]\r\n", "$", "[c]\r\n"),
        (".codex/config.toml", "a = 1\n\n# the end\n", "a = 1\n", "# first\n\na = 2\n"),
        (".codex/config.toml", MARK + "a = 1\n", "a = 1", "a = 2"),
        (".codex/config.toml", "[mcp_servers]\n\n[b]\nc = 1\n", "c = 1", "c = 2"),
        (".codex/config.toml", "[mcp_servers]\n", "", ""),
        (".codex/hooks.json", '{"hooks": {"SessionStart": []}}', "$", "\n"),
        (".claude.json", TABLES, "$", "\n"),
        (".claude/settings.json", TABLES, "$", "\n"),
        (".claude/settings.json", MARK + KEYS, '"b": 1', '"b": 2'),
        (".claude/settings.json", MARK, "", ""),
        (".claude/settings.json", RULE, "Bash(ls)", "Bash(cat)"),
        (".claude/settings.json", KEYS, "{", '{\n  "a": 0,'),
        (".config/opencode/opencode.jsonc", COMMENTED, "mine", "ours"),
        (".config/opencode/opencode.jsonc", '{"a": 1, /* b */ // c\n}', "/* b", "/* d"),
        (".gemini/settings.json", '{ /* mine */ }', "$", "\n"),
        (".copilot/mcp-config.json", '{"mcpServers":{}}', "$", "\n"),
    ],
)  # fmt: skip
def test_an_undo_leaves_a_file_as_if_only_its_owner_had_changed_it(
    name: str, text: str, old: str, new: str, user: Path, commonplace: Command
) -> None:
    def edited(data: bytes) -> bytes:
        said = data.decode()
        return (said + new if old == "$" else said.replace(old, new, 1)).encode()

    write(user, {name: text})
    commonplace.ok("setup", "--yes", "--no-learn")
    path = user / name
    after = path.read_bytes()
    assert b"commonplace mcp" in after or b'commonplace"' in after
    path.write_bytes(edited(after))
    commonplace.ok("setup", "--undo", "--yes")

    assert path.read_bytes() == edited(text.encode())


def test_comments_around_our_part_stay(user: Path, commonplace: Command) -> None:
    name = ".gemini/settings.json"
    write(user, {name: '{"mcpServers": {}}'})
    commonplace.ok("setup", "--yes", "--no-learn")
    ours = json.loads((user / name).read_text("utf-8"))["mcpServers"]["commonplace"]
    text = f'{{"mcpServers": {{ // one\n"commonplace": {json.dumps(ours)}, // two\n"x": {{}}}}}}'
    (user / name).write_text(text, "utf-8")
    commonplace.ok("setup", "--undo", "--yes")

    left = (user / name).read_text("utf-8")
    assert json_text.loads(left) == {"mcpServers": {"x": {}}}
    assert "// one\n" in left
    assert "// two\n" in left


def test_a_change_between_two_setups_stays_and_both_are_taken_back(user: Path, commonplace: Command) -> None:
    write(user)
    commonplace.ok("setup", "--yes", "--no-learn")
    settings = user / ".claude/settings.json"
    settings.write_text(settings.read_text("utf-8").replace("Bash(ls)", "Bash(cat)"), "utf-8")
    commonplace.ok("config", "set", "memory.prompt_hits", "true")
    commonplace.ok("setup", "--yes", "--no-learn")
    assert "user-prompt" in settings.read_text("utf-8")
    commonplace.ok("setup", "--undo", "--yes")

    assert settings.read_text("utf-8") == SETTINGS.replace("Bash(ls)", "Bash(cat)")


@pytest.mark.parametrize("agent", ["codex", "claude-code"])
def test_a_server_from_before_comes_back_though_the_files_changed(agent: str, user: Path, commonplace: Command) -> None:
    write(user)
    commonplace.ok("mcp", "install", agent, "--yes", "--allow-notes")
    config, servers, settings = (
        user / name for name in (".codex/config.toml", ".claude.json", ".claude/settings.json")
    )
    before = [
        tomllib.loads(config.read_text("utf-8")),
        *(json.loads(path.read_bytes()) for path in (servers, settings)),
    ]
    commonplace.ok("setup", "--yes", "--no-learn")
    config.write_text(f"z = 1\n{config.read_text('utf-8')}", "utf-8")
    for path in (servers, settings):
        path.write_text(json.dumps({"z": 1, **json.loads(path.read_bytes())}), "utf-8")
    commonplace.ok("setup", "--undo", "--yes")

    after = [tomllib.loads(config.read_text("utf-8")), *(json.loads(path.read_bytes()) for path in (servers, settings))]
    assert after == [{"z": 1, **each} for each in before]


def test_what_mcp_install_put_there_before_stays_after_an_undo(user: Path, commonplace: Command) -> None:
    write(user)
    commonplace.ok("mcp", "install", "codex", "--yes")
    before = tree(user)
    commonplace.ok("setup", "--yes", "--no-learn")
    commonplace.ok("setup", "--undo", "--yes")

    assert tree(user) == before


def test_without_a_record_our_part_is_taken_out_everywhere(user: Path, home: Path, commonplace: Command) -> None:
    write(user)
    commonplace.ok("setup", "--yes", "--no-learn")
    (home / "setup.json").unlink()
    commonplace.ok("setup", "--undo", "--yes")

    assert not any(b"commonplace" in data for data, _ in tree(user).values())


def test_an_undo_with_a_record_of_an_older_version_restores_what_was_not_changed_since(
    user: Path, home: Path, commonplace: Command
) -> None:
    write(user)
    before = tree(user)
    commonplace.ok("setup", "--yes", "--no-learn")
    records = json.loads((home / "setup.json").read_bytes())
    for record in records:
        written = base64.b64decode(record.pop("written"))
        record["after"] = hashlib.sha256(written).hexdigest()
    (home / "setup.json").write_text(json.dumps(records))
    (user / ".gemini/settings.json").write_text('{"mcpServers": {"commonplace": {"command": "x"}}, "mine": 1}')

    commonplace.ok("setup", "--undo", "--yes")

    after = tree(user)
    assert json.loads(after[".gemini/settings.json"][0]) == {"mine": 1}
    del before[".gemini/settings.json"], after[".gemini/settings.json"]
    assert {name: after[name] for name in before} == before


def test_only_agents_that_are_there_are_touched(user: Path, commonplace: Command, tmp_path: Path) -> None:
    (user / ".gemini").mkdir()
    done = commonplace.ok("setup", "--yes", "--no-learn")

    assert states(done) == {
        "codex": "absent", "claude-code": "absent", "opencode": "absent", "gemini": "done", "copilot": "absent",
    }  # fmt: skip
    assert {path.name for path in user.iterdir()} == {".gemini"}


def test_where_no_agent_is_nothing_is_promised(user: Path, commonplace: Command) -> None:
    shown = commonplace("setup", "--yes", "--no-learn").out

    assert "No agent was changed." in shown
    assert "From now on" not in shown


def test_an_agent_is_found_by_its_program(
    user: Path, commonplace: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "claude"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n", "utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))

    assert states(commonplace.ok("setup", "--dry-run"))["claude-code"] == "planned"
    assert list(user.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        (".claude/settings.json", "{oops", "is not valid JSON"),
        (".claude/settings.json", '{"hooks": []}', "does not say what it should say"),
        (".claude/settings.json", '{"permissions": {"allow": "all"}}', "does not say what it should say"),
        (".claude/settings.json", '{"a": 1 /* no comments here */}', "is not valid JSON"),
        (".claude.json", "[]", "holds no JSON object"),
        (".claude.json", '{"mcpServers": 3}', "does not say what it should say"),
    ],
)
def test_an_odd_file_stays_as_it_is_and_the_other_agents_are_set_up(
    name: str, text: str, says: str, user: Path, commonplace: Command
) -> None:
    write(user, FILES | {name: text})
    before = tree(user)
    ran = commonplace("setup", "--yes", "--no-learn", "--json")

    (failed,) = [row for row in ran.json["agents"] if row["state"] == "failed"]
    assert ran.code == 1
    assert failed["agent"] == "claude-code"
    assert says in failed["problem"]
    assert says in ran.err
    after = tree(user)
    assert {path for path in before if before[path] != after[path]} == {
        path for path in before if not path.startswith(".claude")
    }


def test_a_write_protected_file_and_a_link_to_nothing_stay_as_they_are(user: Path, commonplace: Command) -> None:
    write(user)
    (user / ".claude/settings.json").chmod(0o440)
    (user / ".codex/config.toml").unlink()
    (user / ".codex/config.toml").symlink_to(user / "nowhere")
    before = tree(user)
    ran = commonplace("setup", "--yes", "--no-learn", "--json")

    problems = {row["agent"]: row["problem"] for row in ran.json["agents"] if row["state"] == "failed"}
    assert "is write-protected" in problems["claude-code"]
    assert "is a link to nothing" in problems["codex"]
    after = tree(user)
    assert all(before[path] == after[path] for path in before if path.startswith((".claude", ".codex")))
    assert (user / ".codex/config.toml").readlink() == user / "nowhere"


def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(user: Path, commonplace: Command) -> None:
    write(user)
    (user / ".claude.json").unlink()
    os.mkfifo(user / ".claude.json")
    ran = commonplace("setup", "--yes", "--no-learn")

    assert ran.code == 1
    assert ".claude.json is not a file." in ran.err


def test_a_server_that_codex_itself_added_is_replaced_with_its_tables_and_comes_back(
    user: Path, commonplace: Command
) -> None:
    ours = '[mcp_servers.commonplace]\ncommand = "old"\n\n[mcp_servers.commonplace.env]\nA = "1"\n\n[b]\nc = 1\n'
    write(user, {".codex/config.toml": f"a = 1\n\n{ours}"})
    before = tree(user)
    commonplace.ok("setup", "--yes", "--no-learn")
    config = tomllib.loads((user / ".codex/config.toml").read_text("utf-8"))

    assert "A" not in config["mcp_servers"]["commonplace"].get("env", {})
    assert (config["a"], config["b"]) == (1, {"c": 1})
    commonplace.ok("setup", "--undo", "--yes")
    assert tree(user) == before


def test_a_link_is_followed_and_stays_a_link(user: Path, commonplace: Command, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles" / "config.toml"
    real.parent.mkdir()
    real.write_text(CODEX, "utf-8")
    (user / ".codex").mkdir()
    (user / ".codex/config.toml").symlink_to(real)
    commonplace.ok("setup", "--yes", "--no-learn")

    assert (user / ".codex/config.toml").is_symlink()
    assert "mcp_servers.commonplace" in real.read_text("utf-8")
    commonplace.ok("setup", "--undo", "--yes")
    assert (user / ".codex/config.toml").is_symlink()
    assert real.read_text("utf-8") == CODEX


def test_without_a_terminal_it_asks_for_yes_and_changes_nothing(user: Path, commonplace: Command) -> None:
    write(user)
    before = tree(user)

    assert "changes files of" in commonplace.refused("bad_input", "setup")
    assert tree(user) == before
    shown = commonplace.ok("setup", "--dry-run")
    assert set(states(shown).values()) == {"planned"}
    assert all("commonplace" in change["diff"] for row in shown["agents"] for change in row["changes"])
    assert tree(user) == before


@pytest.mark.parametrize(
    ("name", "text", "agent"),
    [
        (".codex/config.toml", '[plugins."commonplace@commonplace"]\nenabled = true\n', "codex"),
        (".claude/settings.json", '{"enabledPlugins": {"commonplace@commonplace": true}}', "claude-code"),
    ],
)
def test_an_agent_that_has_the_plugin_is_left_alone(
    name: str, text: str, agent: str, user: Path, commonplace: Command
) -> None:
    write(user, {name: text})

    assert states(commonplace.ok("setup", "--yes", "--no-learn"))[agent] == "plugin"
    assert (user / name).read_text("utf-8") == text


def test_the_doctor_says_what_is_set_up_where(user: Path, home: Path, commonplace: Command) -> None:
    write(user)

    def details() -> dict[str, str]:
        return {check["name"]: check["detail"] for check in commonplace.ok("doctor")["checks"]}

    assert details()["codex"] == "not set up: commonplace setup"
    commonplace.ok("setup", "--yes", "--no-learn")
    assert details()["codex"].startswith("server, hook, not trusted yet")
    assert details()["claude-code"] == "server, hook, tools allowed, nothing told yet"
    assert details()["gemini"] == "server"
    assert details()["learning"] == "nothing learned yet"
    config = user / ".codex/config.toml"
    key = f"{user}/.codex/hooks.json:session_start:1:0"
    config.write_text(config.read_text("utf-8") + f'\n[hooks.state."{key}"]\ntrusted_hash = "sha256:1"\n', "utf-8")
    assert "server, hook, trusted, " in details()["codex"]
    (user / ".gemini/settings.json").write_text("{", "utf-8")
    ran = commonplace("doctor", "--json")
    assert ran.code == 1
    assert [check["name"] for check in ran.json["checks"] if not check["ok"]] == ["gemini"]


def test_the_plugin_is_one_folder_for_both_agents(user: Path, home: Path, commonplace: Command, tmp_path: Path) -> None:
    place = tmp_path / "plugin"
    done = commonplace.ok("plugin", place)

    names = {str(Path(path).relative_to(place)) for path in done["files"]}
    assert names == {
        ".claude-plugin/plugin.json", ".claude-plugin/marketplace.json", ".codex-plugin/plugin.json", ".mcp.json",
        "hooks/hooks.json",
    }  # fmt: skip
    hooks = json.loads((place / "hooks/hooks.json").read_text("utf-8"))["hooks"]
    assert set(hooks) == {"SessionStart", "SessionEnd"}
    assert commonplace.ok("plugin", place) == done
    (place / "mine.txt").write_text("x", "utf-8")
    assert "holds other files (mine.txt)" in commonplace.refused("bad_input", "plugin", place)
