"""What the model has been told: the items that the next request carries, and the context that they stand on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from commonplace.agent.skills import OfferedSkill
from commonplace.context import injected_messages
from commonplace.context.history import History
from commonplace.context.history_items import HistoryEntry
from commonplace.context.progress import CallManifest
from commonplace.context.reconstruct import Reconstruction, WindowIdentity
from commonplace.context.truncate import TruncationPolicy
from commonplace.models.providers import Choice
from commonplace.protocol.rollout import TurnContext

if TYPE_CHECKING:
    from commonplace.context.digest.tally import Tally


class PromptState:
    """The history of one session and what was told in it.

    Invariants: `held` names exactly the injected texts that the history holds; a compaction or a rollback takes away
    the reference, since what the model was told went with the items; windows are numbered without a gap. Only
    `SessionLedger` adds items, because whatever is added is also written down.
    """

    def __init__(self, history: History, window: WindowIdentity, tally: Callable[[], Tally] | None = None) -> None:
        self.history = history
        self.window = window
        """The stretch between two compactions that the session is in."""
        self.reference: TurnContext | None = None
        """The turn context that the model was last told in full; None: the next turn tells everything."""
        self.baseline: Mapping[str, Any] | None = None
        """The newest snapshot of the sections that the model was told."""
        self.previous_model: str | None = None
        """The model of the last turn, by its slug."""
        self._previous_choice: Choice | None = None
        self.held = injected_messages.injected_kinds(entry.view for entry in history.entries)
        """The injected texts that the history holds, by name."""
        self.skills: Sequence[OfferedSkill] = ()
        """The skills that the model is offered in this turn."""
        self.progress = CallManifest()
        """Which calls were made with which results: a turn that only repeats itself is stopped."""
        self._tally = tally
        self._counted: Tally | None = None

    # --- The items.

    def add(self, raw: bytes, metadata: bytes, policy: TruncationPolicy) -> HistoryEntry | None:
        """Append an item, its output cut to the policy; None if it is of a kind that no history holds."""
        entry = self.history.record(raw, metadata, policy)
        if entry is not None:
            self.held.update(injected_messages.injected_kinds([entry.view]))
            self.progress.see(entry.raw, entry.view)
            if self._counted is not None:
                self._counted.see(entry.view)
        return entry

    def replace(self, items: Sequence[bytes]) -> None:
        """Put the items of a compaction in place of all others."""
        self.history.replace(items)
        self._look_again()

    def roll_back(self, turns: int) -> None:
        """Remove the last user turns, and what they told the model."""
        self.history.drop_last_user_turns(turns)
        self.reference = None
        self._look_again()
        if self._counted is not None:
            self._counted.roll_back(turns)

    def _look_again(self) -> None:
        self.held = injected_messages.injected_kinds(entry.view for entry in self.history.entries)

    # --- What it was told.

    def offer_skills(self, skills: Sequence[OfferedSkill]) -> None:
        """Offer these skills from now on."""
        self.skills = skills

    def set_baseline(self, baseline: Mapping[str, Any]) -> None:
        """Keep the snapshot of the sections that the model was just told."""
        self.baseline = baseline

    def set_reference(self, context: TurnContext) -> None:
        """Keep the turn context that the model was just told in full."""
        self.reference = context

    def set_previous_model(self, choice: Choice) -> None:
        """Keep which model a turn ran with that has ended."""
        self.previous_model, self._previous_choice = choice.slug, choice

    def previous_choice(self, current: Choice) -> Choice | None:
        """Return the model of the last turn if it is another one; a resumed thread's is taken to have its provider."""
        if self.previous_model is None or self.previous_model == current.slug:
            return None
        known = self._previous_choice
        if known is not None and known.slug == self.previous_model:
            return known
        return current.other_model(self.previous_model)

    def open_window(self, window_id: str) -> WindowIdentity:
        """Begin the window after a compaction; the model has been told nothing in it yet."""
        old = self.window
        self.window = WindowIdentity(old.number + 1, old.first_id or old.id, old.id, window_id)
        self.reference, self.baseline = None, None
        return self.window

    def recollect(self, state: Reconstruction) -> None:
        """Take over what the model knows according to the ledger, when a thread is resumed or rolled back."""
        self.reference, self.baseline = state.reference, state.world_state
        self.previous_model = state.previous.model if state.previous else None

    # --- What was done.

    def tally(self, cwd: str) -> Tally:
        """Return the counts of what the thread did so far; those of a resumed one are read from its file, once."""
        if self._counted is None:
            from commonplace.context.digest.tally import Tally  # slow to load, and only a compaction needs it

            self._counted = self._tally() if self._tally is not None else Tally(cwd)
            if self._tally is None:
                for entry in self.history.entries:
                    self._counted.see(entry.view)
        return self._counted
