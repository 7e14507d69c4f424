"""Claude Code's transcripts.

locations         where transcripts are stored
records           the fields of a record that are read
record_kinds      whose words a text holds
branches          the order of records, and the branches that were given up
session_identity  what a session is called, and by what copies of it are found
rewinds           what stays of a turn that is rewound to its middle
queued_prompts    prompts that were typed while a turn ran
content           content blocks become items
convert           a transcript becomes records of ledgers
"""

from commonplace.importers.claude_code.convert import convert
from commonplace.importers.claude_code.locations import default_folder, find, sub_agents

__all__ = ["convert", "default_folder", "find", "sub_agents"]
