"""The composition root: opens everything by the settings, and offers what the surfaces call."""
