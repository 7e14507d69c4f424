"""Phase 2 by a model: a restricted agent improves the memory that the deterministic merge made.

    consolidator      merges without a model, then lets a model work on what changed
    changes           what the model is asked about: changed bullets, in parts that fit a short conversation
    briefing          what the model is told about them: the bullets, their sources, and the nearest other bullets
    prompts           prompt.md with its version, and the words of texts.toml
    conversation      one conversation of the agent, with limits on requests, tokens, bytes and time
    limits            those limits
    tools             the model's tools (list, read, search, edit, write, done) and how often they may be called
    staged_files      reading and writing in the staged workspace, never outside of it
    checks            what the model may not do: every bullet must rest on what its sessions taught
    summary_checks    the same for memory_summary.md and skills/
    grounding         whether a text rests on what was said

The agent has no shell, no network, no servers, no sub-agents and no memory: it gets its instructions and a few
excerpts. What it wrote passes the same validation as any memory, and the checks above; it may repair it once. The cost
follows the change: what did not change is not sent.
"""

from commonplace.learning.consolidate.curator.consolidator import Curator
from commonplace.learning.consolidate.curator.limits import CuratorLimits

__all__ = ["Curator", "CuratorLimits"]
