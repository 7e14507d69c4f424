"""The parameters of ranking, in one place, so that each step can be switched off and measured."""

from __future__ import annotations

import msgspec


class Recipe(msgspec.Struct, frozen=True):
    """Weights of the steps; a weight of zero takes a step out."""

    # BM25 of a turn, and of a whole session as one text.
    k1: float = 1.4
    b: float = 0.9
    session_k1: float = 3.0
    session_b: float = 1.0
    coverage: float = 0.3
    """How much of a turn's score hangs on how much of the question it covers."""
    # Who speaks.
    assistant: float = 0.3
    assistant_evidence: float = 0.8
    """What an answer counts as evidence for its session."""
    question: float = 0.2
    """What a question loses: it asks for what is sought."""
    speaker: float = 2.0
    time: float = 1.0
    # What stands beside a turn.
    previous: float = 0.30
    next: float = 0.25
    previous_but_one: float = 0.10
    next_but_one: float = 0.05
    question_flow: float = 1.75
    """How much more a question hands to what follows it."""
    # The session that a turn stands in.
    session: float = 0.3
    best_turns: float = 1.0
    decline: float = 0.6
    # Ordering the best once more.
    candidates: int = 100
    rerank: bool = True
    # Mild preferences among what is about equally good.
    recency: float = 0.04
    recent_days: float = 90.0
    same_project: float = 0.03
    used: float = 0.04


class RerankWeights(msgspec.Struct, frozen=True):
    """The weights of the second ranking, which is linear in the features of a candidate."""

    first: float = 1.00
    session: float = 0.29
    covered: float = -0.52
    window: float = 0.61
    user: float = 0.25
    matched: float = 0.38
    question: float = -0.14
    dated: float = 0.14
    speaker: float = 0.05


RECIPE = Recipe()
LINES = Recipe(previous=0, next=0, previous_but_one=0, next_but_one=0, question=0)
"""For entries and lines of summaries: each stands for itself, so that nothing is handed to the next."""
WEIGHTS = RerankWeights()
