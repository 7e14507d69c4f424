"""SWE-agent (`.traj`) and its successor mini-swe-agent (`.traj.json`): one JSON document for each run.

Both programs write the whole document anew after every step. A document has no absolute times, or only some: the last
step is taken to end when the file was last written, and the ones before by as much earlier as they took. So the same
bytes with the same modification time give the same ledger, and a copy that did not keep its time gives another.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from commonplace.importers import json_lines
from commonplace.importers.converter import Converted
from commonplace.importers.json_values import decoded_document, first_byte
from commonplace.importers.swe_agent import mini, trajectory
from commonplace.importers.swe_agent.document import decode
from commonplace.protocol.rollout import Skipped

__all__ = ["convert", "find"]


def find(path: Path) -> Iterator[Path]:
    """Yield the trajectories at a path: the file itself, or those below a folder, each attempt of a run once."""
    if path.is_file():
        yield path
    elif path.is_dir():
        for found in json_lines.walk(path):
            # An agent that tries again writes each attempt into a folder of its own, and all of them above.
            is_part = found.parent.name.startswith("attempt_") and (found.parent.parent / found.name).is_file()
            if found.name.endswith((".traj", ".traj.json")) and not is_part:
                yield found


def convert(path: Path) -> Converted:
    """Yield the threads of a trajectory; see `converter`."""
    raw = json_lines.read_document(path)
    if isinstance(raw, Skipped):
        yield raw
        return
    document = decoded_document(decode, raw)
    if isinstance(document, Skipped):
        yield document
    elif first_byte(document.trajectory) == b"[" or first_byte(document.attempts) == b"[":
        yield from trajectory.convert(path, document)
    elif first_byte(document.messages) == b"[":
        yield from mini.convert(path, document)
    else:
        yield Skipped(0, len(raw), json_lines.UNKNOWN_TYPE)
