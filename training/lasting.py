"""Turn labelled real messages into the weights of `learning.lasting.judge` (scikit-learn; see README.md).

    python -m training.lasting CORPUS LABELS [--write]

CORPUS is a folder with `homes` (the sessions of people) and `messages.jsonl`; LABELS says of each message what it is.
Each person is left out in turn: the table that is printed, and the calibration, come from judges that never saw the
person whom they judge. `--write` stores the judge that is trained on all of them. Nothing of the sessions is stored.
"""

# pyright: basic, reportMissingImports=false
from __future__ import annotations

import json
import math
import re
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from bench import gold_sets
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression

from commonplace.learning.lasting import acts, authors, handwriting, own_sentences, shapes, stated, statements
from commonplace.learning.lasting.features import MeasuredSentence, PersonHabits, Surroundings, measure
from commonplace.learning.lasting.judge import KINDS, LastingJudge, grams
from commonplace.learning.reading import session_view
from commonplace.learning.reading.cues import likely_languages
from commonplace.learning.reading.session_view import ModelText
from commonplace.memory.lessons import JudgeSums, WritingSample

HERE = Path(__file__).parent
TARGET = HERE.parent / "src/commonplace/learning/lasting/judge.json"
HEADS = {
    "work": ("preference", "procedure", "verify"),
    "rule": ("rule", "decision"),
    "fact": ("environment", "failure"),
}
STRENGTH, WORD_STRENGTH, HAND_STRENGTH, STATED_STRENGTH = 0.005, 3.0, 0.1, 0.1
"""How freely the heads, the words, the handwriting and what is stated may fit (scikit-learn's C)."""
GOLD = 3
"""How much a sentence of the gold set counts in the model of what is stated: it stands in a whole session."""
INVENTED = 0.05
"""How much an invented sentence counts in the model over words."""
WORD_SHARE = 0.6
"""How heavy the words are, in standard deviations of the heads."""
BESIDE = 0.6
"""How much the other sentences of a lasting message count."""
INSIDE = 0.3
"""A sentence is lasting if so many of its words are."""
BITS = 16
OPENERS = ("Let me", "I'll", "Now ", "Let's", "I ", "I'm", "Would you", "Should I", "Do you")
_LIST_MARK = re.compile(r"^\s*(?:[-*•]|\d+[.)]|#+)\s+|\*\*")
_PERSON = re.compile(r"(?:/Users/|/home/|[A-Za-z]:\\Users\\)([^/\\]+)")


@dataclass
class LabelledMessage:
    """A message with its label and what stood around it."""

    text: str
    around: Surroundings
    person: str
    session: str
    label: dict
    before: str
    parts: list[authors.Stretch]


@dataclass
class Row:
    """One sentence."""

    message: LabelledMessage
    measured: MeasuredSentence
    is_main: bool
    is_lasting: bool
    features: dict[str, float] = field(default_factory=dict)


def labelled(corpus: Path, labels: Path) -> list[LabelledMessage]:
    """Return the labelled messages, read as the product reads them."""
    wanted: dict[str, list[tuple[str, dict]]] = defaultdict(list)
    gold = {(row["session"], row["uuid"]): row for row in map(json.loads, labels.open())}
    for row in map(json.loads, (corpus / "messages.jsonl").open()):
        if label := gold.get((row["session"], row["uuid"])):
            wanted[row["session"]].append((row["text"].strip(), label))
    found: list[LabelledMessage] = []
    with tempfile.TemporaryDirectory() as home:
        program = [sys.executable, "-m", "commonplace", "sessions", "import", "--json"]
        for agent, name in (("claude", "claude-code"), ("codex", "codex")):
            if (corpus / "homes" / agent).exists():
                given = [*program, "--from", name, "--path", str(corpus / "homes" / agent)]
                subprocess.run(  # noqa: S603  # our own program
                    given, check=True, capture_output=True, env={"COMMONPLACE_HOME": home, "PATH": "/usr/bin"}
                )
        for path in sorted(Path(home).rglob("*.jsonl")):
            found += _of_session(session_view.read(path), wanted)
    return found


