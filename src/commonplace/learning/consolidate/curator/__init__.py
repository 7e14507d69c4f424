"""Phase 2 by a model: the restricted agent that goes over the memory which the deterministic merge made.

    curator       the consolidator: what is made without a model, and then what a model makes of it
    changes       what it is asked about: the bullets that changed, in parts that fit a short conversation
    dossier       what it is told about them: the bullets, what taught them, the nearest that are there already
    prompts       prompt.md with its version, texts.toml, and what else it is told
    agent         one conversation on the agent's own runtime, watched: requests, tokens, bytes, time
    bench         its tools: list, read, search, edit, write, done, and their limits
    places        the staged workspace: nothing outside of it is ever read or written
    rails         what it may not do, whatever it was told: every bullet rests on what its sessions taught
    summaries     the same for memory_summary.md and skills/

It has no shell, no network, no servers, no sub-agents, and no memory: it is told its instructions and a few excerpts.
What it wrote is checked as whatever anybody writes, and by the rails; it may repair it once. Its cost follows the
change: what did not change is not sent.
"""

from commonplace.learning.consolidate.curator.consolidator import Curator
from commonplace.learning.consolidate.curator.limits import CuratorLimits

__all__ = ["Curator", "CuratorLimits"]
