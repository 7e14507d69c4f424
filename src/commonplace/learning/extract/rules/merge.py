"""Within one session, a thing is said once: findings that mean the same become one with all their evidence.

Wishes come back in other words, and complaints that something was done again add weight, not news: what most of the
shorter one's words stand in is the same wish, and the longer wording, which tells more, stays.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from commonplace.learning.extract.rules.findings import PREFERENCES, RuleFinding
from commonplace.learning.reading import tables

_WORD: Final = re.compile(r"[\w./-]+|[\u3400-\u9fff]")
_COMMON: Final = tables.words("common")
_ALIKE: Final = 0.75
_SAME_WISH: Final = 0.67
_MIN_SHARED: Final = 2


class _KeptFinding(msgspec.Struct):
    finding: RuleFinding
    words: frozenset[str]


def unique_findings(findings: list[RuleFinding]) -> list[RuleFinding]:
    """Return findings without repetition, each where it was first found."""
    kept: list[_KeptFinding] = []
    for finding in findings:
        words = frozenset(_WORD.findall(finding.evidence[0].quote.lower())) - _COMMON or frozenset({finding.text})
        same = next((old for old in kept if _is_same(old, finding, words)), None)
        if same is None:
            kept.append(_KeptFinding(finding, words))
            continue
        known = same.finding
        if finding.kind in PREFERENCES and len(words) > len(same.words):
            known.words, known.lead, known.default = finding.words, finding.lead, finding.default
            same.words = words
        known.evidence = [*known.evidence, *(each for each in finding.evidence if each not in known.evidence)]
    return [each.finding for each in kept]


def _is_same(old: _KeptFinding, new: RuleFinding, words: frozenset[str]) -> bool:
    shared = len(old.words & words)
    if old.finding.kind in PREFERENCES and new.kind in PREFERENCES:
        return shared >= _MIN_SHARED and shared / min(len(old.words), len(words)) >= _SAME_WISH
    return old.finding.kind == new.kind and shared / max(1, len(old.words | words)) >= _ALIKE
