"""Citations: the grammar, what a person sees, what cannot be parsed; an answer counts once, however often it comes."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from commonplace.app import book as books
from commonplace.importers import session_citations
from commonplace.importers.session_citations import CitingAnswer
from commonplace.protocol import citations
from commonplace.protocol.citations import CLOSE, OPEN, Citation, CitedEntry
from commonplace.state import outputs
from commonplace.state.outputs import Output
from ledgers import Script, assistant, user

ONE = "01a1dddc-5c08-7863-8c91-eb8a612fb6a1"
TWO = "01a1dddc-78fa-7010-8d50-6d71c7fcf145"
BLOCK = f"""<oai-mem-citation>
<citation_entries>
MEMORY.md:12-15|note=[used the port]
rollout_summaries/2026-11-15-x.md:1-3|note=[checked it]
</citation_entries>
<rollout_ids>
{ONE}
{TWO}
</rollout_ids>
</oai-mem-citation>"""


def ids_block(*ids: str) -> str:
    listed = "\n".join(ids)
    return f"{OPEN}\n<rollout_ids>\n{listed}\n</rollout_ids>\n{CLOSE}"


def test_a_block_as_the_grammar_writes_it_is_read_whole() -> None:
    visible, bodies = citations.strip(f"The port is 8080.\n{BLOCK}")

    assert visible == "The port is 8080.\n"
    assert citations.parse(bodies) == Citation(
        [
            CitedEntry("MEMORY.md", 12, 15, "used the port"),
            CitedEntry("rollout_summaries/2026-11-15-x.md", 1, 3, "checked it"),
        ],
        [ONE, TWO],
    )
    assert citations.cited_threads(f"x{BLOCK}") == [ONE, TWO]


@pytest.mark.parametrize(
    ("text", "visible", "bodies"),
    [
        ("", "", []),
        ("plain", "plain", []),
        (f"Hello {OPEN}source A{CLOSE} world", "Hello  world", ["source A"]),
        ("abc <oai-mem-", "abc <oai-mem-", []),
        ("abc <oai-mem-citation", "abc <oai-mem-citation", []),
        (f"x{OPEN}y", "x", ["y"]),
        (f"x{OPEN}", "x", [""]),
        (f"x{OPEN}y</oai-mem-citation", "x", ["y</oai-mem-citation"]),
        (f"a{OPEN}x{OPEN}y{CLOSE}z{CLOSE}b", f"az{CLOSE}b", [f"x{OPEN}y"]),
        (f"{CLOSE}a", f"{CLOSE}a", []),
        (f"a{OPEN}1{CLOSE}b{OPEN}2{CLOSE}c", "abc", ["1", "2"]),
        (f"{OPEN}{CLOSE}{OPEN}{CLOSE}", "", ["", ""]),
        (f"a{OPEN}1{CLOSE}{OPEN}2", "a", ["1", "2"]),
        (f"{OPEN.upper()}x{CLOSE.upper()}", f"{OPEN.upper()}x{CLOSE.upper()}", []),
        ("<oai-mem-citation id='1'>x</oai-mem-citation>", "<oai-mem-citation id='1'>x</oai-mem-citation>", []),
        (f"<<oai-mem-citation{OPEN}x{CLOSE}", "<<oai-mem-citation", ["x"]),
        (f"é{OPEN}日本{CLOSE}🎉\n", "é🎉\n", ["日本"]),
    ],
)
def test_what_a_person_sees_and_what_is_hidden(text: str, visible: str, bodies: list[str]) -> None:
    assert citations.strip(text) == (visible, bodies)


def stream(chunks: list[str]) -> tuple[str, list[str]]:
    """The parser of the specification, a chunk at a time: what `strip` must agree with."""
    pending, active, visible, bodies = "", False, "", list[str]()
    body = ""

    def keep(tag: str) -> int:
        return max((size for size in range(1, len(tag)) if pending.endswith(tag[:size])), default=0)

    for chunk in chunks:
        pending += chunk
        while True:
            tag = CLOSE if active else OPEN
            before, found, rest = pending.partition(tag)
            if not found:
                kept = keep(tag)
                before = pending[: len(pending) - kept]
                pending = pending[len(pending) - kept :]
            else:
                pending = rest
            if active:
                body += before
            else:
                visible += before
            if not found:
                break
            if active:
                bodies.append(body)
            body, active = "", not active
    return (visible, [*bodies, body + pending]) if active else (visible + pending, bodies)


@given(
    st.lists(st.sampled_from([OPEN, CLOSE, "<oai-mem-", "citation>", "</oai-mem-", "<", "a", " ", "é"]), max_size=12)
)
def test_stripping_a_text_is_streaming_it_in_any_pieces(pieces: list[str]) -> None:
    assert stream(pieces) == stream(list("".join(pieces))) == citations.strip("".join(pieces))


def entries(*lines: str) -> str:
    return "<citation_entries>" + "\n".join(lines) + "</citation_entries>"


@pytest.mark.parametrize(
    ("line", "entry"),
    [
        ("MEMORY.md:12-15|note=[x]", CitedEntry("MEMORY.md", 12, 15, "x")),
        ("  MEMORY.md : 12 - 15 |note=[  x  ]  ", CitedEntry("MEMORY.md", 12, 15, "x")),
        ("MEMORY.md:+1-+2|note=[]", CitedEntry("MEMORY.md", 1, 2, "")),
        ("MEMORY.md:0-0|note=[x]", CitedEntry("MEMORY.md", 0, 0, "x")),
        ("MEMORY.md:9-1|note=[x]", CitedEntry("MEMORY.md", 9, 1, "x")),
        ("MEMORY.md:007-4294967295|note=[x]", CitedEntry("MEMORY.md", 7, 2**32 - 1, "x")),
        (r"C:\m.md:1-2|note=[n]", CitedEntry(r"C:\m.md", 1, 2, "n")),
        ("a:b:1-2|note=[n]", CitedEntry("a:b", 1, 2, "n")),
        (":1-2|note=[n]", CitedEntry("", 1, 2, "n")),
        ("a:1-2|note=[see [1] and ]]", CitedEntry("a", 1, 2, "see [1] and ]")),
        ("a:1-2|note=[x]]", CitedEntry("a", 1, 2, "x]")),
        ("", None),
        ("MEMORY.md:5|note=[x]", None),
        ("MEMORY.md|note=[x]", None),
        ("MEMORY.md:1-2", None),
        ("MEMORY.md:1-2|note=x", None),
        ("MEMORY.md:1-2|note=[x", None),
        ("MEMORY.md:1-2|note=[x].", None),
        ("MEMORY.md:1-2|NOTE=[x]", None),
        ("MEMORY.md:-1-2|note=[x]", None),
        ("MEMORY.md:1-2-3|note=[x]", None),
        ("MEMORY.md:a-b|note=[x]", None),
        ("MEMORY.md:1-4294967296|note=[x]", None),
        ("MEMORY.md:1_0-20|note=[x]", None),
        ("MEMORY.md:1.0-2|note=[x]", None),
        ("MEMORY.md:١-٢|note=[x]", None),
        ("MEMORY.md:++1-2|note=[x]", None),
        ("MEMORY.md:1-" + "9" * 5000 + "|note=[x]", None),
        ("a:1-2|note=[x|note=[y]", None),
    ],
)
def test_an_entry_is_read_or_dropped(line: str, entry: CitedEntry | None) -> None:
    found = citations.parse([entries(line)])

    assert found == (Citation([entry], []) if entry else None)


@pytest.mark.parametrize(
    ("bodies", "ids"),
    [
        (["<rollout_ids>a\n b \n\n\na</rollout_ids>"], ["a", "b"]),
        (["<rollout_ids>a</rollout_ids>", "<rollout_ids>b\na</rollout_ids>"], ["a", "b"]),
        (["<rollout_ids>A\na</rollout_ids>"], ["A", "a"]),
        (["<thread_ids>a</thread_ids>"], ["a"]),
        (["<rollout_ids></rollout_ids><thread_ids>a</thread_ids>"], None),
        (["<rollout_ids>b</rollout_ids><thread_ids>a</thread_ids>"], ["b"]),
        (["<rollout_ids>b<thread_ids>a</thread_ids>"], ["a"]),
        (["</rollout_ids><rollout_ids>b"], None),
        (["words <rollout_ids>a</rollout_ids> words <rollout_ids>b</rollout_ids>"], ["a"]),
        (["<rollout_ids>a"], None),
        (["<ROLLOUT_IDS>a</ROLLOUT_IDS>"], None),
        ([""], None),
        ([], None),
    ],
)
def test_ids_are_told_once_in_their_first_order(bodies: list[str], ids: list[str] | None) -> None:
    assert citations.parse(bodies) == (None if ids is None else Citation([], ids))


def test_entries_are_not_told_once_and_bad_ones_cost_nothing_but_themselves() -> None:
    found = citations.parse([entries("a:1-2|note=[x]", "nonsense", "a:1-2|note=[x]"), entries("b:1-2|note=[y]")])

    assert found is not None
    assert [entry.path for entry in found.entries] == ["a", "a", "b"]
    assert citations.parse([f"noise {entries('a:1-2|note=[x]')}{entries('b:1-2|note=[x]')}"]) == Citation(
        [CitedEntry("a", 1, 2, "x")], []
    )
    assert citations.parse(["<citation_entries>a:1-2|note=[x]"]) is None


def test_on_the_wire_names_are_written_as_codex_writes_them() -> None:
    encoded = msgspec.json.decode(msgspec.json.encode(Citation([CitedEntry("a", 1, 2, "x")], [ONE])))

    assert encoded == {
        "entries": [{"path": "a", "lineStart": 1, "lineEnd": 2, "note": "x"}],
        "rolloutIds": [ONE],
    }


@pytest.mark.parametrize(
    "spelt", [ONE, ONE.upper(), ONE.replace("-", ""), f"{{{ONE}}}", f"urn:uuid:{ONE}", f"  {ONE}\t"]
)
def test_every_way_to_write_an_id_names_the_thread(spelt: str) -> None:
    assert citations.cited_threads(f"x{ids_block(spelt)}") == [ONE]


@pytest.mark.parametrize("spelt", ["", "nothing", ONE[:-1], ONE + "0", "rollout-" + ONE, ONE + ".md", "é"])
def test_what_is_no_id_names_no_thread(spelt: str) -> None:
    assert citations.cited_threads(f"x{ids_block(spelt)}") == []


def test_a_thread_is_named_once_by_an_answer_however_it_is_spelt() -> None:
    assert citations.cited_threads(ids_block(ONE, ONE.upper(), TWO) + ids_block(ONE)) == [ONE, TWO]


@given(st.text(alphabet="<>/oai-mem ctonrlu_ds[]|=:1\n+", max_size=300))
def test_no_text_breaks_the_parser(text: str) -> None:
    visible, bodies = citations.strip(text + OPEN + text)
    citations.parse([*bodies, text])
    citations.cited_threads(text)
    assert OPEN not in visible or text.startswith(visible[:1])


# --- Files, from a byte on.


def answer(*ids: str) -> dict[str, Any]:
    return assistant(f"because\n{ids_block(*ids)}")


def test_a_file_is_read_from_where_it_was_left(tmp_path: Path) -> None:
    script = Script().turn(user(f"what is {BLOCK}?"), answer(ONE)).turn(user("and?"), answer(ONE, TWO))
    path = script.write(tmp_path)
    found, end = session_citations.citations_since(path, 0)
    assert (found, end) == ([CitingAnswer((ONE,), ()), CitingAnswer((ONE, TWO), ())], path.stat().st_size)
    assert session_citations.citations_since(path, end) == ([], end)

    script.item(answer(TWO))
    raw = script.data()
    path.write_bytes(raw[:-40])
    assert session_citations.citations_since(path, end) == ([], end)
    path.write_bytes(raw)
    assert session_citations.citations_since(path, end) == ([CitingAnswer((TWO,), ())], len(raw))
    # A mark inside of a line means that line.
    assert session_citations.citations_since(path, len(raw) - 40) == ([CitingAnswer((TWO,), ())], len(raw))
    assert session_citations.citations_since(path, len(raw) + 1000)[0] == []
    packed = path.with_name(path.name + ".zst")
    packed.write_bytes(zstandard.compress(raw))
    assert session_citations.citations_since(packed, end) == ([CitingAnswer((TWO,), ())], len(raw))
    assert session_citations.citations_since(tmp_path / "nowhere", 0) == ([], 0)


@pytest.mark.parametrize("size", [4 * 2**20 - 5, 4 * 2**20 + 3])
def test_a_citation_across_the_blocks_of_a_file_is_found(tmp_path: Path, size: int) -> None:
    script = Script()
    script.item(user("x" * (size - len(script.data()) - 300)), answer(ONE))
    path = script.write(tmp_path)

    assert session_citations.citations_since(path, 0) == ([CitingAnswer((ONE,), ())], path.stat().st_size)


# --- Counting, through the program.


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the program keep its rows in either database."""
    if request.param == "postgres":
        monkeypatch.setenv("COMMONPLACE_DATABASE", request.getfixturevalue("postgres"))


