"""Gemini CLI: a session is one JSON document (until 2026) or a log of JSON lines that later lines change.

locations    where sessions are stored, and which project a file belongs to
log          the first pass: what each line did
records      one message becomes payloads
replay       the second pass: which version of a message counts, what was rewound, where history was compacted
"""

from commonplace.importers.gemini.locations import default_folder, find
from commonplace.importers.gemini.replay import convert

__all__ = ["convert", "default_folder", "find"]
