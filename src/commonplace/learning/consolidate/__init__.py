"""Deterministic consolidation: lessons of many sessions → entries → `MEMORY.md`, `memory_summary.md` and `skills/`."""
