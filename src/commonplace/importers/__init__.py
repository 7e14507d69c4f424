"""Other agents' sessions, read exactly and written as ledgers of our own. See `base` for the shape of a converter."""
