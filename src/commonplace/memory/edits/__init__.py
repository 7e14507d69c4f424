"""Changes of the memory by a person: notes, pins, forgetting, manual edits, and the history of changes."""
