"""OpenCode: exported sessions (one JSON document each), its database, and the folder of files that came before it.

storage      where sessions are stored, what their stamps are, and how one is read
database     the same for the database
messages     one message becomes payloads
replay       a session in the order of its messages; compactions, what was taken back
"""

from commonplace.importers.opencode.replay import convert
from commonplace.importers.opencode.storage import default_folder, find, stamp

__all__ = ["convert", "default_folder", "find", "stamp"]
