"""Names before values: shell, JSON, YAML, TOML, INI, XML, headers, flags, code, connection strings, prose.

Every place where a key-like word stands is looked at once, in bounded work: the name around the word, what separates it
from a value, the value. `names` says what the name promises, and `verdict` decides with the form between the two.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from commonplace.patterns import regex
from commonplace.redact import names, notation, values, verdict
from commonplace.redact.lexicon import Text
from commonplace.redact.names import Rank, rank
from commonplace.redact.spans import MARK_BYTES, SecretSpan
from commonplace.redact.values import ValueText
from commonplace.redact.verdict import NamedValue

_AFTER: Final = regex(
    rb"""(?xs)
    (?P<tail> [\w.\-]{0,40}+ )
    (?:[ ]\#?[0-9]{1,2}(?=:) | [ ]\([\w\-/. ]{1,24}\)(?=[ ]?:|[ ](?:is|est|es|ist|lautet)[ ]))?
    (?P<close> (?>(?: \\{0,15}(?!'s[ ])["'`] | &quot; | &\#(?:34|39); | [\])}*] | %22 | \[\d{0,4}\] ){0,4}) )
    (?:
      (?P<pair>
          (?: [ \t]{0,8}+ (?: [,;] | [:=]?[ \t]{0,4}\{ )? (?>"""
    + notation.GAP
    + rb"""{0,60})
              (?: (?:\\{0,15}["'])? type (?:\\{0,15}["'])? [ \t]{0,4}[:=][ \t]{0,4}
                (?:\\{0,15}["'])? \w{1,20}+ (?:\\{0,15}["'])? ,?
                (?>"""
    + notation.GAP
    + rb"""{0,60}) )?
              (?:\\{0,15}["'])? (?i:(?:parameter|default|string)?_?value|val|default|secret|string)
              (?:\\{0,15}["'])? [ \t]{0,8}+ [:=]
            | [ \t]{1,4} --(?:body|value|secret-string|plaintext)[ =]
            | [ ](?i:text|n?varchar(?:\(\d{1,5}\))?)(?i:[ ]not[ ]null)?[ ](?i:default)(?=[ ]')
            | [ \t]{0,4} \|[ \t]{0,4}default(?:\(|[ ](?=\\{0,15}["'])) ) [ \t]{0,8}+ )
    | (?P<assign> (?>"""
    + notation.SPACE
    + rb"""{0,40}) (?>(?:"""
    + notation.BREAK
    + notation.VIEW
    + rb"""(?=[=:](?![=:])))?)
        (?: : [ \t]{0,4} (?:&(?:'\w{1,12}[ ])?)? [A-Za-z_][\w.\[\]|<>?]{0,30}+ (?:[ ]\|[ ]\w{1,20}+)?
              (?: [ \t]{1,4}=(?![=>]) | =(?=\\{0,15}["'`]) )
          | As[ ]\w{1,12}[ ]= | <<< | (?<=")(?:"""
    + notation.BREAK
    + rb"""[+>]?){2}(?=[!-~]{4}) | \.{4,40}(?:[ ]?:)? | <- | &\#61;
          | \xef\xbc[\x9a\x9d] | \\{1,15}uff1[ad]
          | := | :- | =>{1,2} | -> | \xe2\x86\x92 | \\{1,15}u2192 | [?+|]= | ={1,3} | :{1,2}(?!/) | %3D
          | \\u003d
          | (?: \|\| | \?[?:] | or[ ] ) (?=[ \t]{0,4}["'`\\]) )
        \*{0,2} (?:&nbsp;)? (?: (?:</\w{1,8}>){1,2} [ \t]{0,4} (?:<\w{1,8}>){0,2} )? (?>"""
    + notation.SPACE
    + rb"""{0,40}) (?:!{1,2}\w{1,20}[ ])?
        (?: (?:Field|SecretStr|SecretBytes|Option)\( (?:default=)? (?=\\{0,15}["']) )?
        (?: [|>][+\-]? """
    + notation.BREAK
    + notation.VIEW
    + rb""" )? )
        (?P<below> (?: (?<=:)(?>(?:\r?\n|\\+n){1,2}) | (?<==)(?>\\?\r?\n|\\+n) | (?<==[ ])(?>\\?\r?\n|\\+n) )"""
    + notation.VIEW
    + rb""")?
    | (?P<says> (?: 's(?=[ ]) | [ \t]{1,4}
        (?: (?:(?:is|was)[ ]\w{1,12}[ ])? (?:for|of|on|at|pour|para|del?|d[eu]s|du|der|vo[mn]
              |zum|am|f(?:\xc3\xbc|\\{1,15}u00fc)rs?)[ ]
            (?:[\w.'\-@/]{1,30}[ ]){0,3}? (?:[\w.'\-@/]{1,30}|'[^'\n\\]{1,80}') [ ]?:
          | (?:[\w'\-@./\\\x80-\xff]{1,24}+[ ]){0,6}?
              (?:is|was|are|to[ ]be|to|c'est|equals|now|being|be|lautet|ist|est|es|set[ ]to
                |\xc3[\xa0\xa8\xa9]|\\{1,15}u00e[089]
                |(?:auf|en|a)(?=[ ]["'`]?[^\s0-9]{0,40}[0-9])
                |(?:wifi|wlan|root|admin|ssh|vpn|db|smtp|ftp|prod|production|staging)[ ]?:
                |hei(?:\xc3\x9f|ss|\\{1,15}u00df)t)
            (?:[ ](?:now|set[ ]to|just|still|currently|jetzt|nun|noch|ahora|maintenant|toujours|actuellement))?
            [ ]?:? | = ) )
        [ \t]{1,4} (?:\r?\n[ \t]{0,8})? )
    | (?P<dash> [ \t]{1,3} (?:-|\xe2\x80[\x93\x94]|\\{1,15}u201[34]) [ \t]{1,3} )
    | (?P<under> """
    + notation.BREAK
    + notation.VIEW
    + rb""" (?=[!-~]{8}) )
    | (?P<comma> [ \t]{0,4} , [ \t]{0,24} (?=\\{0,15}["'`]) )
    | (?P<call> [ \t]{0,2} \( [ \t]{0,8} (?=\\{0,15}["'`]|[^\s()]{20}) )
    | (?P<element> (?: </key>"""
    + notation.GAP
    + rb"""{0,20}<string> | </(?i:name|param-name|key)>"""
    + notation.GAP
    + rb"""{0,20}<(?i:value|param-value)> | (?:[ \t][^<>]{0,80})? > (?: """
    + notation.GAP
    + rb"""{0,20}<(?i:value)> )? (?:<!\[CDATA\[)?
        | :?</(?:td|th|dt|b|strong|label|span|code)>[ \t]{0,4}(?:<(?:td|dd|code|span|b|kbd)>){1,2} )
        (?=[^<>\s"'](?:[^<>\s"']|[ ](?=[^<>\s"'])){3,512}(?:\]\]>)?</) )
    | (?P<cell> [ \t]{0,40}\|[ \t]{1,40} )
    | (?P<blank> (?:[ \t]{1,40}+ | \\{1,15}t) (?:(?P<typed>[0-9]|ENC)[ ](?=\S{6}))? (?![=:]) )
    )
    (?P<open> (?:[bBrRuUfFlLN@$]{1,2}(?=\\{0,15}["']))?
        (?: (?P<triple>\\{0,15}["'])(?P=triple)(?=(?P=triple)(?!(?P=triple))) )?
        (?: \\{0,15}["'`] | &quot; | &\#(?:34|39); | """
    + notation.MARK
    + rb""" )? )
    """
)
"""What may stand between the key-like word and the value. Every part is bounded, and most do not give back."""
_FORMS: Final = ("assign", "blank", "says", "pair", "comma", "call", "element", "cell", "dash", "under")
_SAID: Final = frozenset({"says", "blank", "cell", "dash", "under"})
_NESTED: Final = regex(rb"(?:\\u0026|&|&amp;)?([A-Za-z_][\w.\-]{1,40}+)(?:[=:](?![=:]?(?:[\"'\\]|\Z))|\\u003d)")
_PHRASE: Final = regex(
    rb"(?i)[ ](?:on|in|at|for|of|to|from|with|auf|im|f(?:\xc3\xbc|\\{1,15}u00fc)r|von|vom|zum|zur|am|der|des|del|de|du"
    rb"|d'|pour|para|sur|en|dans)[ ].{0,200}"
)
"""What says where a password belongs: `on the db box`, `für die Datenbank`. Its words say nothing of the value."""
_SAYING: Final = regex(
    rb"\b(?:is|was|are|to|equals|now|being|be|set|just|lautet|ist|est|es|auf|en|still|currently|jetzt|nun|noch|ahora|"
    rb"maintenant|toujours|actuellement|heisst|wurde|nuevo|nueva|user|server|reset|changed|updated|"
    rb"generated|for|of|pour|para|de|root|admin|localhost)\b|\W"
)
_HAS_DIGIT: Final = regex(rb"(?=[^\s0-9]{0,60}[0-9])\S{5}")
_WORDS_BEFORE: Final = regex(rb"(?:[A-Za-z]{1,16}[ _\-]){1,2}\Z")
_PAIRS: Final = regex(rb"[\w.\-]{2,40}+=[^\s;\"']{1,200}+;[\w.\-]{2,40}+=")
_QUOTE: Final = regex(rb"(?:\\{0,15}[\"'`]|&quot;|&\#\d\d;)\Z")
_QUOTED: Final = regex(rb"'[^']{1,80}'")
_ARTICLE: Final = regex(
    rb"(?i)\b(?:here|is|the|my|your|our|this|s|export|import|update|change|request|lock|set|add|use|using|with|and|e"
    rb"cho|local|"
    rb"readonly|declare|let|const|var|final|static)[ ]"
)
_IS_NAME: Final = regex(rb"\\{0,15}[\"'`][ \t]{0,8}:(?!:)")
_EXPANSION: Final = regex(rb"(?P<name>[A-Za-z_]\w{1,80}+):?[-=+][\"']?(?P<value>[^\s${}\"'`\\]{5,512}+)[\"']?\}")
_FORM_DATA: Final = regex(rb"name=\\{0,15}\"\Z")
_QUERY: Final = (b"?", b"&", b"&amp;", b"\\u0026", b"#", b"%26", b"%3F")


def find(text: Text) -> Iterator[SecretSpan]:
    """Yield the values that follow key-like names"""
    data = text.data
    seen: set[int] = set()
    for at, end in text.names:
        if data.startswith(b"${", names.begin(data, at) - 2) and (span := _expansion(data, at)):
            yield span
            continue
        found = _AFTER.match(data, end)
        if found is not None and found.end() not in seen:
            seen.add(found.end())
            if span := _examine(data, at, found):
                yield span


def _expansion(data: bytes, at: int) -> SecretSpan | None:
    """Return the default of a shell's variable: `${DB_PASSWORD:=…}`, `${DB_PASSWORD-…}`."""
    start = names.begin(data, at)
    found = _EXPANSION.match(data, start)
    if found is None or found.end("name") <= at:
        return None
    value = ValueText(found.start("value"), found.end("value"), b"{", values.plain(found["value"]))
    place = NamedValue(data, found["name"], rank(found["name"]), "assign", value, b"", b"=", is_flag=False)
    return SecretSpan(value.start, value.end, "assignment") if verdict.is_secret(place) else None


def _examine(data: bytes, at: int, found: re.Match[bytes]) -> SecretSpan | None:
    start = names.begin(data, at)
    name = data[start : found.end("tail")].strip(b".-_$")
    strength = rank(name)
    if strength is Rank.NONE or data.startswith(MARK_BYTES, start - 1 if start else 0):
        return None
    if data[start - 2 : start] == b"//" and found["assign"] == b":":
        return None  # the user of a URL
    if name == b"PASS" and found["assign"] is not None and data.endswith(b"--- ", 0, start):
        return None  # a test of Go that passed
    if (
        found["assign"] is not None
        and found["assign"].rstrip(b"+>")[-1:] in b"n\n"
        and b"=" not in found["assign"]
        and (not _FORM_DATA.search(data, max(0, start - 24), start))
    ):
        return None  # an empty line behind a name, and not that of a form
    if found["open"] and _PAIRS.match(data, found.end()):
        return None  # names and values of their own
    if (inner := _NESTED.match(data, found.end())) and rank(inner[1].strip(b".-_$")) is not Rank.NONE:
        return None  # another name stands where the value should be; it is looked at by itself
    form = next(group for group in _FORMS if found[group] is not None)
    if (
        form == "says"
        and rank(name + b"_" + _SAYING.sub(b"_", _PHRASE.sub(b"", _QUOTED.sub(b"", found["says"])))) is Rank.NONE
    ):
        return None
    is_word = form in _SAID and not found["open"] and not _HAS_DIGIT.match(data, found.end())
    if is_word and (form != "blank" or data[start : start + 1] != b"-"):
        return None
    before = data[max(0, start - 40) : start]
    if strength is Rank.WEAK or form in _SAID or before.endswith(b" "):
        strength = _with_words_before(before, name, strength)
    if form == "element" and not before.endswith((b"<", b":", b'"', b"'", b" ", b">")):
        return None
    query = b"%3D" in found[0] or (before.endswith(_QUERY) and b"=" in found[0])
    listed = before.endswith(b";") and b"=" in found[0]
    value = _value(data, found, query=query, listed=listed) if strength is not Rank.NONE else None
    value = value and values.default(data, value)
    if value is None or (form == "comma" and _IS_NAME.match(data, value.end)):
        return None  # behind a comma, what a colon follows is the name of the next field
    form = "below" if found["below"] is not None else "typed" if found["typed"] is not None else form
    is_flag = data[start : start + 1] in (b"-", b"/") or before.endswith((b" -", b" --"))
    place = NamedValue(data, name, strength, form, value, before, found["assign"] or b"", is_flag)
    return _span(value, found) if verdict.is_secret(place) else None


def _with_words_before(before: bytes, name: bytes, strength: Rank) -> Rank:
    """Let the words before a name speak too: `public key`, `Datadog API key`."""
    words = _WORDS_BEFORE.search(before)
    if words is None:
        return strength
    escaped = before[words.start() - 1 : words.start()] == b"\\"
    return rank(_ARTICLE.sub(b"", words[0][escaped:]) + name)


def _value(data: bytes, found: re.Match[bytes], *, query: bool, listed: bool) -> ValueText | None:
    quote = _QUOTE.search(found["open"])
    quote = quote[0] if quote else b""
    if quote:
        return values.quoted(data, found.end(), quote)
    if found["element"] is not None:
        end = data.find(b"</", found.end())
        end -= 3 if data.endswith(b"]]>", found.end(), end) else 0
        return ValueText(found.end(), end, b"<", data[found.end() : end])
    if listed and data[found.end() : found.end() + 1] == b"{":  # as ODBC writes values with signs
        end = data.find(b"}", found.end(), found.end() + 200)
        return ValueText(found.end() + 1, end, b"{", data[found.end() + 1 : end]) if end > 0 else None
    return values.bare(data, found.end(), query=query, listed=listed)


def _span(value: ValueText, found: re.Match[bytes]) -> SecretSpan:
    """Make the span; a bare value where JSON has a string or number gets quotes like those of its name."""
    close = found["close"]
    if (
        not value.quote
        and not found["open"]
        and close[-1:] == b'"'
        and found["assign"] is not None
        and b":" in found["assign"]
    ):
        return SecretSpan(value.start, value.end, "assignment", close + MARK_BYTES + close)
    return SecretSpan(value.start, value.end, "assignment")
