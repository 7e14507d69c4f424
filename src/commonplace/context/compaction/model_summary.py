"""A model that writes the summary of a compaction: it gets the items of the session and a request, and answers."""

from __future__ import annotations

from contextlib import aclosing
from typing import Final

import anyio
import msgspec

from commonplace.context.compaction import kept_messages
from commonplace.context.compaction.summaries import SummaryInputTooLong, SummaryRequest
from commonplace.context.history import History
from commonplace.context.tokens import approximate_tokens
from commonplace.errors import ContextTooLong
from commonplace.models.base import ItemDone, Model, Request
from commonplace.models.providers import Choice
from commonplace.protocol import items

SECONDS: Final = 600.0
"""How long one summary may take; a slow model with a full window needs minutes."""


class SummariserOptions(msgspec.Struct, frozen=True):
    """How a model is asked for a summary."""

    effort: str | None = None
    window: int | None = None
    """How many tokens a request may hold; None: the whole window of the model."""
    scale: float = 1.0
    """How many tokens the server counts for each token of our own estimate of the items."""


class ModelSummariser:
    """Asks a model for summaries; only the text of its messages counts, not its calls or its reasoning."""

    def __init__(
        self, model: Model, choice: Choice, instructions: str, options: SummariserOptions | None = None
    ) -> None:
        self._model = model
        self._choice = choice
        self._instructions = instructions
        self._options = options or SummariserOptions()

    def room(self, beside: int) -> int:
        """Return how many tokens of items, by our own estimate, one request holds beside so many of other text."""
        window = self._options.window or self._choice.info.window
        left = max(1, window - approximate_tokens(self._instructions) - beside)
        return max(1, int(left / self._options.scale))

    async def summarise(self, ask: SummaryRequest) -> str:
        """Return the model's summary.

        Raises:
            SummaryInputTooLong: the model's window does not hold the items.
            ModelError, TimeoutError: the model gave no summary.
        """
        history = History()
        history.replace(ask.items)
        request = Request(
            model=self._choice.slug,
            instructions=self._instructions,
            input=(*history.for_prompt(self._choice.info.modalities), kept_messages.message(ask.request)),
            effort=self._options.effort,
        )
        texts: list[str] = []
        try:
            with anyio.fail_after(SECONDS):
                async with aclosing(self._model.stream(request)) as stream:
                    async for event in stream:
                        view = items.view(event.item) if isinstance(event, ItemDone) else None
                        if isinstance(view, items.Message) and view.role == "assistant":
                            texts.append("".join(part.text or "" for part in view.content))
        except ContextTooLong as error:
            raise SummaryInputTooLong from error
        return "\n".join(texts)
