"""The same files, resumed by the real Codex (where `make anchors` fetched it)."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from bench import measure

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from anchors.codex_driver import Missing, locate, make_home
from anchors.scripted_responses import ScriptedResponses, reply


def resume(session: Path, root: Path) -> tuple[str, str, str]:
    """Resume a copy of a session twice; return the two times and the peak memory as text."""
    binary = locate()
    if isinstance(binary, Missing):
        return "not fetched", "not fetched", "not fetched"
    try:
        with ScriptedResponses([reply("Done."), reply("Done.")]) as server:
            home = make_home(binary, root, server.base_url)
            folder = home.codex_home / "sessions" / "2026" / "11" / "15"
            folder.mkdir(parents=True)
            shutil.copy2(session, folder / session.name)
            command = [str(binary), "exec", "--skip-git-repo-check", "--json", "-C", str(home.cwd), "resume"]
            command += [session.stem[-36:], "go on"]
            first, again = (measure.run(command, home.environment()) for _ in range(2))
    finally:
        shutil.rmtree(root, ignore_errors=True)
    return f"{first.seconds:.1f} s", f"{again.seconds:.1f} s", f"{max(first.megabytes, again.megabytes):.0f} MB"
