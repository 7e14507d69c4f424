"""The write side of memory: from sessions to what they taught, and from that to files that a person can read."""
