"""Whether an edit of a model may be used. Each edit is checked on its own; what may not be used is dropped alone.

* It names entries that the model was shown, and none that a person pinned, noted or confirmed.
* What it says rests on the entries that it names: on their words, and on every name, path, number and command in them.
* A preference or a rule rests on a person's words, and says no more and no less than they wanted.
* Nothing goes with it: a command of an entry stays, and entries that are joined are of one project and one section.
* An entry becomes global only if the person said so, or if it was taught in two repositories.
* A skill says whom it is for, and has steps that its entries tell.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from commonplace.learning.consolidate import entry_edits
from commonplace.learning.consolidate.curator import grounding
from commonplace.learning.consolidate.entry_edits import (
    EntryEdit,
    Join,
    MoveToGlobal,
    Order,
    Retitle,
    Reword,
    WriteSkill,
)
from commonplace.learning.consolidate.learned_lessons import ConsolidationInput
from commonplace.memory import similarity
from commonplace.memory.entries import GLOBAL, SECTION_OF, Entry
from commonplace.memory.files import validation
from commonplace.patterns import regex
from commonplace.redact import find

MAX_LINE: Final = 400
"""Characters of an entry."""
_MAX_TITLE: Final = 80
_MAX_KEYWORD: Final = 40
_MAX_KEYWORDS: Final = 8
_MAX_STEPS: Final = 20
_NAME: Final = regex(r"[a-z0-9]+(?:-[a-z0-9]+){0,9}")
_STRUCTURE: Final = regex(r"\[Task \d|^#|^scope:|\*\*")
_WISHES: Final = "User preferences"


class EditRefusal(NamedTuple):
    """Why an edit is dropped."""

    reason: str
    """The same for all edits that are dropped for it; they are counted by it."""
    detail: str = ""


def refusal(
    edit: EntryEdit, shown: dict[str, Entry], known: list[Entry], material: ConsolidationInput
) -> EditRefusal | None:
    """Return why an edit may not be used; None if it may. `known` are all entries of the memory."""
    names = entry_edits.named(edit)
    if any(name not in shown for name in names):
        return EditRefusal("names an entry that was not shown")
    entries = [shown[name] for name in names]
    is_change = not isinstance(edit, Order | Retitle | WriteSkill)
    if is_change and any(each.is_by_hand or each.id in material.reviews for each in entries):
        return EditRefusal("changes what a person pinned, noted or confirmed")
    if entry_edits.is_forgotten(edit, material.forgotten):
        return EditRefusal("says what a person asked to forget")
    if any(_is_unfit(text) for text in entry_edits.texts(edit)):
        return EditRefusal("is no line of a memory")
    match edit:
        case Reword() | Join():
            return _wording(edit.text, entries)
        case Retitle():
            return _title(edit, entries)
        case MoveToGlobal():
            return _everywhere(entries[0], known, material)
        case WriteSkill():
            return _skill(edit, entries, material)
        case Order():
            return EditRefusal("orders entries of several projects") if _scopes(entries) > 1 else None


def _is_unfit(text: str) -> bool:
    return len(text) > MAX_LINE or bool(_STRUCTURE.search(text)) or validation.is_unfit(text) or bool(find(text))


def _scopes(entries: list[Entry]) -> int:
    return len({each.scope for each in entries})


def _wording(text: str, entries: list[Entry]) -> EditRefusal | None:
    """Return why entries may not be said so."""
    if not text:
        return EditRefusal("is no line of a memory", "it is empty")
    if _scopes(entries) > 1 or len({SECTION_OF[each.kind] for each in entries}) > 1:
        return EditRefusal("joins entries of different projects or sections")
    is_wish = SECTION_OF[entries[0].kind] == _WISHES
    by_person = grounding.wishes(entries)
    if is_wish and len(by_person) < len(entries):
        return EditRefusal("makes a wish of what nobody said")
    words = grounding.of_entries(entries, only_persons=is_wish)
    why = grounding.problem(text, words, may_order=is_wish or bool(by_person))
    if why is not None:
        return EditRefusal("rests on nothing that its entries say", why)
    why = grounding.reversal(text, entries)
    if why is not None:
        return EditRefusal("says the opposite of an entry", why)
    lost = next((each for each in entries if grounding.is_lost(each, text)), None)
    return EditRefusal("leaves out what an entry says", lost.id) if lost is not None else None


def _title(edit: Retitle, entries: list[Entry]) -> EditRefusal | None:
    if any(each.scope != edit.scope for each in entries):
        return EditRefusal("names another project than its entries")
    sizes = (len(edit.title), len(edit.keywords), max(map(len, edit.keywords), default=0))
    if not edit.title or any(
        one > most for one, most in zip(sizes, (_MAX_TITLE, _MAX_KEYWORDS, _MAX_KEYWORD), strict=True)
    ):
        return EditRefusal("is no title of a block")
    words = grounding.of_entries(entries)
    lower = words.lower()
    if (
        grounding.problem(edit.title, words, may_order=False) is not None
        or (grounding.denies(edit.title) and not grounding.denies(words))
        or any(word.lower() not in lower for word in edit.keywords)
    ):
        return EditRefusal("rests on nothing that its entries say")
    return None


def _everywhere(entry: Entry, known: list[Entry], material: ConsolidationInput) -> EditRefusal | None:
    """Return why an entry may not become global."""
    if entry.scope == GLOBAL:
        return EditRefusal("moves what is global already")
    quotes = [source.quote.lower().replace("’", "'") for source in entry.sources if source.is_by_person]
    if any(
        similarity.pattern("everywhere").search(quote) and not similarity.pattern("of_this_project").search(quote)
        for quote in quotes
    ):
        return None
    words = similarity.words(entry.text)
    same = [entry, *(each for each in known if similarity.is_same(words, similarity.words(each.text)))]
    taught = {material.projects.get(source.thread_id or "") for each in same for source in each.sources} - {None}
    return None if len(taught) > 1 else EditRefusal("makes global what was said of one project")


def _skill(edit: WriteSkill, entries: list[Entry], material: ConsolidationInput) -> EditRefusal | None:
    if any(each.scope != edit.scope for each in entries):
        return EditRefusal("names another project than its entries")
    if not _NAME.fullmatch(edit.name) or not 1 <= len(edit.steps) <= _MAX_STEPS:
        return EditRefusal("is no skill")
    if validation.is_owned(edit.name, material.owned):
        return EditRefusal("changes what a person pinned, noted or confirmed", edit.name)
    words, may_order = grounding.of_entries(entries), bool(grounding.wishes(entries))
    for step in edit.steps:
        why = grounding.problem(step, words, may_order=may_order)
        if why is not None or (grounding.denies(step) and not grounding.denies(words)):
            return EditRefusal("rests on nothing that its entries say", why or "")
    return None
