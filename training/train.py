"""Turn labelled messages into the weights of `learning.extract.rules.classifier` (scikit-learn; see README.md)."""

# pyright: basic
from __future__ import annotations

import hashlib
import json
import sys
import tempfile
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from bench import gold_sets
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression

from commonplace.importers import claude_code, ledger_writer
from commonplace.learning.evaluate import cases, files
from commonplace.learning.extract.rules import classifier, judge
from commonplace.learning.reading import exclusions, sentences, session_view
from commonplace.learning.reading.session_view import Interruption, ModelText, ToolUse, UserText

HERE = Path(__file__).parent
TARGET = HERE.parent / "src/commonplace/learning/extract/rules/classifier.json"
NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
STRENGTH = 0.5
LEAST = 3
SMALLEST = 6
"""Weights below this many hundredths, for every kind, are left out."""
GOLD = 1.0
"""How much more a sentence of the gold set counts than one of a labelled message: it stands in a whole session."""
Row = tuple[set[str], str]


def digest() -> str:
    """Return the hash of the labelled messages."""
    found = hashlib.sha256()
    for path in sorted(HERE.glob("*.jsonl")):
        found.update(path.read_bytes())
    return found.hexdigest()


def messages() -> list[Row]:
    """Return the sentences of the labelled messages."""
    rows: list[Row] = []
    for path in sorted(HERE.glob("*.jsonl")):
        for line in path.read_text("utf-8").splitlines():
            message = json.loads(line)
            own = sentences.of_text(message["message"])
            if exclusions.is_text_work(message["message"]):
                continue
            for place, sentence in enumerate(own):
                if not exclusions.is_unfit(sentence.text):
                    by_cues = judge.kind_by_cues(sentence, judge.MessageContext(message["where"]))
                    found = classifier.features(own, place, message["where"], by_cues)
                    rows.append((found, _label(sentence.text, message["labels"])))
    return rows


def _label(text: str, labels: list[dict[str, str]]) -> str:
    for label in labels:
        told, words = label["text"], set(text.split())
        close = len(words & set(told.split())) > 0.7 * len(words) and text[:15] in told
        if text in told or told in text or close:
            return label["kind"]
    return classifier.NOTHING


def gold(half: str, only: str = "") -> list[Row]:
    """Return the sentences of a set of the gold set, labelled by what the cases expect."""
    rows: list[Row] = []
    for case in gold_sets.load(half):
        if only and not case.id.startswith(tuple(only.split(","))):
            continue
        with tempfile.TemporaryDirectory() as name:
            place = ledger_writer.LedgerDestination(Path(name) / "home", lambda: NOW, 65536)
            for number, (session, _, path) in enumerate(files.write(case, Path(name), NOW)):
                if session.source in ("subagent", "ephemeral"):
                    continue
                foreign = session.agent == "claude-code"
                ledger = ledger_writer.write(path, claude_code.convert, place)[0][0].path if foreign else path
                rows += _session(session_view.read(ledger), case, number)
    return rows


def _session(read: session_view.SessionView, case: cases.Case, number: int) -> list[Row]:
    rows: list[Row] = []
    moment, before, is_asked = "opening", "", False
    for event in read.events():
        if not is_asked and not isinstance(event, UserText):
            continue
        is_asked = True
        if isinstance(event, Interruption):
            moment = "stopped"
        elif isinstance(event, ToolUse):
            moment, before = ("refused", "") if event.refused else ("answering", "")
        elif isinstance(event, ModelText):
            moment, before = "answering", event.text
        elif isinstance(event, UserText) and event.voice != "shell":
            asked = "asked" if moment == "answering" and before.rstrip().endswith("?") else moment
            own = sentences.of_text(event.text)
            if not exclusions.is_text_work(event.text):
                for place, sentence in enumerate(own):
                    label = _expected(sentence.text, event.text, case, number)
                    if label is not None and not exclusions.is_unfit(sentence.text):
                        by_cues = judge.kind_by_cues(sentence, judge.MessageContext(asked))
                        rows.append((classifier.features(own, place, asked, by_cues), label))
            moment = "answering"
    return rows


def _expected(sentence: str, message: str, case: cases.Case, number: int) -> str | None:
    """Return what a case expects of a sentence; None if it counts neither way."""
    low, whole = sentence.lower(), message.lower()
    label: str | None = classifier.NOTHING
    for wanted in case.expect.learn:
        if wanted.kind not in classifier.KINDS or (wanted.session is not None and wanted.session != number):
            continue
        hits = sum(part.lower() in low for part in wanted.all)
        any_here = not wanted.any or any(part.lower() in low for part in wanted.any)
        any_near = not wanted.any or any(part.lower() in whole for part in wanted.any)
        if hits == len(wanted.all) and any_here:
            return wanted.kind
        if hits and all(part.lower() in whole for part in wanted.all) and any_near:
            label = wanted.kind
    if label == classifier.NOTHING:
        for allowed in case.expect.allow:
            if all(part.lower() in low for part in allowed.all) and (
                not allowed.any or any(part.lower() in low for part in allowed.any)
            ):
                return None
    return label


def fit(rows: list[Row], counts_as: list[float] | None = None) -> classifier.ClassifierWeights:
    """Return the weights that fit rows best, each counting once or as told."""
    counts = Counter(feature for features, _ in rows for feature in features)
    names = sorted(feature for feature, count in counts.items() if count >= LEAST)
    index = {name: number for number, name in enumerate(names)}
    kinds = [classifier.NOTHING, *classifier.KINDS]
    indices, starts = [], [0]
    for features, _ in rows:
        indices += sorted(index[feature] for feature in features if feature in index)
        starts.append(len(indices))
    matrix = csr_matrix((np.ones(len(indices)), indices, starts), shape=(len(rows), len(names)))
    labels = np.array([kinds.index(label) for _, label in rows])
    model = LogisticRegression(C=STRENGTH, max_iter=500).fit(matrix, labels, sample_weight=counts_as)
    scaled = np.rint(model.coef_.T * classifier.SCALE).astype(int)
    words = {
        name: [int(value) for value in row]
        for name, row in zip(names, scaled, strict=True)
        if max(abs(row)) >= SMALLEST
    }
    base = [int(value) for value in np.rint(model.intercept_ * classifier.SCALE)]
    return classifier.ClassifierWeights(kinds, base, words, digest())


def write(found: classifier.ClassifierWeights, path: Path = TARGET) -> None:
    """Write the weights, one feature per line."""
    head = json.dumps({"kinds": found.kinds, "base": found.base, "made_from": found.made_from})[:-1]
    lines = [
        f"{json.dumps(name, ensure_ascii=False)}:{json.dumps(row, separators=(',', ':'))}"
        for name, row in found.words.items()
    ]
    path.write_text(head + ', "words": {\n' + ",\n".join(lines) + "\n}}\n", "utf-8")


def main() -> None:
    """Train on everything that may be looked at."""
    said, worked = messages(), gold("near") + gold("wide")
    rows = said + worked
    found = fit(rows, [1.0] * len(said) + [GOLD] * len(worked))
    write(found)
    sys.stderr.write(f"{len(rows)} sentences, {len(found.words)} weights, {TARGET.stat().st_size // 1024} KiB\n")


if __name__ == "__main__":
    main()