class Counter:
    """Imports, and says how often what two threads taught was cited since."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def taught(self) -> None:
        async def inside() -> None:
            async with books.open() as book:
                database = await book.state.database()
                for key in (ONE, TWO):
                    await database.write(lambda tx, key=key: outputs.put(tx, key, 1, Output("a", "b"), now=1))

        anyio.run(inside)

    def __call__(self, *, listing: bool = False) -> list[int]:
        async def inside() -> list[int]:
            async with books.open() as book:
                if listing:
                    await book.sessions.list()
                else:
                    await book.sessions.import_(None, [self.place])
                database = await book.state.database()
                found = [await database.read(lambda tx, key=key: outputs.get(tx, key)) for key in (ONE, TWO)]
                return [int(row["cited"]) for row in found if row is not None]

        return anyio.run(inside)


@pytest.mark.usefixtures("database")
def test_what_codex_answers_cite_is_counted_once(tmp_path: Path) -> None:
    place = tmp_path / "codex"
    script = Script().turn(user(f"{BLOCK}"), answer(ONE))
    script.write_home(place)
    counted = Counter(place)
    assert counted() == []  # there is no memory yet
    counted.taught()
    assert counted() == [0, 0]
    script.turn(user("go on"), answer(ONE, TWO))
    path = script.write_home(place)
    assert counted(listing=True) == [0, 0]
    assert counted() == [1, 1]
    assert counted() == [1, 1]
    script.turn(user("go on"), answer(TWO, str(uuid.UUID(int=0))))
    path.write_bytes(script.data()[:-30])
    counted()
    path.write_bytes(script.data())
    assert counted() == [1, 2]
    Script("0198c0de-0000-7000-8000-000000000002").turn(user("x"), answer(ONE)).write_home(place)
    assert counted() == [2, 2]

    (place / "archived_sessions").mkdir()
    moved = path.rename(place / "archived_sessions" / path.name)
    assert counted() == [2, 2]
    moved.with_name(moved.name + ".zst").write_bytes(zstandard.compress(moved.read_bytes()))
    moved.unlink()
    assert counted() == [2, 2]
    assert counted(listing=True) == [2, 2]


def claude_line(number: int, role: str, text: str) -> bytes:
    block: Any = text if role == "user" else [{"type": "text", "text": text}]
    record = {
        "type": role,
        "uuid": f"{number:08x}-0000-4000-8000-000000000000",
        "parentUuid": f"{number - 1:08x}-0000-4000-8000-000000000000" if number else None,
        "sessionId": "6ac42589-1bd0-4e41-b0ff-ba06dc9add47",
        "timestamp": "2026-11-15T06:00:00.000Z",
        "cwd": "/repo",
        "message": {"role": role, "id": f"msg_{number}", "model": "m", "content": block},
    }
    return json.dumps(record).encode() + b"\n"


@pytest.mark.usefixtures("database")
def test_what_claude_codes_answers_cite_is_counted_once(tmp_path: Path) -> None:
    path = tmp_path / "6ac42589-1bd0-4e41-b0ff-ba06dc9add47.jsonl"
    lines = [claude_line(0, "user", f"what is {BLOCK}?"), claude_line(1, "assistant", f"x{ids_block(ONE)}")]
    path.write_bytes(b"".join(lines))
    counted = Counter(path)
    counted.taught()
    assert counted() == [1, 0]
    assert counted() == [1, 0]
    lines += [claude_line(2, "user", "go on"), claude_line(3, "assistant", f"x{ids_block(TWO, ONE)}")]
    path.write_bytes(b"".join(lines)[:-30])
    assert counted() == [1, 0]
    path.write_bytes(b"".join(lines))
    assert counted() == [2, 1]
    assert counted(listing=True) == [2, 1]
    copy = tmp_path / "copy" / path.name
    copy.parent.mkdir()
    copy.write_bytes(path.read_bytes())
    assert Counter(copy)() == [2, 1]
    lines.insert(0, claude_line(9, "user", "words that came to stand in front").replace(b'"parentUuid": "', b'"x": "'))
    path.write_bytes(b"".join(lines))
    assert counted() == [2, 1]  # the thread was written anew, and no answer in it is
    lines.append(claude_line(4, "assistant", f"x{ids_block(TWO)}"))
    path.write_bytes(b"".join(lines))
    assert counted() == [2, 2]
