"""Is a quoted value with blanks a secret? Passwords may have blanks, and labels and messages have them too.

A value is cut into its words. Words of sentences, such as `your` or `must`, make it a sentence. What is left is taken
if it has digits or signs where words have none, or, after a name that no label has, if it is a phrase of plain words.
"""

from __future__ import annotations

from typing import Final

from commonplace.patterns import regex

_LONGEST: Final = 96
_MOST_WORDS: Final = 10
_LEAST_WORDS: Final = 4
"""A phrase of plain words has so many."""
_SENTENCE: Final = frozenset(
    b"""
    a an and any are as at be been but by can cannot characters chars click confirm contain contains current
    did do does doesn don empty enter error expired failed field for forgot forgotten from get has have help here hide
    how i if in incorrect input invalid is it its keep least leave length letters long mail may me minimum
    mismatch missing must my new no not of off old on only optional or our out password passwords passwort phrase
    please repeat required reset secret see send set short should show sign so strength strong than that the their them
    then there this to token too type up update use used user username valid value via was weak were what when where
    which who will with without wrong yes you your
    bitte das dein der des die ein eine eingeben falsch geben ihr ist kennwort muss nicht neu neues oder ohne sie und
    vergessen wiederholen zeichen zu
    al con contrasena clave de del el es en la las los nueva por su tu un una y olvidado introduce introduzca debe tiene
    au aux ce dans du est et le les mot ne ou par pas passe pour sur une votre vous oublie saisir saisissez entrer
    string number text hint label title name names key keys
    """.split()
)
"""Words that make a sentence, in the languages that labels are often in."""
_SIGNS: Final = b".,:;!?()\"'"
_SHORT: Final = 3
_PLAIN: Final = regex(rb"[a-z]{3,10}\Z")
_LABEL: Final = regex(
    rb"[A-Z]?[a-z\x80-\xff]+[,.:;!?]{0,3}\Z|-{0,2}[a-z]+(?>(?:[:./_=\-][a-z]+){1,4})\Z|[A-Z]{1,12}[,.:;!?]{0,3}\Z|[\-&/+|]\Z|\d{1,4}[,.)]?\Z"
)
"""A word as it stands in a label: letters alone, a number, a sign alone."""
_CODE: Final = regex(rb"\A *[+.&|]{1,2} +[\w(]|[\w$]\(")
"""A call, or what puts strings together: the quote before it ends a string and begins none."""
_ODD: Final = regex(rb"[a-z][A-Z]|[A-Za-z]\d|\d[A-Za-z]|[A-Za-z\d][@#$%^*=+~][A-Za-z\d]|[#$%^*=~]\Z")
"""What words of labels hardly have."""


def is_secret(text: bytes, *, is_sure: bool) -> bool:
    """Judge a value with blanks; `is_sure` says that its name is that of a password and of nothing else."""
    words = text.split()
    if not 8 <= len(text) <= _LONGEST or not 2 <= len(words) <= _MOST_WORDS or b"{" in text or _CODE.search(text):
        return False
    odd = sum(_LABEL.match(word) is None or _ODD.search(word) is not None for word in words)
    numbers = sum(word.strip(b",.!?").isdigit() for word in words)
    said = sum(word.strip(_SIGNS).partition(b"'")[0].lower() in _SENTENCE for word in words)
    if said:  # one of these words may stand in what was drawn
        return said == 1 and odd >= 1 and numbers >= 1 and odd + numbers >= 3
    if _is_phrase(words):
        return True
    short = sum(len(word) <= _SHORT and word.isalpha() for word in words)
    if is_sure:
        return bool(odd or numbers)
    return odd >= 1 + len(words) // 4 or (numbers > 0 and short + numbers + odd >= len(words) - 1) or numbers >= 2


def _is_phrase(words: list[bytes]) -> bool:
    """Say whether words are a phrase that was drawn: some plain words in lower case."""
    return len(words) >= _LEAST_WORDS and all(_PLAIN.match(word) for word in words) and len({*words}) == len(words)
