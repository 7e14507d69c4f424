"""Queries and migrations, as data."""