def _of_session(view: session_view.SessionView, wanted: dict[str, list[tuple[str, dict]]]) -> list[LabelledMessage]:
    rest = list(wanted.get(view.thread_id, ()))
    who = _PERSON.match(view.cwd)
    events = view.events()
    found = []
    for message in statements.messages(view):
        match = next((each for each in rest if each[0] == message.text.strip()), None)
        if match is None:
            continue
        rest.remove(match)
        said = [event.text for event in events if isinstance(event, ModelText) and event.at.start < message.at.start]
        offset = len(message.text) - len(message.text.lstrip())
        label = dict(match[1])
        label["spans"] = [
            [a + offset, b + offset] for a, b in [label.get("span") or [0, len(match[0])], *label.get("also", [])]
        ]
        parts = authors.stretches(message.text, marks=message.marks)
        found.append(
            LabelledMessage(
                message.text,
                message.around,
                who[1] if who else "?",
                view.thread_id,
                label,
                (said or [""])[-1][-1500:],
                parts,
            )
        )
    return found


# ---- handwriting


def hand_examples(messages: list[LabelledMessage]):
    """Yield (features, is a machine's, person): what people typed, and what agents said around it."""
    for message in messages:
        if message.label["label"] in ("moment", "question", "lasting", "status", "chat") and len(message.text) < 600:
            for sentence in own_sentences.own_sentences(message.text, message.parts):
                if len(sentence.text.split()) >= 4:
                    yield handwriting.features(sentence.text, acts.shape(sentence.text)), 0, message.person
        sources = [message.before]
        if message.label["label"] in ("plan", "harness") and not message.around.is_refusal:
            sources.append(message.text)
        for source in sources:
            yield from ((features, 1, message.person) for features in _machine_sentences(source))


def _machine_sentences(source: str):
    count = 0
    for begin, end in own_sentences.split(source, 0, len(source)):
        text = _LIST_MARK.sub("", source[begin:end]).strip()
        fits = (
            len(text.split()) >= 4
            and len(text) < 500
            and not shapes.is_output_line(text)
            and not text.startswith(OPENERS)
        )
        if fits and count < 8:
            count += 1
            yield handwriting.features(text, acts.shape(text))


def hand_weights(examples) -> dict[str, float]:
    """Fit the model of handwriting."""
    counts = Counter(name for features, _, _ in examples for name in features)
    names = sorted(name for name, count in counts.items() if count >= 5)
    index = {name: place for place, name in enumerate(names)}
    columns, starts = [], [0]
    for features, _, _ in examples:
        columns += sorted(index[name] for name in features if name in index)
        starts.append(len(columns))
    matrix = csr_matrix(([1.0] * len(columns), columns, starts), shape=(len(examples), len(names)))
    machines = [is_machine for _, is_machine, _ in examples]
    fitted, base = _fitted(matrix, machines, C=HAND_STRENGTH, solver="liblinear", class_weight="balanced")
    weights = {name: round(float(weight), 3) for name, weight in zip(names, fitted, strict=True) if abs(weight) >= 0.02}
    return {"": base, **weights}


def _fitted(matrix, target, *, weights=None, **options: Any) -> tuple[np.ndarray, float]:
    """Fit a logistic regression; return its weights and its base."""
    model: Any = LogisticRegression(**options).fit(matrix, target, sample_weight=weights)
    return model.coef_[0], float(model.intercept_[0])


# ---- rows


def rows_of(messages: list[LabelledMessage], weights) -> list[Row]:
    """Return one row for each own sentence; `weights` gives the handwriting model for a person."""
    rows: list[Row] = []
    for message in messages:
        for measured in measure(message.text, message.parts, message.around, weights(message.person)):
            inside = [_is_inside(measured.sentence, span) for span in message.label["spans"]]
            is_lasting = message.label["label"] == "lasting"
            rows.append(Row(message, measured, is_lasting and inside[0], is_lasting and any(inside)))
    people: dict[str, PersonHabits] = defaultdict(PersonHabits)
    for row in rows:
        people[row.message.person].add(row.message.session, sample(row.measured))
    for row in rows:
        row.features = row.measured.features | people[row.message.person].features(sample(row.measured))
    return rows


