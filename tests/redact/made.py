"""Made-up credentials: values of documented shapes, drawn when the tests run, so that no file holds one."""

from __future__ import annotations

import json
import random
import re
import uuid
from collections.abc import Callable
from pathlib import Path
from string import ascii_letters, ascii_lowercase, ascii_uppercase, digits
from typing import NamedTuple

HERE = Path(__file__).parent
CLASSES = {
    "A": ascii_letters + digits,
    "B": ascii_letters + digits + "+/",
    "C": ascii_letters,
    "D": ascii_letters + digits + "_-",
    "E": "023456789acdefghjklmnpqrstuvwxyz",
    "G": "0123456789abcdef",
    "H": "0123456789abcdef",
    "K": "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz",
    "L": ascii_lowercase + digits,
    "N": digits,
    "P": ascii_letters + digits + "!@#%^*-_=+",
    "Q": ascii_uppercase + "234567",
    "U": ascii_uppercase + digits,
    "W": ascii_letters + digits + "_-",
    "X": "0123456789ABCDEF",
}
_PART = re.compile(r"<([A-Z])(\d*)>")
_NOUNS = """
    pepper forest ember orchid marble cactus violin walnut engine saffron willow tundra velvet beacon falcon
"""
_SEEDS = """
    abandon ability absorb abstract accident acid acoustic action actor adapt adjust admit advance afford agent airport
    album alien amateur amused anchor ankle antenna apple arctic arena armor arrow zone young yellow wrist wolf
"""


class Row(NamedTuple):
    """A format: its name, its prefixes, the shape of what follows."""

    kind: str
    prefixes: list[str]
    shape: str


class Case(NamedTuple):
    """A value in surroundings: what stands before and behind it, the text as a whole, and whether that is JSON."""

    name: str
    text: str
    is_json: bool
    depth: int


def read(name: str) -> list[Row]:
    """Read a table of formats."""
    rows: list[Row] = []
    for line in (HERE / name).read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            head, _, shape = line.partition(" | ")
            kind, *prefixes = head.replace("¦", "|").split()
            rows.append(Row(kind, prefixes or [""], shape.replace("¦", "|")))
    return rows


def make(shape: str, draw: random.Random) -> str:
    """Fill a shape with random characters; letters and digits both occur, as they all but always do."""

    def part(found: re.Match[str]) -> str:
        kind, count = found[1], int(found[2] or 0)
        if kind == "V":
            return str(uuid.UUID(int=draw.getrandbits(128), version=4))
        if kind == "J":
            return chosen(draw)
        if kind == "S":
            return spaced(draw)
        if kind == "M":
            return " ".join(draw.sample(_SEEDS.split(), count))
        if kind == "Z":
            return ",".join(str(draw.randrange(256)) for _ in range(count))
        while True:
            text = "".join(draw.choice(CLASSES[kind]) for _ in range(count))
            mixed = any(one.isdigit() for one in text) and not text.isdigit() and any(one.isalpha() for one in text)
            plain = text[0] not in "-_=+!@#%^*" and text[-1] not in "-_=+!@#%^*"
            if (mixed and plain) or count < 12 or kind in "CN":
                return text

    return _PART.sub(part, shape)


def chosen(draw: random.Random) -> str:
    """Return a password as people choose them: words, a number, perhaps a sign."""
    one, two = draw.choice(_NOUNS.split()), draw.choice(_NOUNS.split())
    short, long = draw.randrange(10, 99), draw.randrange(1000, 9999)
    return draw.choice(
        [
            f"{one.capitalize()}.{two}{short}",
            f"{one.capitalize()}-{two}-{short}",
            f"{one.capitalize()}{long}.",
            f"{one}{two}{long}",
            f"{one.capitalize()}{two.capitalize()}{short}#",
            f"{one}.{two}.{long}",
            f"{one[:3]}{two.capitalize()}{long}!",
        ]
    )


