"""The ledger: one append-only file per thread, written by one writer, read from either end."""
