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
from commonplace.context.progress import CallManifest
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


@pytest.mark.parametrize(
    ("line", "end"),
    [
        ("go build ./...", " → ok"),
        ("go vet ./... && go build ./...", " → ok"),
        ("cd cmd; go build ./...", " → ok"),
        ("go build ./... 2>&1 | tail -5", ""),
        ("go build ./... || true", ""),
        ("go build ./...; echo done", ""),
    ],
)
def test_a_command_is_told_to_have_succeeded_only_if_that_is_known(line: str, end: str) -> None:
    text = digest.make(tally(user("go"), call(1, line), output(1, "nothing to tell")), 2_000).text

    (told,) = [each for each in text.split("\n") if each.startswith("$ go build") and "tail" not in each[-12:]][:1]
    assert told.removeprefix("$ go build ./...").removeprefix(" 2>&1") == end


def test_an_error_behind_a_pipe_is_told() -> None:
    seen = tally(user("go"), call(1, "go build ./... 2>&1 | tail -5"), output(1, "main.go:3: undefined: Frobnicate"))

    assert "$ go build ./... 2>&1 → main.go:3: undefined: Frobnicate" in digest.make(seen, 2_000).text


@pytest.mark.parametrize(
    ("line", "is_failure"),
    [
        ("E   assert total == 3", True),
        ("AssertionError: totals differ", True),
        ("2 failed, 3 passed in 0.4s", True),
        ("assert total_gross == total_net", False),
        ("--- PASS: TestErrorIsWrapped (0.00s)", False),
        ("ok 3 - a missing file is an error", False),
        ("test_missing_key_fails PASSED", False),
        ("12 passed, 0 failed in 1.2s", False),
        ("✓ shows an error when the form is invalid", False),
        ("test parse::invalid_input ... ok", False),
    ],
)
def test_a_check_that_passed_is_no_failure(line: str, is_failure: bool) -> None:
    text = digest.make(tally(user("go"), call(1, "make check"), output(1, line)), 2_000).text

    assert (f"! {line}" in text) is is_failure


def test_tags_are_no_names() -> None:
    seen = tally(user("<local_command_out>see read_config</local_command_out> and List<row_type>"))

    assert {"read_config", "row_type"} == {name.text for name in seen.names.known}


def test_tags_with_attributes_are_no_names_but_what_stands_in_them_is() -> None:
    seen = tally(
        user('<permission_profile type="disabled"><file_system /></permission_profile> <my_file path="a_b.py">')
    )

    assert ["a_b.py"] == [name.text for name in seen.names.known]


def test_names_stand_under_the_file_that_they_were_seen_in() -> None:
    defined = "\n".join(f"    value_{number} = make_{number}()" for number in range(12))
    seen = tally(user("go"), call(1, "cat src/shapes.py"), output(1, defined), user("use value_3 in src/shapes.py"))
    text = digest.make(seen, 400).text

    (line,) = [each for each in text.split("\n") if each.startswith("(shapes.py): ")]
    assert "value_5" in line
    assert "also:" not in text


def test_what_stands_beside_it_is_not_repeated() -> None:
    first, last = "never touch src/legacy.py", "now look at src/auth.py"
    seen = tally(user(first), *WORK[1:], user(last))

    whole, rest = digest.make(seen, 2_000), digest.make(seen, 2_000, beside=[first, last])

    assert first in whole.text
    assert first not in rest.text
    assert last not in rest.text
    assert rest.score.constraints == whole.score.constraints == 1.0


def test_words_beside_a_name_that_are_names_themselves_say_nothing_about_it() -> None:
    text = "See frob_one FooBar BazQux HttpClient JsonReader."
    seen = tally(user("go"), answer(text))

    assert digest.score(seen, digest.chances_of(seen), text).r_d == 0.0
    assert digest.score(seen, digest.chances_of(seen), f"{text} It loses every second token.").r_d > 0.0


def test_steps_that_are_set_one_by_one_are_the_plan() -> None:
    def step(number: int, name: str, **arguments: str) -> items.View:
        given = msgspec.json.encode(arguments).decode()
        return view({"type": "function_call", "name": name, "arguments": given, "call_id": f"t{number}"})

    seen = tally(
        user("go"),
        step(1, "TaskCreate", subject="write the parser", description="all of it"),
        step(2, "TaskCreate", subject="test the parser"),
        step(3, "TaskUpdate", taskId="1", status="completed"),
        step(4, "TaskUpdate", taskId="9", status="completed"),
        step(5, "TaskUpdate", taskId="2", subject="test the parser twice"),
    )

    assert [(False, "write the parser"), (True, "test the parser twice")] == seen.plan


@pytest.mark.parametrize(
    ("kind", "text", "said"),
    [
        ("imported.reply", "no, use a branch", ["no, use a branch"]),
        (
            "imported.slash_command",
            "<command-name>/fix</command-name><command-args>the login</command-args>",
            ["the login"],
        ),
        ("imported.injected", "a reminder", []),
    ],
)
def test_answers_to_tools_and_arguments_of_commands_are_the_persons_words(
    kind: str, text: str, said: list[str]
) -> None:
    message: dict[str, object] = {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": text}],
        "internal_chat_message_metadata_passthrough": {"content_item_kinds": [kind]},
    }

    assert said == [each.text for each in tally(view(message)).said]


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


def told(manifest: CallManifest, *given_views: items.View) -> None:
    for each in given_views:
        manifest.see(b"", each)


def test_a_turn_that_only_repeats_itself_is_stopped() -> None:
    manifest = CallManifest()
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
    manifest = CallManifest()
    told(manifest, user("go"), call(1, "cat a.py"), output(1, "x"))
    manifest.note_compaction()
    told(manifest, *since)
    manifest.note_compaction()


def test_a_first_compaction_is_never_stopped() -> None:
    manifest = CallManifest()
    told(manifest, user("go"), call(1, "cat a.py"), output(1, "x"), call(2, "cat a.py"), output(2, "x"))
    manifest.note_compaction()
