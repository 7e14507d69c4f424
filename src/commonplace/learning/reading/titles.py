"""The title of a session: the heading of its plan, its pull request or its branch."""

from __future__ import annotations

import re
from typing import Final

from commonplace.learning.lasting import authors
from commonplace.learning.lasting.authors import Author
from commonplace.learning.reading.session_view import SessionView, ToolUse, UserText
from commonplace.patterns import regex
from commonplace.protocol import shell

_HEADING: Final = regex(r"(?m)^#{1,3} ++(\S.*)$")
_PLAN_WORD: Final = regex(r"^(?:implementation )?plan\b(?: (?:for|to)\b)?[ :–—-]*+", re.IGNORECASE)
_USUAL: Final = frozenset({"main", "master", "develop", "development", "dev", "trunk", "head", "staging", "production"})
"""Branches that tell nothing about a session."""
_LONGEST: Final = 80
_TITLE_OPTIONS: Final = ("--title", "-t")


def title_of(view: SessionView) -> str:
    """Return the title of a session; empty if only the names of its tasks tell what it was about."""
    return _plan(view) or _pull_request(view) or _branch(view.branch or "")


def _plan(view: SessionView) -> str:
    for event in view.events():
        if isinstance(event, UserText) and _is_plan(event.text):
            heading = _HEADING.search(event.text)
            return _fitting(_PLAN_WORD.sub("", heading[1], count=1)) if heading else ""
    return ""


def _is_plan(text: str) -> bool:
    return any(stretch.author is Author.PLAN for stretch in authors.stretches(text))


def _pull_request(view: SessionView) -> str:
    """Return the title of the last pull request that the session opened."""
    opened = [
        event.command
        for event in view.events()
        if isinstance(event, ToolUse) and event.ok and "gh pr create" in event.command
    ]
    for command in reversed(opened):
        for segment in shell.segments(command):
            words = [word.text for word in segment.words]
            if tuple(words[:3]) == ("gh", "pr", "create"):
                named = [words[place + 1] for place, word in enumerate(words[:-1]) if word in _TITLE_OPTIONS]
                if named and "$" not in named[0]:
                    return _fitting(named[0])
    return ""


def _branch(branch: str) -> str:
    name = branch.strip()
    return _fitting(name) if name and name.lower() not in _USUAL else ""


def _fitting(text: str) -> str:
    """Return a text on one line, without what ends a sentence; empty if it is too long for a heading."""
    line = " ".join(text.split()).rstrip(" .:;,!…*#").replace("**", "")
    return line if len(line) <= _LONGEST else ""
