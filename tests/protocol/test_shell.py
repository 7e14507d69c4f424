"""The lexer of shell command lines: one row for each rule."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.protocol import shell


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("", []),
        ("a b  c", [["a", "b", "c"]]),
        ("a 'b c' \"d e\"", [["a", "b c", "d e"]]),
        ("a b'c'\"d\"", [["a", "bcd"]]),
        ("a '' \"\"", [["a", "", ""]]),
        ('a "q\\"r\\\\s\\t"', [["a", 'q"r\\s\\t']]),
        ("a 'b\\' c", [["a", "b\\", "c"]]),
        ("a\\ b \\'", [["a b", "'"]]),
        ("a \\\n b", [["a", "b"]]),
        ('a "b\\\nc"', [["a", "bc"]]),
        ("a $'b\\'c' d", [["a", "b\\'c", "d"]]),
        ("a # b 'c\nd", [["a"], ["d"]]),
        ("a x#y", [["a", "x#y"]]),
        ("a && b || c; d | e |& f & g\nh", [["a"], ["b"], ["c"], ["d"], ["e"], ["f"], ["g"], ["h"]]),
        ("a '&&' \"|\" \\;", [["a", "&&", "|", ";"]]),
        ("(a && b) || c", [["a"], ["b"], ["c"]]),
        ("((a)) && b", [["((a))"], ["b"]]),
        ("a $(b; c) d", [["a", "$(b; c)", "d"]]),
        ("a `b; c` d", [["a", "`b; c`", "d"]]),
        ('a "$(b "c; d")" e', [["a", '$(b "c; d")', "e"]]),
        ("a ${b:-x;y} c", [["a", "${b:-x;y}", "c"]]),
        ("a $((1 << 2))\nb", [["a", "$((1 << 2))"], ["b"]]),
        ("a <(b; c)", [["a", "<(b; c)"]]),
        ("f() { a; }", [["f()", "{", "a"], ["}"]]),
        ("x=(a b) c", [["x=(a b)", "c"]]),
        ("case a in b) c;; esac", [["case", "a", "in", "b)", "c"], ["esac"]]),
        ("for i in 1 2; do a; done", [["for", "i", "in", "1", "2"], ["do", "a"], ["done"]]),
        ("X=1 Y='a b' c", [["X=1", "Y=a b", "c"]]),
        ("a <<E\nit's (\nE\nb", [["a"], ["b"]]),
        ("a <<'E' | b && c\n$x\nE\nd", [["a"], ["b"], ["c"], ["d"]]),
        ("a <<-E\n\tx\n\tE\nb", [["a"], ["b"]]),
        ("a <<E\n\tE\nE\nb", [["a"], ["b"]]),
        ("a <<A <<B\n1\nA\n2\nB\nb", [["a"], ["b"]]),
        ("a <<E\nb\nc", [["a"], ["b"], ["c"]]),
        ("a \"$(b <<'E'\ndon't\nE\n)\" && c", [["a", "$(b <<'E'\ndon't\nE\n)"], ["c"]]),
        ("a don't && b", [["a", "don't"], ["b"]]),
        ("a \"b && c 'd e'", [["a", '"b'], ["c", "'d", "e'"]]),
        ("a $(b && c", [["a", "$(b"], ["c"]]),
        ("a\\", [["a\\"]]),
        ("Get-Item 'C:\\x' | Select-Object Name", [["Get-Item", "C:\\x"], ["Select-Object", "Name"]]),
    ],
)
def test_a_script_becomes_the_words_of_its_commands(script: str, expected: list[list[str]]) -> None:
    assert expected == [segment.texts for segment in shell.segments(script)]


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("a && b; c", [("", "&&"), ("&&", ";"), (";", "")]),
        ("a | b |& c & d", [("", "|"), ("|", "|&"), ("|&", "&"), ("&", "")]),
        ("a\n\nb\n", [("", "\n"), ("\n", "\n")]),
        ("a &&\nb", [("", "&&"), ("&&", "")]),
        ("a; (b); c", [("", ";"), ("(", ")"), (";", "")]),
        ("a;; b", [("", ";;"), (";;", "")]),
        ("&& a", [("", "&&"), ("&&", "")]),
        ("a ; ; b", [("", ";"), (";", ";"), (";", "")]),
        ("()", [("(", ")")]),
    ],
)
def test_a_segment_knows_the_operators_around_it(script: str, expected: list[tuple[str, str]]) -> None:
    assert expected == [(segment.before, segment.after) for segment in shell.segments(script)]


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("a", True),
        ("'$a *'", True),
        ('"a *"', True),
        ("\\$a", True),
        ("~/a", True),
        ("a#b!", True),
        ("$a", False),
        ('"$a"', False),
        ("`a`", False),
        ('"`a`"', False),
        ("$(a)", False),
        ("a*", False),
        ("a?", False),
        ("[ab]", False),
        ("{a,b}", False),
        ("!a", False),
        ("<(a)", False),
        ("'a", False),
    ],
)
def test_a_word_is_literal_if_the_shell_passes_it_on(word: str, expected: bool) -> None:
    (segment,) = shell.segments(f"x {word}")

    assert expected is segment.words[1].is_literal


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("a > b", [(">", "b")]),
        ("a >>b 2>&1", [(">>", "b"), (">&", "1")]),
        ("a 2>/dev/null", [(">", "/dev/null")]),
        ("a &> b", [("&>", "b")]),
        ("a < 'b c'", [("<", "b c")]),
        ("a <<< b", [("<<<", "b")]),
        ("a <<'E'\nE", [("<<", "E")]),
        ("a <<-E\nE", [("<<-", "E")]),
        ("a 2>&-", [(">&", "-")]),
        ("a >", [(">", "")]),
        ("a '>' b", []),
    ],
)
def test_redirections_are_no_words(script: str, expected: list[tuple[str, str]]) -> None:
    (segment,) = shell.segments(script)

    assert expected == [(each.operator, each.target) for each in segment.redirections]
    assert "a" == segment.texts[0]


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("a 'b c'", [True]),
        ("a; b 'c; d", [True, False, True]),
        ('a "b', [False]),
        ("a `b", [False]),
        ("a $(b", [False]),
        ("a (b", [False]),
        ("a\\", [False]),
    ],
)
def test_a_segment_with_a_quote_that_nothing_closes_is_not_closed(script: str, expected: list[bool]) -> None:
    assert expected == [segment.is_closed for segment in shell.segments(script)]


def test_a_segment_is_the_text_from_its_first_to_its_last_word() -> None:
    script = " a 'b' >c ;  (d  e) # f"

    assert ["a 'b' >c", "d  e"] == [script[each.start : each.end] for each in shell.pipelines(script) for each in each]


def test_commands_that_feed_each_other_are_a_pipeline() -> None:
    found = [[segment.texts[0] for segment in each] for each in shell.pipelines("a | b && c |& d; # e\nf")]

    assert [["a", "b"], ["c", "d"], ["f"]] == found


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["bash", "-lc", "a b"], "a b"),
        (["/bin/sh", "-c", "a", "x"], "a"),
        (["zsh", "-ilc", "a"], "a"),
        (["bash", "a"], None),
        (["bash", "-x", "a"], None),
        (["pwsh", "-c", "a"], None),
        (["powershell.exe", "-Command", "a"], None),
        (["a", "-c", "b"], None),
        ([], None),
    ],
)
def test_a_shell_that_is_given_a_script_wraps_it(command: list[str], expected: str | None) -> None:
    assert expected == shell.wrapped_script(command)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("a b", "a b"),
        ("X=1 _y+=2 a b=c", "a b=c"),
        ("sudo env X=1 a", "a"),
        ("timeout 30s a", "a"),
        ("nice -10 a", "a"),
        ("2to3 a", "2to3 a"),
        ("3 a", "3 a"),
        ("1X=2 a", "1X=2 a"),
        ("timeout", ""),
        ("X=1", ""),
    ],
)
def test_assignments_and_wrappers_stand_before_the_program(command: str, expected: str) -> None:
    words = command.split()

    assert expected.split() == words[shell.prefix_length(words) :]


@given(st.lists(st.lists(st.text(min_size=1), min_size=1), min_size=1))
def test_quoted_words_come_back_as_they_were(commands: list[list[str]]) -> None:
    script = " && ".join(shlex.join(words) for words in commands)

    found = shell.segments(script)

    assert commands == [segment.texts for segment in found]
    assert all(segment.is_closed for segment in found)


@given(st.text(st.sampled_from("ab1 \t\n'\"\\$`|&;<>(){}#!E=-"), max_size=80))
def test_every_string_has_segments_in_order(script: str) -> None:
    end = 0
    for segment in shell.segments(script):
        assert end <= segment.start <= segment.end <= len(script)
        end = segment.end
        assert all(segment.start <= word.start < word.end <= segment.end for word in segment.words)


@pytest.mark.parametrize(
    "part", ["(", "$(", "`", "'", '"', "a <<E\n", "\"$('", "${", "$'\\'", "<(", "a; ", "\\", "#\n"]
)
def test_the_time_is_linear_in_the_length(part: str) -> None:
    """A quadratic lexer does not come to an end."""
    shell.segments(part * (80_000 // len(part)))
