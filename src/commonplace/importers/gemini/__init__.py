"""Gemini CLI: a session is one JSON document (until 2026) or a log of JSON lines that later lines change.

`places` says where sessions are and which project a file belongs to; `records` turns one message into payloads;
`replay` plays the log: which version of a message counts, what was rewound, where the history was compacted.
"""

from commonplace.importers.gemini.locations import default_folder, find
from commonplace.importers.gemini.replay import convert

__all__ = ["convert", "default_folder", "find"]
