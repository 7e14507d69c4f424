"""The memory's files: MEMORY.md, raw memories, rollout summaries, skills and extensions; reading and checking them."""
