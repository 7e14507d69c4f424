"""The read side of memory: the workspace's files."""
