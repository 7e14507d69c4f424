"""Labelled sessions: what a reader must learn from them, must not learn, and how each task ended. See README.md."""
