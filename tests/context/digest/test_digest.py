"""The digest: within its budget always, the same every time, what is needed before what is not."""

from __future__ import annotations

import subprocess
import sys

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.context import digest
from commonplace.context.digest.tally import Tally
from commonplace.context.progress import Manifest
from commonplace.errors import NoProgress
from commonplace.protocol import items


def view(item: dict[str, object]) -> items.View:
    return items.view(msgspec.json.encode(item))


def user(text: str) -> items.View:
    return view({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]})


def answer(text: str) -> items.View:
    return view({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]})


def call(number: int, command: str) -> items.View:
    arguments = msgspec.json.encode({"cmd": command}).decode()
    return view({"type": "function_call", "name": "exec_command", "arguments": arguments, "call_id": f"c{number}"})


def output(number: int, text: str, code: int = 0) -> items.View:
    told = f"Exit code: {code}\nWall time: 1 seconds\nOutput:\n{text}"
    return view({"type": "function_call_output", "call_id": f"c{number}", "output": told})


def tally(*views: items.View) -> Tally:
    found = Tally("/repo")
    for each in views:
        found.see(each)
    return found


WORK = (
    user("please fix the login in src/auth.py. never touch src/legacy.py"),
    call(1, "pytest -q tests/test_auth.py"),
    output(1, "E   ValueError: token expired in check_token\n1 failed", 1),
    answer("The cause is check_token in src/auth.py because it compares strings."),
    call(2, "sed -n 1,20p src/auth.py"),
    output(2, "def check_token(token):\n    return token < now()"),
    call(3, "pytest -q tests/test_auth.py"),
    output(3, "1 passed"),
)


def test_a_digest_tells_what_was_asked_found_run_and_failed() -> None:
    made = digest.make(tally(*WORK), 2_000)
    for words in (
        "please fix the login in src/auth.py",
        "The cause is check_token",
        "$ pytest -q tests/test_auth.py → ok",
        "ValueError: token expired",
        "def check_token(token):",
    ):
        assert words in made.text
    assert made.score.r_p == 1.0
    assert made.score.constraints == 1.0


def test_a_name_that_is_used_again_and_again_is_likelier_than_one_seen_once() -> None:
    known = tally(
        *(step for n in range(10) for step in (call(n, "cat src/often.py"), output(n, "x"))),
        call(90, "cat src/once.py"),
        output(90, "x"),
        *(step for n in range(20, 40) for step in (call(n, "cat src/often.py"), output(n, "y"))),
    )
    chances = dict(zip((name.text for name in known.names.known), digest.chances_of(known), strict=True))
    assert chances["src/often.py"] > chances["src/once.py"]


texts = st.text("abc_XYZ/. -\n", max_size=200) | st.text(max_size=80)
views = st.lists(
    st.one_of(
        texts.map(user),
        texts.map(answer),
        st.builds(call, st.integers(0, 5), texts),
        st.builds(output, st.integers(0, 5), texts, st.integers(0, 1)),
    ),
    max_size=30,
)


@given(views, st.integers(0, 600))
def test_a_digest_never_takes_more_than_its_budget(given_views: list[items.View], budget: int) -> None:
    made = digest.make(tally(*given_views), budget)
    assert made.tokens <= budget
    assert 0 <= made.score.r_d <= made.score.r_p + 1e-9 <= 1 + 2e-9


@given(views, views)
def test_what_is_rolled_back_is_as_if_it_had_not_been(before: list[items.View], after: list[items.View]) -> None:
    plain = tally(*before)
    rolled = tally(*before, user("a turn that is taken back with secret_name in it"), *after)
    turns = len([step for step in rolled._turns if step > plain.step])
    rolled.roll_back(turns)
    assert list(rolled.said) == list(plain.said)
    assert len(rolled.ids) == len(plain.ids)
    assert "secret_name" not in digest.make(rolled, 2_000).text


def test_a_digest_is_the_same_in_every_process() -> None:
    program = (
        "import msgspec\nfrom commonplace.context import digest\nfrom commonplace.context.digest.tally import Tally\n"
        "from commonplace.protocol import items\nt = Tally('/repo')\n"
        "for n in range(40):\n"
        "    text = ' '.join(f'name_{(n * k) % 37}_x src/f{(n + k) % 11}.py' for k in range(9))\n"
        "    part = {'type': 'output_text', 'text': text}\n"
        "    t.see(items.view(msgspec.json.encode({'type': 'message', 'role': 'assistant', 'content': [part]})))\n"
        "print(digest.make(t, 300).text)\n"
    )
    runs = {
        subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": seed}
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(runs) == 1


def test_the_smallest_digest_that_keeps_enough_is_taken() -> None:
    small = tally(*WORK)
    assert digest.smallest(small).tokens <= 2_000
    large = tally(
        *(answer(f"module_{n}_name is used by function_{n}_other in src/dir_{n}/file_{n}.py") for n in range(900))
    )
    assert digest.smallest(large).tokens > 2_000


# --- The breaker.


def told(manifest: Manifest, *given_views: items.View) -> None:
    for each in given_views:
        manifest.see(b"", each)


def test_a_turn_that_only_repeats_itself_is_stopped() -> None:
    manifest = Manifest()
    told(manifest, user("go"), call(1, "cat a.py"), output(1, "x"), call(2, "cat b.py"), output(2, "y"))
    manifest.note_compaction()
    told(manifest, call(3, "cat a.py"), output(3, "x"), call(4, "cat b.py"), output(4, "y"))
    with pytest.raises(NoProgress) as stopped:
        manifest.note_compaction()
    assert stopped.value.data == {"calls": 2}


@pytest.mark.parametrize(
    "since",
    [
        (call(3, "cat c.py"), output(3, "z")),
        (call(3, "cat a.py"), output(3, "changed")),
        (user("go on"),),
    ],
    ids=["something new was called", "something new came back", "somebody spoke"],
)
def test_a_turn_that_gets_on_may_compact_again(since: tuple[items.View, ...]) -> None:
    manifest = Manifest()
    told(manifest, user("go"), call(1, "cat a.py"), output(1, "x"))
    manifest.note_compaction()
    told(manifest, *since)
    manifest.note_compaction()


def test_a_first_compaction_is_never_stopped() -> None:
    manifest = Manifest()
    told(manifest, user("go"), call(1, "cat a.py"), output(1, "x"), call(2, "cat a.py"), output(2, "x"))
    manifest.note_compaction()
