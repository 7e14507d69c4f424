"""Ranked and exact search over sessions and memory: terms, postings, scores and hits."""
