"""Patches as text: what each form asks for, where its lines are found, and what is told when they are not."""

from __future__ import annotations

import pytest

from commonplace.agent.tools.patch import change
from commonplace.agent.tools.patch.match import LineIndex
from commonplace.agent.tools.patch.parse import AddFile, DeleteFile, Hunk, UpdateFile, parse
from commonplace.errors import ToolError


def patch(*lines: str) -> str:
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch", ""])


def updated(text: str, *lines: str) -> str:
    (operation,) = parse(patch("*** Update File: f", *lines))
    assert isinstance(operation, UpdateFile)
    return change.updated_text("f", text, operation.hunks)


def test_every_operation_is_read() -> None:
    text = patch(
        "*** Add File: new/a.txt",
        "+first",
        "+",
        "*** Delete File: old.txt",
        "*** Update File: b.txt",
        "*** Move to: c.txt",
        "@@ class A:",
        "@@     def f(self):",
        " keep",
        "-go",
        "+come",
        "@@",
        "-last",
        "*** End of File",
    )

    assert [
        AddFile("new/a.txt", ("first", "")),
        DeleteFile("old.txt"),
        UpdateFile(
            "b.txt",
            "c.txt",
            (
                Hunk(1, ("class A:", "    def f(self):"), ((" ", "keep"), ("-", "go"), ("+", "come"))),
                Hunk(2, (), (("-", "last"),), at_end=True),
            ),
        ),
    ] == parse(text)


@pytest.mark.parametrize(
    "text",
    [
        patch("*** Delete File: a"),
        patch("*** Delete File: a").strip(),
        patch("*** Delete File: a").replace("\n", "\r\n"),
        "apply_patch <<'EOF'\n" + patch("*** Delete File: a") + "EOF\n",
        "```\n" + patch("*** Delete File: a") + "```",
        patch("", "*** Delete File: a", ""),
        patch("  *** Delete File:  a "),
    ],
)
def test_what_stands_around_a_patch_is_left_aside(text: str) -> None:
    assert [DeleteFile("a")] == parse(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no line `*** Begin Patch`"),
        ("*** Begin Patch\n*** Delete File: a", "may have been cut off"),
        (patch(), "changes nothing"),
        (patch("hello"), "line 2 of the patch: 'hello'"),
        (patch("*** Delete File: "), "names no file"),
        (patch("*** Add File: a", "no plus"), "begins with `+`"),
        (patch("*** Update File: a"), "nothing is changed in a"),
        (patch("*** Update File: a", "*** Move to: "), "names no file"),
        (patch("*** Update File: a", "@@", " only context"), "hunk 1 before it has no line with `-` or `+`"),
        (patch("*** Update File: a", "@@", "-x", "?odd"), "begins with a blank, `-` or `+`"),
        (patch("*** Update File: a", "*** End of File"), "no line with"),
        (patch("*** Rename File: a"), "expected `*** Add File:`"),
    ],
)
def test_what_is_no_patch_is_refused_with_the_line_that_is_wrong(text: str, said: str) -> None:
    with pytest.raises(ToolError, match="cannot be read") as caught:
        parse(text)

    assert said in caught.value.message


BODY = "one\ntwo\nthree\ntwo\nfour\n"


