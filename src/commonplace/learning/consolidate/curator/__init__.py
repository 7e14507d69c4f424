"""Phase 2 by a model: edits over single entries that the deterministic merge made.

    consolidator    merges without a model, then asks a model for edits of what changed, batch by batch
    batches         which entries a request is about, and the nearest others
    prompts         prompt.md with its version, the words of texts.toml, the schema, the message of a batch
    proposals       an answer of the model as typed edits
    checks          whether an edit may be used: each is checked on its own, and dropped alone
    grounding       whether a text rests on what was said
    limits          how much a run may ask for

The model has no tools: it is shown entries and answers with a list of edits (`consolidate.entry_edits`). Accepted
edits are kept beside the memory, and every later merge applies them again without asking. The cost follows the change:
what the model saw already is not sent again, except as a neighbour of what it did not.
"""

from commonplace.learning.consolidate.curator.consolidator import Curator
from commonplace.learning.consolidate.curator.limits import CuratorLimits

__all__ = ["Curator", "CuratorLimits"]
