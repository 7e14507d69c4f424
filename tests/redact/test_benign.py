"""What looks like a secret and is none stays: one text on a line of `benign.txt`, with the reason."""

from __future__ import annotations

import json
from pathlib import Path

from commonplace.redact import redact

LINES = (Path(__file__).parent / "benign.txt").read_text("utf-8").splitlines()
TEXTS = [line.rpartition(" ## ")[0].replace("⏎", "\n").replace("⇥", "\t").replace("␛", "\x1b") for line in LINES]


def surroundings(text: str) -> list[str]:
    lines = text.split("\n")
    return [
        text,
        "".join(f"+{line}\n" for line in lines),
        "".join(f"{number:5}→{line}\n" for number, line in enumerate(lines, 12)),
        json.dumps({"output": f"one\n{text}\nthree"}),
        json.dumps([json.dumps({"output": text})]),
        "".join(f"> {line}\n" for line in lines) + "\nand more",
        f"I looked through it and found {text} in there.",
    ]


def test_there_are_enough_look_alikes() -> None:
    assert len(TEXTS) >= 700
    assert all(TEXTS)


def test_at_most_one_of_two_hundred_look_alikes_is_touched() -> None:
    touched = [text for text in TEXTS if any(redact(one) != one for one in surroundings(text))]

    assert len(touched) <= len(TEXTS) // 200, touched
