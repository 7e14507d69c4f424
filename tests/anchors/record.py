"""Record what the real Codex writes and what its model is shown.

Usage: `python tests/anchors/record.py OUTDIR [NAME…]`.

Each scenario of `scenarios_*.py` runs in a throw-away home against the scripted model. Its folder under
OUTDIR gets the rollout files, `model_inputs.json` (the `input` of every request, in order),
`requests.json` (parallel to it: thread, turn, window, kind and model of each request) and `NOTE.txt`, all
made neutral by `neutral.py`.

The recordings in `tests/data/codex_recorded` were made so; run it again when the pinned version moves.
Strings that are long and not ours are printed at the end: read them, for no vendor prose may be
committed.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path

from codex_driver import Missing, locate
from neutral import Neutraliser, long_strings
from scenarios_context import CONTEXT
from scenarios_history import HISTORY
from scripted_responses import Json, ScriptedResponses
from stage import Scenario, Stage

OWN_TEXTS = ("<environment_context>", "filler ", "data:image/", "<filesystem>", "Chunk ID: ", "1\n2\n3")
"""Beginnings of long strings that are known to be harmless."""


def record(scenario: Scenario, binary: Path, target: Path) -> set[str]:
    """Run one scenario, write its folder, and return the long strings to look at."""
    root = Path(tempfile.mkdtemp(prefix="commonplace-recording-"))
    try:
        with ScriptedResponses() as server:
            stage = Stage(binary, root, server, scenario.settings, scenario.tables, scenario.provider_name)
            scenario.play(stage)
        return _write(scenario, stage, target / scenario.name)
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _write(scenario: Scenario, stage: Stage, folder: Path) -> set[str]:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    home = stage.home
    neutral = Neutraliser(
        {
            str(home.cwd): "/repo/demo",
            str(home.codex_home): "/home/user/.codex",
            str(home.root / "home"): "/home/user",
            str(home.root): "/home/user/work",
        }
    )
    inputs = [neutral.value(body["input"]) for body in stage.server.requests]
    requests = [_about(body) for body in stage.server.requests]
    _dump(folder / "model_inputs.json", inputs)
    _dump(folder / "requests.json", requests)
    (folder / "NOTE.txt").write_text(scenario.note + "\n", "utf-8")
    found = long_strings(inputs)
    for name, content in neutral.rollouts(home.rollouts()).items():
        (folder / name).write_bytes(content)
        for line in content.splitlines():
            if line.startswith(b"{") and line.endswith(b"}"):
                found |= long_strings(json.loads(line))
    return {text for text in found if not text.lstrip().startswith(OWN_TEXTS)}


def _about(body: Json) -> Json:
    """Return what a request says about itself outside its input."""
    metadata = json.loads(body["client_metadata"]["x-codex-turn-metadata"])
    names = ("thread_id", "turn_id", "request_kind", "window_number")
    return {"model": body["model"], **{name: metadata.get(name) for name in names}}


def _dump(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, indent=0) + "\n", "utf-8")


def main(arguments: list[str]) -> int:
    """Record all scenarios, or those named."""
    if not arguments:
        print(__doc__)
        return 2
    binary = locate()
    if isinstance(binary, Missing):
        print(binary.reason, file=sys.stderr)
        return 1
    wanted = set(arguments[1:])
    suspects: set[str] = set()
    for scenario in (*HISTORY, *CONTEXT):
        if wanted and scenario.name not in wanted:
            continue
        suspects |= record(scenario, binary, Path(arguments[0]))
        print("recorded", scenario.name)
    for text in sorted(suspects):
        print("LOOK:", text[:300].replace("\n", "\\n"), f"[{len(text)}]")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
