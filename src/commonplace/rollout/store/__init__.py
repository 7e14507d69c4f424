"""Ledgers in an object store: what each host wrote, kept in segments and readable from every host."""
