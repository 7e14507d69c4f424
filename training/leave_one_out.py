"""Score the memory of real sessions, each person judged by a judge that never saw them.

    python -m training.leave_one_out CORPUS LABELS COMMANDS

The whole program learns from the corpus in a home of its own, as `memory eval --corpus` does; only the judge is
another one for each person. Nothing of the sessions is stored. See README.md.
"""

# pyright: basic, reportMissingImports=false
from __future__ import annotations

import json
import os
import sys
import tempfile
from functools import partial
from pathlib import Path

import anyio
from training import lasting

from commonplace.app import book as books
from commonplace.app.evaluation import CorpusFiles, real_sessions
from commonplace.learning.consolidate import judged
from commonplace.learning.extract import rules
from commonplace.learning.lasting.statements import SpokenSession, spoken
from commonplace.learning.providers import EMBEDDED
from commonplace.learning.reading.session_view import SessionView
from commonplace.projects.people import home_name


def choose_by_person(judges: lasting.JudgesOfOthers) -> None:
    """Let the program judge each session with the judge that never saw its person."""
    known = {person: judges.without(person) for person in judges.people}

    def judge_for(person: str) -> lasting.LastingJudge:
        return known.get(person, judges.final)

    def spoken_by_person(view: SessionView) -> SpokenSession:
        person = home_name(view.cwd)
        if not person:
            raise SystemExit(f"nobody is known who said what stands in the session {view.thread_id}")
        return spoken(view, judge_for(person))

    rules.spoken = spoken_by_person
    judged.judged = partial(judged.judged, judge_for=judge_for)


async def score(files: CorpusFiles) -> dict:
    """Return the score of the corpus."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {"COMMONPLACE_HOME": folder, "HOME": folder, "PATH": os.environ["PATH"]}
        async with books.open(environment=environment) as book:
            # Other processes would know only the judge that is shipped.
            return await real_sessions(book.state, EMBEDDED, files, use_processes=False)


if __name__ == "__main__":
    corpus, labels, commands = map(Path, sys.argv[1:4])
    choose_by_person(lasting.JudgesOfOthers(lasting.labelled(corpus, labels)))
    print(json.dumps(anyio.run(score, CorpusFiles(corpus, labels, commands)), indent=1))
