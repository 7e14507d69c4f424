"""Making lessons and inputs for tests of consolidation."""

from __future__ import annotations

import re
import uuid

from commonplace.memory.entries import Kind, Source
from commonplace.memory.files.raw_memories import RawMemory
from commonplace.memory.lessons import SessionLesson

DAY = 86_400
START = 1_760_000_000
LEADS: dict[Kind, str] = {
    "preference": "said by the user",
    "rule": "rule stated by the user",
    "environment": "said by the user",
    "decision": "decided by the user",
    "failure": "given up by the user",
}


def thread(number: int) -> str:
    """A thread's id."""
    return str(uuid.UUID(int=0x01A1_0000_0000_7000_8000_0000_0000_0000 + number))


def lesson(
    words: str, *, kind: Kind = "preference", project: str = "example.org/acme/shop", day: int = 0
) -> SessionLesson:
    """Something that a person said in a session of a day, or that its commands showed."""
    lead = LEADS.get(kind, "") if not words.startswith(("`", "verify", "steps to")) else ""
    text = f'{lead}: "{words}"' if lead else words
    how = "said by the user" if lead else "verified by exit status"
    source = Source(words, how, thread(day), 1, 10, 90, START + day * DAY)
    ran = tuple(re.findall(r"`([^`]+)`", text)) if not lead else ()
    when = START + day * DAY
    return SessionLesson(
        kind, text, words, "", lead, project, thread(day), when, 0, "a task", "success", (source,), ran
    )


def taught(
    number: int, bullets: dict[str, list[str]], *, cwd: str = "/home/dev/shop", dialogue: int = 9000
) -> RawMemory:
    """What a session taught, as an extractor writes it; each bullet has evidence of its own."""
    lines = [
        "---", "description: d", "task: fix it", "task_group: g", "task_outcome: success", f"cwd: {cwd}",
        "keywords: alpha, beta", "---", "", "### Task 1: fix it", "", "task: fix it", "task_group: g",
        "task_outcome: success",
    ]  # fmt: skip
    references: list[str] = []
    for section, texts in bullets.items():
        lines += ["", section]
        for text in texts:
            references.append(
                f"- [{len(references) + 1}] turn 1, bytes {len(references) * 100}-{len(references) * 100 + 50}, "
                f'said by the user: "{text}"'
            )
            lines.append(f"- {text} [{len(references)}]")
    lines += ["", "References:", *references]
    context = f"Rollout context: 1 task(s), {dialogue} bytes of dialogue, in {cwd}."
    summary = f"# fix it\n\n{context}\n\n## Task 1: fix it\nOutcome: success\n"
    return RawMemory(
        thread(number), START + number * DAY, cwd, f"/sessions/{number}.jsonl", None, "\n".join(lines), summary, "fix"
    )