def spaced(draw: random.Random) -> str:
    """Return a password with blanks."""
    one, two = draw.choice(_NOUNS.split()), draw.choice(_NOUNS.split())
    short, number = make("<C2>", draw), draw.randrange(10, 99)
    return draw.choice(
        [
            f"{short.capitalize()} {number} {short[::-1]} Pq!",
            f"{one}{number} {two}{number * 7}",
            f"{make('<A5>', draw)}7 {make('<A6>', draw)}4",
            f"{one[:3]} {number} # {two[:3].upper()} {number * 3}",
            f"{one[:2]}X {number}$ {two[:4]}9",
        ]
    )


def fill(row: str, draw: random.Random) -> tuple[list[str], str]:
    """Fill every shape in a row; return what was made, and the row."""
    values: list[str] = []

    def part(found: re.Match[str]) -> str:
        values.append(make(found[0], draw))
        return values[-1]

    return values, _PART.sub(part, row)


def _json(depth: int, name: str, value: str) -> str:
    text = json.dumps({name: value, "other": 1})
    for _ in range(depth):
        text = json.dumps({"role": "tool", "output": f"exit 0\n{text}\nmore"})
    return text


Form = Callable[[str, str], str]
BARE: dict[str, Form] = {
    "prose": lambda _, value: f"I used {value} for the deploy, and it worked.",
    "alone": lambda _, value: value,
    "tool output": lambda _, value: f"   12→{value}\n   13→done\n",
    "added line": lambda _, value: f"@@ -1,2 +1,2 @@\n-old\n+{value}\n",
    "removed line": lambda _, value: f"@@ -1,2 +1,2 @@\n-{value}\n+new\n",
    "log": lambda _, value: f"2026-11-15T10:00:00Z WARN refused credential [{value}] from 10.0.0.7",
}
NAMED: dict[str, Form] = {
    "env": lambda name, value: f"PORT=80\n{name}={value}\nDEBUG=1\n",
    "export": lambda name, value: f'$ export {name}="{value}"\n$ make',
    "yaml": lambda name, value: f"app:\n  {name}: {value}\n  other: 1\n",
    "toml": lambda name, value: f'[app]\n{name} = "{value}"\nother = 1\n',
    "diff": lambda name, value: f"-{name}=\n+{name}={value}\n context",
    "tool": lambda name, value: f"  7→{name}='{value}'\n  8→",
    "python": lambda name, value: f'settings["{name}"] = "{value}"  # set',
    "prose": lambda name, value: f"We set {name} to {value} yesterday.",
    "header": lambda name, value: f"curl -H '{name}: {value}' https://api.test/v1",
    "flag": lambda name, value: f"docker run -e {name}={value} -p 80:80 app",
}
JSON: dict[str, Callable[[str, str], Case]] = {
    "json": lambda name, value: Case("json", _json(0, name, value), is_json=True, depth=0),
    "json in json": lambda name, value: Case("json in json", _json(1, name, value), is_json=True, depth=1),
    "json twice in json": lambda name, value: Case("json twice in json", _json(2, name, value), is_json=True, depth=2),
    "shell in json": lambda name, value: Case(
        "shell in json", json.dumps({"cmd": f"cat .env\n{name}={value}\nX=1"}), is_json=True, depth=0
    ),
}


def cases(name: str, value: str, *, named: bool) -> list[Case]:
    """Return a value in every surrounding."""
    forms = {**NAMED} if named else {**BARE, "header": _bearer, "query": _query, "env": NAMED["env"]}
    found = [Case(form, make_text(name, value), is_json=False, depth=0) for form, make_text in forms.items()]
    return found + [make_case(name if named else "note", value) for make_case in JSON.values()]


def _bearer(_: str, value: str) -> str:
    return f"> Authorization: Bearer {value}\n> Accept: */*"


def _query(_: str, value: str) -> str:
    return f"GET https://api.test/v1/items?access_token={value}&page=2 200"
