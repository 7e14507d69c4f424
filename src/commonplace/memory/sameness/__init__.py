"""When two lessons say the same, when the newer replaces the older, and when both hold.

Two lessons are the same only if nothing that one says is missing in the other: names, numbers, paths, negations and
objects agree. When in doubt they are two. `sentence` reads a sentence into what it is compared by, `relation` decides.
"""

from __future__ import annotations

from commonplace.memory.sameness.relation import Relation, compare, is_supported_by
from commonplace.memory.sameness.sentence import ComparedSentence, Token, read

__all__ = ["ComparedSentence", "Relation", "Token", "compare", "is_supported_by", "read"]
