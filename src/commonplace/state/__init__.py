"""Derived and coordinating state: rows that can be rebuilt from files."""
