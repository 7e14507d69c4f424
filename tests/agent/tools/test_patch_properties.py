"""For any two texts: the patch between them makes one out of the other; and no patch that is refused changes a byte."""

from __future__ import annotations

import difflib
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from patches import apply_patch

from commonplace.agent.tools.patch.match import LineIndex
from commonplace.errors import ToolError

_line = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\n\r\ufeff"), max_size=6
) | st.sampled_from(["a", "b", "", " ", "\t", "a ", " a", "+", "-", "@@", "*** End Patch", "*** End of File", "“a”"])
_lines = st.lists(_line, max_size=12)
_end = st.sampled_from(["\n", "\r\n"])


def between(old: list[str], new: list[str]) -> list[str]:
    """Write a patch from some lines to others: each change with as much around it as makes its place the only one."""
    there = LineIndex(old)
    lines: list[str] = []
    done = 0
    for tag, first, last, begin, end in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        top = max(done, first - 1)
        while top > done and there.find(old[top:last], done) != top:
            top -= 1
        lines += ["@@", *(f" {line}" for line in old[top:first]), *(f"-{line}" for line in old[first:last])]
        lines += [f"+{line}" for line in new[begin:end]]
        if top == last or there.find(old[top:last], done) != top:
            return ["@@", *(f"-{line}" for line in old), *(f"+{line}" for line in new)]
        done = last
    return lines


def _joined(lines: list[str], end: str, *, closed: bool) -> str:
    text = end.join(lines)
    return text + end if closed and lines else text


@given(_lines, _lines, _end, st.booleans())
def test_the_patch_between_two_texts_makes_one_of_the_other(
    old: list[str], new: list[str], end: str, closed: bool
) -> None:
    if not closed:  # a last line that does not end cannot be empty
        old, new = [*old, "z"], [*new, "y"]
    changes = between(old, new)
    if not changes:
        return
    before = _joined(old, end, closed=closed)
    after = _joined(new, end if end in before else "\n", closed=closed)  # what has no line end tells of none
    with tempfile.TemporaryDirectory() as name:
        file = Path(name, "f")
        file.write_bytes(before.encode())
        apply_patch("\n".join(["*** Begin Patch", "*** Update File: f", *changes, "*** End Patch"]), Path(name))
        assert after.encode() == file.read_bytes()


_words = st.sampled_from(
    """*** Begin Patch|*** End Patch|*** Add File: a|*** Add File: n/m|*** Delete File: b|*** Move to: c
    |*** Update File: a|*** Update File: b|*** End of File|@@|@@ one| one|-one|-two|+x||?""".replace(
        "\n    ", ""
    ).split("|")
)


@given(st.lists(_words, max_size=14))
def test_a_patch_is_applied_or_changes_nothing(lines: list[str]) -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        (root / "a").write_bytes(b"one\ntwo\nthree\n")
        (root / "b").write_bytes(b"two\r\none\r\n")
        before = {path: path.read_bytes() for path in root.rglob("*")}
        try:
            apply_patch("\n".join(["*** Begin Patch", *lines, "*** End Patch"]), root)
        except ToolError:
            assert before == {path: path.read_bytes() for path in root.rglob("*")}
        assert not list(root.rglob("*part"))
