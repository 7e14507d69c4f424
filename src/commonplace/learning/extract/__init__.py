"""Phase 1, extraction: one session becomes what it taught, by rules or by a model."""
