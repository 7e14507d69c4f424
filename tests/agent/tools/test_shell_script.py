"""Command lines: which are reads and searches, and which of those touch the memory."""

from __future__ import annotations

import shlex
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.agent.tools import memory_reads, shell_script
from commonplace.agent.tools.memory_reads import MemoryRead
from commonplace.agent.tools.shell_script import CommandEffect


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("a b  c", [["a", "b", "c"]]),
        ("a 'b c' \"d e\"", [["a", "b c", "d e"]]),
        ("a b'c'\"d\"", [["a", "bcd"]]),
        ('grep "x\\|y" f', [["grep", "x\\|y", "f"]]),
        ('a "q\\"r\\\\"', [["a", 'q"r\\']]),
        ("a\\ b", [["a b"]]),
        ("a ''", [["a", ""]]),
        ("a && b || c; d | e\nf", [["a"], ["b"], ["c"], ["d"], ["e"], ["f"]]),
        ("a;", [["a"]]),
        ("a\n\nb\n", [["a"], ["b"]]),
        ("a x#y", [["a", "x#y"]]),
        ("", []),
        ("a $b", None),
        ('a "$b"', None),
        ("a `b`", None),
        ("a $(b)", None),
        ("a > b", None),
        ("a < b", None),
        ("a 2>&1", None),
        ("(a)", None),
        ("{ a; }", None),
        ("a *", None),
        ("a b?", None),
        ("a [bc]", None),
        ("a &", None),
        ("a # b", None),
        ("a 'b", None),
        ('a "b', None),
        ("a \\", None),
        ("a &&", None),
        ("a |", None),
        ("&& a", None),
        ("a ;; b", None),
        ("X=1 a", None),
        ("if a; then b; fi", None),
        ("for x in y; do z; done", None),
        ("! a", None),
    ],
)
def test_a_script_is_plain_commands_or_nothing_that_is_understood(script: str, expected: Any) -> None:
    assert expected == shell_script.split(script)


READ = CommandEffect("read", ("f",))
LIST = CommandEffect("list")


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("cat f", [READ]),
        ("cat -n f", [READ]),
        ("more f", [READ]),
        ("less -p x f", [READ]),
        ("bat --theme x f", [READ]),
        ("batcat f", [READ]),
        ("/bin/cat f", [READ]),
        ("cat a b", None),
        ("cat", None),
        ("cat -", None),
        ("head f", [READ]),
        ("head -n 5 f", [READ]),
        ("head -n5 f", [READ]),
        ("head -5 f", [READ]),
        ("head -n x f", None),
        ("tail -n +5 f", [READ]),
        ("tail +5 f", [READ]),
        ("head -n 5", None),
        ("sed -n 1,5p f", [READ]),
        ("sed -n '5p' f", [READ]),
        ("sed -n '1,$p' f", [READ]),
        ("sed s/a/b/ f", None),
        ("sed -i s/a/b/ f", None),
        ("awk '{print}' f", [READ]),
        ("nl -ba f", [READ]),
        ("ls", [LIST]),
        ("ls -la x", [LIST]),
        ("tree", [LIST]),
        ("du -sh x", [LIST]),
        ("rg --files x", [LIST]),
        ("git ls-files", [LIST]),
        ("find x", [LIST]),
        ("find x -type f", [LIST]),
        ("fd", [LIST]),
        ("find x -name y", [CommandEffect("search", ("x",))]),
        ("find x -name y -delete", None),
        ("find x -exec rm y \\;", None),
        ("fd y x", [CommandEffect("search", ("x",))]),
        ("fd y -x rm", None),
        ("rg y", [CommandEffect("search")]),
        ("rg y f g", [CommandEffect("search", ("f", "g"))]),
        ("rg -n -g '*.md' -A 3 y f", [CommandEffect("search", ("f",))]),
        ("rg -e y f", [CommandEffect("search", ("f",))]),
        ("rg -- -y f", [CommandEffect("search", ("f",))]),
        ("rg", None),
        ("grep -rn y f", [CommandEffect("search", ("f",))]),
        ("egrep y f", [CommandEffect("search", ("f",))]),
        ("grep --regexp=y f", [CommandEffect("search", ("f",))]),
        ("git grep y", [CommandEffect("search")]),
        ("ag y f", [CommandEffect("search", ("f",))]),
        ("cat f | head -n 5", [READ]),
        ("cat f | wc -l", [READ]),
        ("cat f | sed s/a/b/ | sort | uniq -c | tr a b | cut -c1 | column -t", [READ]),
        ("cat f | awk '{print $1}' | nl", [READ]),
        ("cat f | tee", [READ]),
        ("cat f | tee g", None),
        ("rg -l y x | xargs cat", [CommandEffect("search", ("x",))]),
        ("rg -l y x | xargs rm", None),
        ("rg -l y x | xargs sed -i s/a/b/", None),
        ("rg -l y x | xargs sh", None),
        ("wc -l f", None),
        ("printf x", None),
        ("echo x && cat f", [READ]),
        ("echo x", None),
        ("true; cat f", [READ]),
        ("cd x && cat f", [CommandEffect("read", ("x/f",))]),
        ("cd x && cd y && cat f", [CommandEffect("read", ("x/y/f",))]),
        ("cd x; cat /f", [CommandEffect("read", ("/f",))]),
        ("cd x && rg y f", [CommandEffect("search", ("x/f",))]),
        ("cd x", None),
        ("cd -; cat f", None),
        ("cat f && rm f", None),
        ("cat f && python x.py", None),
        ("git commit", None),
        ("cat f > g", None),
    ],
)
def test_a_command_line_does_what_it_says(script: str, expected: list[CommandEffect] | None) -> None:
    assert (None if expected is None else tuple(expected)) == shell_script.effects_of(script)


