"""The shape of lines: which of them nobody types by hand.

Output of programs, code, mail, documents, reviews and whatever a line such as `got this error:` announces. The shape is
asked last, for texts that neither a field nor a mark of a program tells the author of.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from commonplace.patterns import regex


class TextLine(NamedTuple):
    """A line and its place in a text."""

    start: int
    end: int
    text: str


_OUTPUT_LINE: Final = regex(
    r"""(?x)\s*+(?:
        [\[(]?\d{4}-\d\d-\d\d[T ]\d\d:\d\d | \[?\d\d:\d\d:\d\d
      | (?:Mon|Tue|Wed|Thu|Fri|Sat|Sun|Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\b.{0,12}\d\d:\d\d
      | [{}\[\]],?$ | \{" | "[\w$-]+"\s*+: | [|│┌└├╭╰┃━═─] | \+{3}\s | -{3}\s\S | @@\s | diff\s--git
      | index\s[0-9a-f]{7} | (?:---|===)\s?\w | [+-](?:\s{2,}|\t|\s?//)\S
      | at\s++[\w.$<>]++\s?\( | File\s".{1,300}",\sline\s\d | Traceback | goroutine\s\d | panic: | FAIL\b | ok\s{2,}\S
      | PASS\b | \?\s{2,}\S | exit\sstatus | npm\s(?:ERR|error|warn) | error(?:\[\w+\])?: | Error: | warning: | fatal:
      | hint: | remote: | (?:ERROR|WARN|INFO|DEBUG)\b | \[(?:ERROR|WARN|INFO|DEBUG|error|warn|info|debug)\]
      | [❯⏺⎿✓✔✗✘×⨯●○►▶›»★☐☑$%]\s | >\s | PS\s?[A-Z]:\\ | [\w.@-]++[@:][\w.~/-]++\s?[$%\#]\s
      | [\w.-]++@[\w.-]++\s\S++\s[%$]\s
      | (?:create|delete)\smode\s\d{6} | \d+\sfiles?\schanged | commit\s[0-9a-f]{7,40}\b | (?:Author|Date|Merge):\s++\S
      | [0-9a-f]{7,40}\s\S | (?:modified|deleted|new\sfile|renamed):\s
      | [\w./\\-]++(?:(?<=\.\w)|(?<=\.\w\w)|(?<=\.\w{3})|(?<=\.\w{4})|(?<=\.\w{5}))(?::\d+){1,2}[:\s]
      | (?:https?|file)://\S++$ | (?>(?:/[^\s/]*+){2,})$ | [A-Z]:\\\S++$ | [}\])]++[;,)]*+$ | //\s | /\* | \*/
      | \#!/ | </?\w++[^<>]*+>\s*+$ | [A-Z][A-Z0-9_]{2,}+=\S | \d+\s*+[|→]\s
    )"""
)
"""Lines that nobody types by hand."""
_CODE_LINE: Final = regex(
    r"\s*+(?:import|from|export|const|let|var|func|def|class|return|type|package|public|private|async|await|if|for|while"
    r"|else|elif|switch|case|try|catch)\b[^.?!]*+(?<=[{;:)(=])\s*+$"
)
_CODE_SIGN: Final = regex(r"[{}<>=;|\\$&*^~]|\(\)|->|::|\w\(|\w_\w|[a-z][A-Z]|(?<!/)/\w++/|(?<![0-9A-Za-z])0x[0-9a-f]")
_HEADING: Final = regex(r"\s{0,3}#{1,6}\s+\S")
BULLET: Final = regex(r"\s*+(?:[-*•·–]|\d{1,2}[.)]|[a-zA-Z][.)])\s++")
_MAIL_HEAD: Final = regex(r"\s*+(?:From|To|Cc|Subject|Sent|Date): \S")
_PERSONAL: Final = regex(
    r"(?i)(?<![-\\$])\b(?:i|i'?m|i'?d|i'?ll|i'?ve|me|my|mine|we|we'?re|we'?d|we'?ll|we'?ve|us|our|let'?s|you|your|you'?re|u|pls"
    r"|please)\b"
)
_SPEAKER: Final = regex(
    r"(?i)(?<![-\\$])\b(?:i|i'?m|i'?d|i'?ll|i'?ve|me|my|let'?s|can (?:you|we)|could (?:you|we)|should we|pls|hmm|ok"
    r"|oh)\b"
)
"""Words of somebody who speaks for themselves; reviewers, too, write `our hook` and `please`."""
_ADVICE: Final = regex(
    r"(?i)\b(?:consider|recommend|suggest) (?:\w{1,12}ly )?\w{2,20}ing\b|\bPlease either\b"
    r"|\b(?:lacks?|missing) (?:unit |direct |any )*(?:tests?|validation|coverage)\b"
    r"|\bLow Severity\b|\bthis (?:could|may|might|would) (?:lead|cause|result|break|overwrite)\b"
)
"""How reviews, mostly those of programs, word what to do about a finding."""
_ASKED_ABOUT: Final = regex(
    r"(?i)\b(?:look (?:at|into)|check|fix|address|handle|ideas?|thoughts?|feedback|comments?|clarify|explain|about"
    r"|this)\b"
)
_QUOTED_OBJECT: Final = regex(r"[ :](?=\d{1,2}[.)]\s|(?:The|This|In|If|When)\s|[A-Z][a-z]{1,30}+[A-Z])")
"""Where a line that asks somebody to look at something goes on with what was copied."""
_ANNOUNCING: Final = regex(
    r"(?i)\b(?:feedback|comments?|review\w*|suggest\w*|errors?|output|logs?|trace|message|report|response|result|says?"
    r"|said|got|get(?:ting)?|see(?:ing)?|saw|shows?|this|these|following|below|here|here'?s|mentioned|clarify|explain"
    r"|look at|address|handle|fix|from|about|prompt|warning|it'?s|above)\b"
)
_REVIEW: Final = regex(
    r"(?i)\s*+(?:(?:Low|Medium|High|Critical)\s(?:Severity|Priority)|\*{0,2}(?:P[0-3]|Severity|Suggestion|"
    r"Recommendation|Issue|Problem|Impact|Root cause|Summary|Context|Details)\b\*{0,2}\s*[:：]"
    r"|(?:Consider|Either|To fix|Additionally,|However,|Missing|Potential)\b.{40,})"
)
_NAME_OF_CODE: Final = regex(r"\w_\w|[a-z][A-Z]|\w\.\w|\w\(\)|`|\\[nrt]\b|(?<!\S)\.[a-z]\w|(?<!\S)--?[a-z]")
_SENTENCE_END: Final = regex(r"[.?!\n]")
_COLONS: Final = (":", "：")
_LEAD: Final = 60
"""So many characters before the colon are looked at for what announces a quotation."""
_SHORT_REPLY: Final = 200
_LAST_REPLY: Final = 260
"""A personal line that is not longer ends a quotation; the last line of a message may be a little longer."""
_LONG_LINE: Final = 25
"""From so many words on, an impersonal line with names of code is from a review or a document."""
_OPENING: Final = 90
"""So far into a line, a request may go on with what it is about."""
_ADVISING_LINE: Final = 15
"""From so many words on, a line that advises as reviews do is from one."""
_CODE_SHARE: Final = 0.5


def lines_of(text: str, start: int, end: int) -> Iterator[TextLine]:
    """Yield the lines of a part of a text with their places."""
    for line in text[start:end].split("\n"):
        yield TextLine(start, start + len(line), line)
        start += len(line) + 1


def line_rules(lines: list[TextLine]) -> list[str]:
    """Return for each line the rule by which it is not the person's own; empty if it may be."""
    return _LineRules(lines).rules()


class _LineRules:
    """The lines of a text, and by which rule each is not the person's own."""

    def __init__(self, lines: list[TextLine]) -> None:
        self._texts = [line.text for line in lines]
        self._rules = [""] * len(lines)
        self._full = [at for at, text in enumerate(self._texts) if text.strip()]
        self._is_personal = [_PERSONAL.search(text) is not None for text in self._texts]

    def rules(self) -> list[str]:
        """Return the rule that marks each line, empty for the person's own."""
        for at in self._full:
            self._rules[at] = _rule_of_line(self._texts[at], is_personal=self._is_personal[at])
        self._mark_gaps()
        self._mark_mail()
        self._mark_document()
        self._mark_announced()
        for at in self._full:
            if not self._rules[at] and _is_impersonal(self._texts[at], is_personal=self._is_personal[at]):
                self._rules[at] = "impersonal"
        return self._rules

    def _mark_gaps(self) -> None:
        """Lines between lines of output belong to it, unless they speak or ask."""
        marked = [at for at in self._full if self._rules[at]]
        for at in self._full if len(marked) > 1 else ():
            is_between = marked[0] < at < marked[-1]
            if is_between and not self._rules[at] and not self._is_personal[at] and "?" not in self._texts[at]:
                self._rules[at] = "gap"

    def _mark_mail(self) -> None:
        """What stands below the head of a mail is the mail, but for a last line that asks about it."""
        heads = [at for at in self._full if self._rules[at] == "mail"]
        for at in self._full if len(heads) > 1 else ():
            asks = at == self._full[-1] and "?" in self._texts[at]
            if at > heads[-1] and not self._rules[at] and not asks:
                self._rules[at] = "mail"

    def _mark_document(self) -> None:
        """A text with two headings is a document from the first on."""
        heads = [at for at in self._full if _HEADING.match(self._texts[at])]
        for at in self._full if len(heads) > 1 else ():
            if at >= heads[0] and not self._rules[at]:
                self._rules[at] = "document"

    def _mark_announced(self) -> None:
        """What follows a line such as `got this error:` is quoted, until somebody speaks again."""
        for number, at in enumerate(self._full[:-1]):
            behind = self._full[number + 1 :]
            if self._rules[at] or not _announces(self._texts[at]) or BULLET.match(self._texts[behind[0]]):
                continue
            for place in behind:
                if not self._rules[place]:
                    if self._is_reply(place, behind):
                        break
                    self._rules[place] = "announced"
            return

    def _is_reply(self, place: int, behind: list[int]) -> bool:
        length = len(self._texts[place])
        is_last = place == self._full[-1] and place != behind[0] and length < _LAST_REPLY
        return self._is_personal[place] and (length < _SHORT_REPLY or is_last)


def _rule_of_line(text: str, *, is_personal: bool) -> str:
    if is_output_line(text) and not (is_personal and BULLET.match(text)):
        return "output"
    if _MAIL_HEAD.match(text):
        return "mail"
    if is_personal:
        return ""
    if _CODE_LINE.match(text) or (len(text) > 8 and _CODE_SIGN.search(text) and _code_share(text) >= _CODE_SHARE):
        return "code"
    return "indented" if text.startswith(("    ", "\t")) and not BULLET.match(text) else ""


def is_output_line(text: str) -> bool:
    """Say whether a line is one that nobody types by hand."""
    return _OUTPUT_LINE.match(text) is not None


def _code_share(text: str) -> float:
    words = text.split()
    return sum(_CODE_SIGN.search(word) is not None for word in words) / max(1, len(words))


def _announces(text: str) -> bool:
    """Say whether a line ends in a colon and says that something is quoted."""
    bare = text.rstrip()
    if not bare.endswith(_COLONS):
        return False
    sentence_ends = [found.end() for found in _SENTENCE_END.finditer(bare[:-1])]
    last = bare[sentence_ends[-1] if sentence_ends else 0 : -1]
    if not sentence_ends and len(last) <= _LEAD:
        return True
    return any(len(last) - found.end() <= _LEAD for found in _ANNOUNCING.finditer(last))


def _is_asked_about(opening: str) -> bool:
    return _ASKED_ABOUT.search(opening) is not None and not _SENTENCE_END.search(opening)


def _is_impersonal(text: str, *, is_personal: bool) -> bool:
    """Say whether a line opens or advises like a review, or is a long one with names of code."""
    words = len(text.split())
    quoted = _QUOTED_OBJECT.search(text, 0, _OPENING)
    asked = quoted is not None and _is_asked_about(text[: quoted.start()])
    spoken = text[quoted.end() :] if quoted is not None and asked else text
    if words >= _ADVISING_LINE and _ADVICE.search(spoken) and not _SPEAKER.search(spoken):
        return True
    if is_personal and not (asked and not _PERSONAL.search(spoken)):
        return False
    if _REVIEW.match(text):
        return True
    return words >= _LONG_LINE and len(_NAME_OF_CODE.findall(text)) > 1
