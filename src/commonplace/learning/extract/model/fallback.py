"""Two extractors, one after the other: what the first cannot read in all its tries, the second reads.

A try that fails is tried again later as ever (`extract`). The last one (`extract_last`) leaves no session unread: the
second extractor, which needs no model, reads it, and the summary says so. A spent budget or a refused key is no failure
of a session: it waits, with all its tries.
"""

from __future__ import annotations

import msgspec

from commonplace.errors import CommonplaceError
from commonplace.learning.extract.circuit_breaker import NOBODYS_FAULT
from commonplace.learning.extract.session_reading import Extractor
from commonplace.learning.reading.session_view import SessionView
from commonplace.memory import lessons
from commonplace.memory.files import lesson_text
from commonplace.state.outputs import Output


class FallbackExtractor:
    """Reads with the first extractor; in the last try with the second, if the first fails again."""

    def __init__(self, first: Extractor, last: Extractor) -> None:
        self.name = first.name
        self._first = first
        self._last = last

    async def extract(self, view: SessionView) -> Output:
        """Return what the first extractor says."""
        return await self._first.extract(view)

    async def extract_last(self, view: SessionView) -> Output:
        """Return what the first extractor says; what the second does, if that fails.

        Raises:
            BudgetSpent, NotAuthorised, QuotaExceeded: it is not the session's fault, and the session can wait.
        """
        try:
            return await self._first.extract(view)
        except NOBODYS_FAULT:
            raise
        except CommonplaceError as error:
            why = error.code
        except Exception as error:  # an extractor that breaks must not cost the session
            why = type(error).__name__
        return _noted(await self._last.extract(view), f"{self._last.name} ({self._first.name}: {why})")


def _noted(output: Output, note: str) -> Output:
    """Say in a summary's context line who read the session."""
    if output.lessons is None:
        return output
    session = lessons.decode(output.lessons)
    return lesson_text.output(msgspec.structs.replace(session, reader=note))
