"""Prompt injection: texts that try to steer their reader are never kept, whoever wrote them."""

from __future__ import annotations

import re
from typing import Final

_INJECTION: Final = re.compile(
    r"ignore (?:all |any )?(?:previous|prior|above|earlier)"
    r"|disregard (?:the |all )?(?:previous|above)"
    r"|system prompt"
    r"|you are now"
    r"|curl [^|]{0,400}\|\s*(?:ba)?sh"
    r"|wget [^|]{0,400}\|\s*(?:ba)?sh"
    r"|as an ai"
    r"|</?(?:system|instructions?|assistant|memory)\b",
    re.IGNORECASE,
)


def is_injection(text: str) -> bool:
    """Say whether a text tries to steer its reader."""
    return bool(_INJECTION.search(text))
