"""The evidence of a session is taken from its calls, its outputs, and what it noted at its start."""

from __future__ import annotations

import json
from pathlib import Path

from commonplace.learning.reading.project_evidence import evidence_of
from commonplace.learning.reading.session_view import read
from commonplace.projects.paths import file_key
from ledgers import Script, function_call, function_output, user

PATCH = "*** Begin Patch\n*** Update File: internal/kettle/lid_valve.go\n@@\n-a\n+b\n*** End Patch"


def call(number: int, name: str, arguments: dict[str, object], output: str) -> list[dict[str, object]]:
    return [function_call(f"c{number}", name, json.dumps(arguments)), function_output(f"c{number}", output)]


def test_a_session_tells_what_its_calls_show(tmp_path: Path) -> None:
    script = Script(git={"repository_url": "https://github.com/ann/tea", "branch": "put-a-lid-on"})
    script.turn(
        user("go on"),
        *call(1, "exec_command", {"cmd": "git log -1 --oneline"}, "1a2b3c4 a lid\n"),
        *call(2, "Read", {"file_path": "/repo/demo/internal/kettle/steam_pipe.go"}, "package kettle"),
        *call(3, "apply_patch", {"input": PATCH}, "Done"),
        *call(
            4, "exec_command", {"cmd": "git remote -v", "workdir": "lid"}, "origin\tgit@github.com:bob/lid.git (push)"
        ),
    )
    found = evidence_of(read(script.write(tmp_path)))

    assert ("/repo/demo", True, {"github.com/ann/tea": 3}) == (found.folder, found.in_git, found.own)
    assert ({"github.com/bob/lid": 1}, ["1a2b3c4"], ["put-a-lid-on"]) == (found.said, found.commits, found.branches)
    wanted = ["internal/kettle/lid_valve.go", "internal/kettle/steam_pipe.go"]
    assert sorted(str(file_key(name)) for name in wanted) == found.files


def test_the_folder_of_a_call_is_the_one_that_the_session_was_in(tmp_path: Path) -> None:
    script = Script(cwd="/c/tea").turn(user("go on"))
    script.line("turn_context", {"cwd": "/d/milk", "model": "m"})
    script.item(*call(1, "exec_command", {"cmd": "git remote -v"}, "origin\tgit@github.com:ann/milk.git (push)"))
    found = evidence_of(read(script.write(tmp_path)))

    assert ({}, ["/d/milk"]) == (found.own, [each.folder for each in found.moved])
