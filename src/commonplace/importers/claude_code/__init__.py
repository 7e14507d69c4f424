"""Claude Code's transcripts.

`places` says where they are; `records` is the wire; `kinds` tells whose words a text holds; `threading` puts records in
order; `content` turns blocks into items; `convert` puts it together.
"""

from commonplace.importers.claude_code.convert import convert
from commonplace.importers.claude_code.locations import default_folder, find, sub_agents

__all__ = ["convert", "default_folder", "find", "sub_agents"]