def sample(measured: MeasuredSentence) -> WritingSample:
    """Return how a sentence is written."""
    return WritingSample(measured.hand, measured.size, tuple(measured.extras), measured.is_request)


def _is_inside(sentence: own_sentences.OwnSentence, span: list[int]) -> bool:
    places = [
        (sentence.start + word.start(), sentence.start + word.end())
        for word in own_sentences.WORD.finditer(sentence.text)
    ]
    return sum(span[0] <= begin and end <= span[1] for begin, end in places) >= INSIDE * max(1, len(places))


def invented() -> list[tuple[list[str], bool]]:
    """Return the sentences of `training/*.jsonl`, each with whether it lasts."""
    found = []
    for path in sorted(HERE.glob("*.jsonl")):
        for row in map(json.loads, path.open(encoding="utf-8")):
            text = row["message"]
            spans = [[at, at + len(each["text"])] for each in row["labels"] if (at := text.find(each["text"])) >= 0]
            found += [
                (acts.words(sentence.text), any(_is_inside(sentence, span) for span in spans))
                for sentence in own_sentences.own_sentences(text, authors.stretches(text))
            ]
    return found


# ---- what is stated in so many words


def stated_weights() -> tuple[dict[int, float], float]:
    """Fit the model of stated sentences on those that were written for it: `training/*.jsonl` and the gold set."""
    rows: list[tuple[set[int], bool]] = []
    for path in sorted(HERE.glob("*.jsonl")):
        for row in map(json.loads, path.open(encoding="utf-8")):
            rows += _stated_rows(row["message"], [each["text"] for each in row["labels"]])
    for name in ("near", "wide"):
        for case in gold_sets.load(name):
            rows += _gold_rows(case) * GOLD
    columns, starts = [], [0]
    for features, _ in rows:
        columns += sorted(features)
        starts.append(len(columns))
    matrix = csr_matrix(([1.0] * len(columns), columns, starts), shape=(len(rows), 2**stated.BITS))
    target = [is_lasting for _, is_lasting in rows]
    flat, base = _fitted(matrix, target, C=STATED_STRENGTH, solver="liblinear", max_iter=1000)
    kept = {int(place): round(float(flat[place]), 2) for place in np.flatnonzero(np.abs(flat) >= 0.03)}
    return kept, base


def _stated_rows(text: str, lasting: list[str]) -> list[tuple[set[int], bool]]:
    spans = [[at, at + len(each)] for each in lasting if (at := text.find(each)) >= 0]
    languages = likely_languages(text)
    return [
        (stated.StatedSentence(sentence.text, languages).features(), any(_is_inside(sentence, span) for span in spans))
        for sentence in own_sentences.own_sentences(text, authors.stretches(text))
    ]


def _gold_rows(case) -> list[tuple[set[int], bool]]:
    """Return the sentences of a case; those that it allows and does not want count neither way."""
    said = [each for each in case.expect.learn if each.kind not in ("fix", "verify", "procedure")]
    rows = []
    for text in [event["user"] for session in case.sessions for event in session.events if event.get("user")]:
        languages = likely_languages(text)
        for sentence in own_sentences.own_sentences(text, authors.stretches(text)):
            is_lasting = any(_holds(sentence.text, each) for each in said)
            if is_lasting or not any(_holds(sentence.text, each) for each in case.expect.allow):
                rows.append((stated.StatedSentence(sentence.text, languages).features(), is_lasting))
    return rows


def _holds(text: str, wanted) -> bool:
    lower = text.lower()
    return all(part.lower() in lower for part in wanted.all) and (
        not wanted.any or any(part.lower() in lower for part in wanted.any)
    )


# ---- the judge