@pytest.mark.parametrize(
    ("text", "lines", "expected"),
    [
        (BODY, ["-two", "+2"], "one\n2\nthree\ntwo\nfour\n"),
        (BODY, ["@@ three", "-two", "+2"], "one\ntwo\nthree\n2\nfour\n"),
        (BODY, ["@@", "-two", "+2", "@@", "-two", "+zwei"], "one\n2\nthree\nzwei\nfour\n"),
        (BODY, ["@@ one", "+new"], "one\nnew\ntwo\nthree\ntwo\nfour\n"),
        (BODY, ["@@", "+new"], BODY + "new\n"),
        (BODY, ["@@ one", "+new", "*** End of File"], BODY + "new\n"),
        (BODY, ["-four", "*** End of File"], "one\ntwo\nthree\ntwo\n"),
        ("x\ny\nx\n", ["-x", "+z", "*** End of File"], "x\ny\nz\n"),
        (BODY, ["@@ two", " two", "+2"], "one\ntwo\nthree\ntwo\n2\nfour\n"),
        ("a\nb\n", ["@@ a", " a", "-b", "+c"], "a\nc\n"),
        (BODY, ["@@ -1,2 +1,2 @@ def f():", "-two", "+2"], "one\n2\nthree\ntwo\nfour\n"),
        ("a\n\nb\n", [" a", "", "-b", "+c"], "a\n\nc\n"),
        ("a\n\nb\n", ["-a", "", "@@", "-b", "+c"], "\nc\n"),
        ("a\n", ["-a"], ""),
        ("", ["+a"], "a\n"),
        # Line ends and the last of them.
        ("a\r\nb\r\n", [" a", "-b", "+c", "+d"], "a\r\nc\r\nd\r\n"),
        ("a\r\nb\r\n", [" a\r", "-b\r", "+c\r"], "a\r\nc\r\n"),
        ("a\nb", ["-b", "+c"], "a\nc"),
        ("a\nb", [" b", "+c"], "a\nb\nc"),
        ("a\r\nb", [" b", "+c"], "a\r\nb\r\nc"),
        ("a\nb", ["-b"], "a"),
        ("a\nb\r\nc\n", ["-b", "+x"], "a\nx\r\nc\n"),
        ("\ufeffa\nb\n", ["-a", "+x"], "\ufeffx\nb\n"),
        ("a\nb\n", ["-b", "+c", "\\ No newline at end of file"], "a\nc\n"),
        # Closest first: exactly, then blanks at the end, then blanks, then signs that look alike.
        ("b  \nb\n", ["-b", "+x"], "b  \nx\n"),
        ("a\nb \t\n", [" a", "-b", "+x"], "a\nx\n"),
        ("a \nb\n", [" a", "-b", "+x"], "a \nx\n"),
        ("    if  a:\n        b\n", [" if a:", "-  b", "+  c"], "    if  a:\n  c\n"),
        ("it’s — “so” …\nb\n", [' it\'s - "so" ...', "-b", "+x"], "it’s — “so” …\nx\n"),
        ("a\u00a0b\nc\n", [" a b", "-c", "+x"], "a\u00a0b\nx\n"),
        ("def f():\n  x\ndef g():\n  x\n", ["@@ def g():", "-x", "+y"], "def f():\n  x\ndef g():\ny\n"),
    ],
)
def test_a_hunk_changes_what_it_says_and_nothing_else(text: str, lines: list[str], expected: str) -> None:
    assert expected == updated(text, *lines)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["-five"], "hunk 1 of 1 for f does not fit: its lines were not found. Looked for:\n  five\n"),
        (["-one", "+1", "@@", "-nine"], "hunk 2 of 2 for f does not fit: its lines were not found below line 1."),
        (["@@ nowhere", "-two"], "its line after @@ was not found below line 0"),
        ([" one", " two", "-threee", "+3"], "The nearest lines are 1 to 3:\n  one\n  two\n  three"),
        (["-thre"], "The nearest lines are 3 to 3:\n  three"),
        (["-%%%%%%%%"], "Nothing in the file (5 lines) is like them"),
        (["-four", "+4", "@@", "-one"], "They stand at line 1, above what is already changed"),
        (["-one", "*** End of File"], "not found at the end of the file"),
    ],
)
def test_a_hunk_that_does_not_fit_names_itself_and_the_nearest_lines(lines: list[str], said: str) -> None:
    with pytest.raises(ToolError) as caught:
        updated(BODY, *lines)

    assert said in caught.value.message
    assert caught.value.sentence().endswith("Nothing was changed.")


@pytest.mark.parametrize(
    ("there", "sought", "start", "place"),
    [
        ("aab", "ab", 0, 1),
        ("aaaab", "aab", 0, 2),
        ("ababac", "abac", 0, 2),
        ("abab", "ab", 1, 2),
        ("abab", "abc", 0, None),
        ("ab", "abc", 0, None),
        ("ab", "", 0, None),
    ],
)
def test_lines_are_found_at_their_first_place(there: str, sought: str, start: int, place: int | None) -> None:
    assert place == LineIndex(list(there)).find(list(sought), start)


def test_a_hunk_of_a_thousand_equal_lines_is_soon_found_missing() -> None:
    there = LineIndex(["x"] * 200_000)

    assert there.find([*["x"] * 1_000, "y"], 0) is None
