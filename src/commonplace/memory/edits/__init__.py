"""What a person changes in memory: notes, pins, forgetting, edits by hand, and the history of changes."""