def train(rows: list[Row], hand: dict[str, float], others: list[tuple[list[str], bool]]) -> LastingJudge:
    """Fit the heads, the kinds and the words."""
    names = sorted({name for row in rows for name in row.features})
    index = {name: place for place, name in enumerate(names)}
    x = np.zeros((len(rows), len(names)))
    for place, row in enumerate(rows):
        for name, value in row.features.items():
            x[place, index[name]] = value
    y = np.array([row.is_main for row in rows])
    weight = np.array([_weight(row) for row in rows])
    mean, scale = x.mean(0), x.std(0)
    scale[scale == 0] = 1.0
    z = (x - mean) / scale
    kinds = np.array([row.message.label.get("kind") or "" if row.is_main else "" for row in rows])

    def fitted(strength: float, use, target, weights=None):
        if len(set(target[use])) < 2:
            return np.zeros(len(names)), -9.0
        used = None if weights is None else weights[use]
        scaled, base = _fitted(z[use], target[use], weights=used, C=strength, max_iter=2000)
        plain = scaled / scale
        return plain, base - float((plain * mean).sum())

    heads = [fitted(STRENGTH, np.isin(kinds, group) | ~y, np.isin(kinds, group), weight) for group in HEADS.values()]
    whose = np.array([row.message.label.get("scope") == "person" for row in rows])
    about = [fitted(0.01, y, whose), *(fitted(0.002, y, kinds == kind) for kind in KINDS)]
    words, word_base = _word_weights(rows, y, weight, others)
    return LastingJudge(
        hand=hand,
        heads={name: _three(round(float(each[0][place]), 4) for each in heads) for name, place in index.items()},
        base=_three(each[1] for each in heads),
        about={name: tuple(round(float(each[0][place]), 4) for each in about) for name, place in index.items()},
        about_base=tuple(each[1] for each in about),
        words=words,
        word_base=word_base,
        stated={},
        stated_base=0.0,
        mix=0.0,
        a=1.0,
        b=0.0,
    )


def _weight(row: Row) -> float:
    """Sentences that are only worth a line beside the lesson teach nothing; the rest of its message teaches less."""
    if row.is_lasting and not row.is_main:
        return 0.0
    return BESIDE if row.message.label["label"] == "lasting" and not row.is_lasting else 1.0


def _word_weights(rows, y, weight, others) -> tuple[dict[int, float], float]:
    tokens = [row.measured.tokens for row in rows] + [each for each, _ in others]
    target = np.array([*y, *(is_lasting for _, is_lasting in others)])

    def balanced(labels, weights):
        most = (weights * ~labels).sum() / max(1e-9, (weights * labels).sum())
        return np.where(labels, weights * most, weights)

    count = len(rows)
    weights = np.concatenate([balanced(y, weight), balanced(target[count:], np.full(len(others), INVENTED))])
    columns, starts, values = [], [0], []
    for each in tokens:
        hashed = grams(each)
        columns += hashed
        values += [1 / math.sqrt(len(hashed))] * len(hashed)
        starts.append(len(columns))
    matrix = csr_matrix((values, columns, starts), shape=(len(tokens), 2**BITS))
    flat, base = _fitted(matrix, target, weights=weights, C=WORD_STRENGTH, solver="liblinear", max_iter=2000)
    kept = {int(place): round(float(flat[place]), 2) for place in np.flatnonzero(np.abs(flat) >= 0.02)}
    return kept, base


def _three(values: Iterable[float]) -> tuple[float, float, float]:
    work, rule, fact = values
    return work, rule, fact


def parts(judge: LastingJudge, row: Row) -> tuple[float, float]:
    """Return the log odds of the heads together, and the score of the words."""
    hashed = grams(row.measured.tokens)
    said = judge.word_base + sum(judge.words.get(gram, 0.0) for gram in hashed) / math.sqrt(len(hashed))
    sums = JudgeSums(judge.base, said, judge.about_base) + judge.features(row.features)
    none = math.prod(1 - 1 / (1 + math.exp(-head)) for head in sums.heads)
    lasting = min(max(1 - none, 1e-6), 1 - 1e-6)
    return math.log(lasting / (1 - lasting)), said


