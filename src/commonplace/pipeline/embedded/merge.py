"""Within one session, a thing is said once: findings that mean the same become one with all their evidence."""

from __future__ import annotations

import re
from typing import Final

from commonplace.pipeline.embedded.findings import Finding

_WORD: Final = re.compile(r"[\w./-]+")
_ALIKE: Final = 0.75


def once(findings: list[Finding]) -> list[Finding]:
    """Return findings without repetition; the first wording stays."""
    kept: list[tuple[Finding, frozenset[str]]] = []
    for finding in findings:
        words = frozenset(_WORD.findall(finding.evidence[0].quote.lower())) or frozenset({finding.text})
        same = next((old for old, known in kept if old.kind == finding.kind and _alike(known, words)), None)
        if same is None:
            kept.append((finding, words))
        else:
            same.evidence = [*same.evidence, *(each for each in finding.evidence if each not in same.evidence)]
    return [finding for finding, _ in kept]


def _alike(one: frozenset[str], two: frozenset[str]) -> bool:
    return len(one & two) / max(1, len(one | two)) >= _ALIKE
