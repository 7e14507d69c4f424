"""A search query: its words, its limits, and the sessions that count."""

from __future__ import annotations

from typing import Final

import msgspec

from commonplace.errors import BadInput
from commonplace.search.rank.recipe import RECIPE, WEIGHTS, Recipe, RerankWeights

LIMIT: Final = 10
"""How many hits a question gets unless told otherwise."""
MOST: Final = 1_000
"""The largest number of hits that a query may ask for."""
_LONGEST: Final = 20_000
"""The longest query, in characters."""


class Query(msgspec.Struct, frozen=True):
    """A search query."""

    query: str
    limit: int = LIMIT
    scope: str | None = None
    """Only this project (an identity)."""
    since_s: int | None = None
    assistant: float | None = None
    """The weight of an assistant's message relative to a person's; None uses the default."""
    near: str | None = None
    """The project in which the query is asked: its results come first among equals."""
    learned: bool = False
    """Only sessions that memory may use."""

    def check(self) -> None:
        """Raise BadInput if the query cannot be answered."""
        if not self.query.strip():
            raise BadInput("There is nothing to search for.", hint="Give some words.")
        if len(self.query) > _LONGEST:
            raise BadInput(f"The question has {len(self.query)} characters.", hint=f"Use at most {_LONGEST}.")
        if not 1 <= self.limit <= MOST:
            raise BadInput(f"{self.limit} hits cannot be asked for.", hint=f"Use a limit from 1 to {MOST}.")


def ranking(query: Query) -> tuple[Recipe, RerankWeights]:
    """Return the recipe of the ranking, with the role weight that was asked for."""
    if query.assistant is None:
        return RECIPE, WEIGHTS
    share = min(1.0, max(0.0, (1 - query.assistant) / (1 - RECIPE.assistant)))
    recipe = msgspec.structs.replace(RECIPE, assistant=query.assistant)
    return recipe, msgspec.structs.replace(WEIGHTS, user=WEIGHTS.user * share)