@pytest.mark.parametrize("words", [["bash", "-lc", "cat f"], ["/bin/sh", "-c", "cat f"], ["cat", "f"]])
def test_a_list_is_read_as_what_it_starts(words: list[str]) -> None:
    assert (READ,) == shell_script.effects_of(words)


MEMORY = MemoryRead("memory_md", "read", "MEMORY.md")


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("cat /h/memories/MEMORY.md", [MEMORY]),
        ("cat ~/.book/memories/MEMORY.md", [MEMORY]),
        ("cat /h/memories/../memories//MEMORY.md", [MEMORY]),
        ("cd /h/memories && cat MEMORY.md", [MEMORY]),
        ("cd /h && cat memories/MEMORY.md", [MEMORY]),
        ("cat /h/memories/MEMORY.md | head -n 5", [MEMORY]),
        (["bash", "-lc", "cat /h/memories/MEMORY.md"], [MEMORY]),
        ("head -n 9 /h/memories/memory_summary.md", [MemoryRead("memory_summary", "read", "memory_summary.md")]),
        ("cat /h/memories/raw_memories.md", [MemoryRead("raw_memories", "read", "raw_memories.md")]),
        ("cat /h/memories/rollout_summaries/a.md", [MemoryRead("rollout_summaries", "read", "rollout_summaries/a.md")]),
        ("cat /h/memories/skills/x/SKILL.md", [MemoryRead("skills", "read", "skills/x/SKILL.md")]),
        ("rg foo /h/memories/MEMORY.md", [MemoryRead("memory_md", "search", "MEMORY.md")]),
        ("rg foo /h/memories/skills", [MemoryRead("skills", "search", "skills")]),
        (
            "rg foo /h/memories/MEMORY.md /h/memories/skills",
            [MemoryRead("memory_md", "search", "MEMORY.md"), MemoryRead("skills", "search", "skills")],
        ),
        ("cat /h/memories/MEMORY.md; cat /h/memories/MEMORY.md", [MEMORY, MEMORY]),
        ("rg foo /h/memories", []),
        ("cat /h/memories/other.md", []),
        ("cat /h/memories/x/MEMORY.md", []),
        ("cat /elsewhere/memories/MEMORY.md", []),
        ("cat /h/memories/../MEMORY.md", []),
        ("ls /h/memories/skills/", []),
        ("cat /h/memories/MEMORY.md && make", []),
        ("cat $HOME/memories/MEMORY.md", []),
        ("cat a /h/memories/MEMORY.md", []),
        ("cat ~other/memories/MEMORY.md", []),
    ],
)
def test_reads_and_searches_of_memory_count_by_kind(command: str | list[str], expected: list[MemoryRead]) -> None:
    home = "/u/.book" if "~" in str(command) else "/h"

    assert tuple(expected) == memory_reads.reads_of(command, cwd="/src", home=home, user="/u")


def test_an_operand_is_taken_from_the_folder_of_the_command() -> None:
    assert (MEMORY,) == memory_reads.reads_of("cat MEMORY.md", cwd="/h/memories", home="/h")


@given(st.lists(st.lists(st.text(min_size=1), min_size=1), min_size=1))
def test_quoted_words_come_back_as_they_were(commands: list[list[str]]) -> None:
    script = " && ".join(shlex.join(words) for words in commands)

    found = shell_script.split(script)

    # A first word may still be a keyword or an assignment, quoted or not: then nothing is known.
    assert found is None or commands == found


@given(st.text(st.sampled_from("acdefghlmnorst ./-~'\"\\|&;$\n<>*md"), max_size=60))
def test_no_script_breaks_the_classifier(script: str) -> None:
    for found in memory_reads.reads_of(script, cwd="/h/memories", home="/h", user="/u"):
        assert not found.path.startswith("/")


@given(st.text(st.sampled_from("abc/. '_-"), min_size=1, max_size=20).filter(lambda name: not name.startswith("-")))
def test_any_file_of_the_workspace_is_recognised_when_it_is_read(name: str) -> None:
    path = f"/h/memories/skills/{name}/x"
    found = memory_reads.reads_of(f"cat {shlex.quote(path)}", cwd="/", home="/h")

    assert all("read" == each.use for each in found)
    assert len(found) == 1 or ".." in name.split("/")
