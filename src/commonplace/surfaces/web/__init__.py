"""The web page: what is remembered, where it came from, and changes of it; for one person on this machine."""
