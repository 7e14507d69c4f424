"""Reading sessions with a model: any model, checked as if it were talked into things by what it reads.

rendering   a view as labelled text, nothing of a memory in it
slicing     text that fits a window, cut between turns
prompts     what the model is told (prompt.md with its version, texts.toml), without secrets
reading     ByModel: requests, one repair, smaller slices, limits of time and cost
parsing     an answer as three texts, or what is wrong with it
drafts      the texts taken apart
evidence    quotes looked for in the session, and whose words they are
trust       what may be kept on such evidence
merging     slices as one; writing: the texts that consolidation reads
fallback    the embedded reader after the last try
scoring     the gold set
"""

from __future__ import annotations

from commonplace.learning.evaluate.scoring import Evaluation, evaluate
from commonplace.learning.extract.model.extractor import ExtractorSettings, ModelExtractor
from commonplace.learning.extract.model.fallback import FallbackExtractor

__all__ = ["Evaluation", "ExtractorSettings", "FallbackExtractor", "ModelExtractor", "evaluate"]
