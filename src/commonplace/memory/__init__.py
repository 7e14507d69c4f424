"""Memory: entries, files, recall and edits. Nothing here knows how sessions are learned from."""