def calibrated(
    judges: list[tuple[LastingJudge, list[Row]]], final: LastingJudge
) -> tuple[LastingJudge, list[tuple[Row, float]]]:
    """Return the final judge with its calibration, and what judges who never saw a person say of their sentences."""
    told = [(row, *parts(judge, row)) for judge, rows in judges for row in rows]
    heads, words = np.array([each[1] for each in told]), np.array([each[2] for each in told])
    mix = WORD_SHARE * heads.std() / words.std()
    joined = heads + mix * words
    model = LogisticRegression(C=1e6).fit(joined[:, None], [row.is_lasting for row, _, _ in told])
    a, b = float(model.coef_[0][0]), float(model.intercept_[0])
    chances = 1 / (1 + np.exp(-(a * joined + b)))
    final = msgspec.structs.replace(final, mix=float(mix), a=a, b=b)
    return final, [(row, float(chance)) for (row, _, _), chance in zip(told, chances, strict=True)]


def table(told: list[tuple[Row, float]]) -> None:
    """Print what one statement a message is worth, by the labels of people whom the judge never saw."""
    by_message: dict[int, list[tuple[Row, float]]] = defaultdict(list)
    for row, chance in told:
        by_message[id(row.message)].append((row, chance))
    musts = {_topic(row.message) for row, _ in told if row.message.label.get("strength") == "must"}
    for least in (0.3, 0.4, 0.5, 0.6):
        count = good = 0
        found = set()
        for rows in by_message.values():
            best, chance = max(rows, key=lambda each: each[1])
            if chance < least:
                continue
            count += 1
            likely = [each for _, each in rows]
            first, last = statements.grown(
                best.message.text, [row.measured for row, _ in rows], likely, likely.index(chance)
            )
            good += any(row.is_lasting for row, _ in rows[first : last + 1])
            if any(row.is_main for row, _ in rows[first : last + 1]):
                found.add(_topic(best.message))
        share = len(found & musts) / len(musts)
        print(f"p >= {least}: {count:4d} statements, precision {good / max(1, count):.2f}, musts {share:.2f}")


def _topic(message: LabelledMessage) -> str:
    return message.label.get("topic") or message.label["uuid"]


class JudgesOfOthers:
    """A judge of all people, and for each person one that never saw them, calibrated on the others alone."""

    def __init__(self, messages: list[LabelledMessage]) -> None:
        self.people = sorted({message.person for message in messages})
        examples = list(hand_examples(messages))
        without = {person: hand_weights([each for each in examples if each[2] != person]) for person in self.people}
        rows = rows_of(messages, lambda person: without[person])
        others = invented()
        self._judged = [
            (
                train([row for row in rows if row.message.person != person], without[person], others),
                [row for row in rows if row.message.person == person],
            )
            for person in self.people
        ]
        self.final, self.told = calibrated(self._judged, train(rows, hand_weights(examples), others))
        self._stated = stated_weights()
        self.final = self._with_stated(self.final)

    def without(self, person: str) -> LastingJudge:
        """Return the judge that never saw a person."""
        place = self.people.index(person)
        rest = [each for number, each in enumerate(self._judged) if number != place]
        return self._with_stated(calibrated(rest, self._judged[place][0])[0])

    def _with_stated(self, judge: LastingJudge) -> LastingJudge:
        weights, base = self._stated
        return msgspec.structs.replace(judge, stated=weights, stated_base=base)


def main(corpus: Path, labels: Path, *, write: bool) -> None:
    """Train, measure with each person left out, and write the weights if asked."""
    messages = labelled(corpus, labels)
    judges = JudgesOfOthers(messages)
    print(f"{len(messages)} messages of {len(judges.people)} people")
    table(judges.told)
    if write:
        TARGET.write_bytes(msgspec.json.encode(judges.final) + b"\n")
        print(f"written: {TARGET.name}, {TARGET.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), write="--write" in sys.argv)
