"""Secrets that stand at a known place of a phrase: `net user kim …`, `echo … | sudo -S`, `IDENTIFIED BY '…'`, `PASS …`.

Anchors are looked for as they are written. What is found must still look like a password and not like what stands for
one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from commonplace.redact.commands import span_of
from commonplace.redact.lexicon import Text, by_anchor
from commonplace.redact.notation import OPEN
from commonplace.redact.phrases import LINE, Phrase
from commonplace.redact.spans import SecretSpan

_WORD: Final = rb"[^\s\"'`\\<>|;&$*]"
_ARG: Final = rb"(?:\\{0,15}[\"'](?P<quoted>[^\"'\\\n]{3,200}+)\\{0,15}[\"']|(?P<bare>" + _WORD + rb"{5,200}+))"
_USER: Final = rb"[\w.@\\+\-]{1,80}"
_STRING: Final = rb"\\{0,15}[\"'](?P<bare>[^\"'\\\n]{4,200})"
_END: Final = rb"(?=\\{1,15}[rn\"]|[\r\n\"]|\Z)"
_START: Final = rb"(?:(?<![\w.\-])|(?<=\\n))"


def _phrases(*rows: tuple[bytes, int, bytes] | tuple[bytes, int, bytes, str]) -> Mapping[bytes, tuple[Phrase, ...]]:
    """Make phrases of rows: an anchor as it stands, how far before it, the phrase, the kind of finding."""
    made = (Phrase(row[0], row[1], rb"(?x)" + row[2], row[3] if len(row) == 4 else "command_password") for row in rows)
    return by_anchor(made, lambda phrase: phrase.anchor)


_PIPED: Final = rb"""[ \t]{1,4} (?: -[neE]{1,3}[ \t]{1,4} | \\{0,15}["']%s(?:\\{1,15}n)?\\{0,15}["'][ \t]{1,4} ){0,2}
    (?P<open>\\{0,15}["'])? (?: (?P<user> [\w.\-]{1,40} ) : )?
    (?: (?P<bare> [^\s"'\\|$<>:]{5,200}+ )(?![ ][^|]) | (?P<quoted> [^"'\\|$<>:\n]{5,200}+ )(?=\\{0,15}["']) )
    (?: \\{1,15}n [^\s"'\\|$<>]{1,200}+ )? (?: \\{1,15}n )? (?: \\{0,15}["'] )? [ \t]{0,4} \| [ \t]{0,4}
    (?: sudo[ ]-\w{0,4}S | (?:sudo[ ])?(?:chpasswd|passwd) | [^|\n\\]{0,100}?
        (?: -stdin | --with-token | secrets?[ ](?:set|put|create|add) | passphrase-fd | luks | --data-file=-
            | login ) )"""
_PHRASES: Final = _phrases(
    (b"echo", 0, rb"echo" + _PIPED),
    (b"printf", 0, rb"printf" + _PIPED),
    (b"<<<", 120, rb"(?:login|token|secret|passw|pass[ ]insert|luks|keepassxc|unlock|sudo[ ]-S|env[ ]add|secrets[ ]c"
     rb"reate)"
                  rb"[^|;\n\\<]{0,80}<<<[ \t]{0,4}" + _ARG),
    (b"/user:", 0, rb"/user:" + _USER + rb"[ \t]{1,4}(?P<bare>[^\s/\"'\\*]{6,100}+)"),
    (b"/user:", 101, rb"[ \t](?P<bare>[^\s/\"'\\:*]{6,100}+)[ \t]{1,4}/user:"),
    (b"net user", 0, rb"net[ ]user[ \t]{1,4}" + _USER + rb"[ \t]{1,4}(?!/|\*)" + _ARG),
    (b"htpasswd", 0, rb"htpasswd[ \t]{1,4}(?:-[a-zA-Z]{0,4}b\w{0,3}[ \t]{1,4})(?:-\w{1,3}[ \t]{1,4}){0,3}(?:[\w./~\-"
     rb"]{1,80}[ \t]{1,4})?" + _USER
                     + rb"[ \t]{1,4}" + _ARG),
    (b"_passwd -b", 0, rb"_passwd[ ]-b[ \t]{1,4}[\w./~\-]{1,80}[ \t]{1,4}" + _USER + rb"[ \t]{1,4}" + _ARG),
    (b"add_user", 0, rb"add_user[ \t]{1,4}" + _USER + rb"[ \t]{1,4}" + _ARG),
    (b"change_password", 0, rb"change_password[ \t]{1,4}" + _USER + rb"[ \t]{1,4}" + _ARG),
    (b"wpa_passphrase", 0, rb"wpa_passphrase[ \t]{1,4}\S{1,40}[ \t]{1,4}" + _ARG),
    (b"password ", 60, rb"(?:connect|wifi|login|user|add)[ ][^\n\\]{1,50}?[ ]password[ ]{1,4}" + _ARG),
    (b"airportnetwork", 0, rb"airportnetwork[ ]\w{1,8}[ ][^\s]{1,40}[ ]" + _ARG),
    (b"http-basic", 0, rb"http-basic\.[\w\-]{1,40}[ ]" + _USER + rb"[ ]" + _ARG),
    (b"login ", 24, _START + rb"(?:vault|wandb|semgrep|huggingface-cli|hf[ ]auth|snyk|railway|modal|replicate)[ ]log"
     rb"in[ ]"
                    rb"(?:-\w{1,20}[ ])?(?P<bare>[A-Za-z0-9._\-]{20,200})"),
    (b"bw ", 0, rb"bw[ ](?:unlock|login[ ]" + _USER + rb")[ ]" + _ARG),
    (b"snyk auth", 0, rb"snyk[ ]auth[ ](?P<bare>[0-9a-f\-]{36})"),
    (b" unseal ", 0, rb"[ ]unseal[ ](?:-\S{1,40}[ ])?(?P<bare>[A-Za-z0-9+/=]{24,200})"),
    (b"alias set", 0, rb"alias[ ]set[ ]\S{1,40}[ ]https?://\S{1,100}[ ]\S{3,80}[ ](?P<bare>[\w+/=]{8,100})"),
    (b"twilio login", 0, rb"twilio[ ]login[ ]AC[0-9a-f]{32}[ ](?P<bare>[0-9a-f]{32})"),
    (b"op signin", 0, rb"op[ ]signin[ ]\S{1,60}[ ]\S{1,80}[ ]A3-\S{10,60}[ ]" + _ARG),
    (b"user_pw", 0, rb"user_pw[ ]" + _ARG),
    (b"rclone obscure", 0, rb"rclone[ ]obscure[ ]" + _ARG),
    (b"--encrypt ", 0, rb"--encrypt[ ]" + _ARG + rb"(?=[ ]\S{1,80}[ ](?:40|128|256)\b)"),
    (b" 256 --", 120, rb"--encrypt[ ]\S{1,80}[ ]" + _ARG + rb"(?=[ ]256)"),
    (b"service install", 0, rb"service[ ]install[ ](?P<bare>eyJ[\w=\-]{40,400})"),
    (b"openai api key", 0, rb"openai[ ]api[ ]key[ ]set[ ](?P<bare>[\w\-]{20,200})"),
    (b"config set -n", 0, rb"config[ ]set[ ]-n[ ]key[ ]-v[ ](?P<bare>[0-9a-f]{32})"),
    (b"codecov.io", 0, rb"codecov\.io/bash\)[ ]-t[ ](?P<bare>[0-9a-f\-]{36})"),
    (b" -ap ", 0, rb"[ ]-ap[ ]" + _ARG),
    (b" -xp ", 0, rb"[ ]-xp[ ]" + _ARG),
    (b"xdotool type", 0, rb"xdotool[ ]type[ ](?:--\S{1,30}[ ]){0,3}" + _ARG),
    (b"password", 0, rb"password(?:-command|eval)[ =]\\{0,15}[\"'](?:echo|printf)[ ](?P<bare>[^\s\"'\\$]{5,100})"),
    (b"encrypt_string", 0, rb"encrypt_string[ ](?!-)" + _ARG),
    (b"openssl passwd", 0, rb"openssl[ ]passwd[ ](?:-\w{1,6}[ ]){0,3}" + _ARG),
    (b"mysqladmin", 0, rb"mysqladmin[^|;\n\\]{0,80}?[ ]password[ ]" + _ARG),
    (b"walletpassphrase", 0, rb"walletpassphrase(?:change)?[ ]" + _ARG),
    (b"IDENTIFIED ", 0, rb"IDENTIFIED[ ](?:WITH[ ][\w'\"]{1,40}[ ])?(?:BY|AS)[ ](?:PASSWORD[ ])?" + _ARG,
     "sql_password"),
    (b"identified ", 0, rb"identified[ ](?:with[ ][\w'\"]{1,40}[ ])?by[ ](?:password[ ])?" + _STRING, "sql_password"),
    (b"PASSWORD FOR", 0, rb"PASSWORD[ ]FOR[ ][^=\n]{1,90}=[ ]?(?:PASSWORD\()?\\{0,15}[\"'](?P<bare>[^\"'\\\n]{4,200})",
     "sql_password"),
    (b"password for", 0, rb"password[ ]for[ ][^=\n]{1,90}=[ ]?(?:password\()?\\{0,15}'(?P<bare>[^\"'\\\n]{4,200})",
     "sql_password"),
    (b"PASSWORD '", 0, rb"PASSWORD[ ]'(?![^'\n]{0,60}\b(?:must|your|characters)\b)(?P<quoted>[^'\"\\\n]{5,200}+)'",
     "sql_password"),
    (b"SECRET '", 0, rb"SECRET[ ]'(?P<bare>[^'\"\\\n]{8,200})'", "sql_password"),
    (b"PASS ", LINE, rb"PASS[ ](?P<bare>[^\s\"'\\<>]{6,200}+)" + _END),
    (b"AUTH ", LINE, rb"AUTH[ ](?:\w{1,20}[ ])?(?P<bare>[^\s\"'\\<>]{8,400}+)" + _END),
    (b"LOGIN ", 0, rb"LOGIN[ ][\w.+\-]{1,60}@[\w.\-]{3,60}[ ]" + _ARG),
    (b"dentify ", 16, rb"(?i:nickserv)[ ]:?(?i:identify)[ ]" + _ARG),
    (b"DENTIFY ", 24, rb"(?i:nickserv)[ ]:?IDENTIFY[ ]" + _ARG),
    (b"send ", 0, rb"send[ ](?:--[ ])?\\{0,15}[\"'](?P<bare>[^\"'\\\s\[$]{6,100}+)(?:\\{1,15}[rn]|\r|\n)\\{0,15}[\"']"),
    (b"createUser ", 0, rb"createUser[ ]\w{1,32}[ ]\w{3,8}[ ]" + _ARG),
    (b"createUser ", 0, rb"createUser[ ]\w{1,32}[ ]\w{3,8}[ ]\S{1,80}[ ](?:AES|DES)\w{0,4}[ ]" + _ARG),
    (b"\" * \"", 0, rb"\"[ ]\*[ ]\"(?P<bare>[^\"\\\n]{6,100})\"[ ]\*"),
    (b" on >", 0, rb"[ ]on[ ]>(?P<bare>[^\s\"'\\]{6,200}+)(?=[ ][~+&%])"),
    (b"\"md5", 0, rb"\"(?P<bare>md5[0-9a-f]{32})\"", "password_file"),
    (b"stats auth", 0, rb"stats[ ]auth[ ][\w.\-]{1,40}:(?P<bare>[^\s\"'\\]{5,100}+)"),
    (b"user = ", 0, rb"user[ ]=[ ]" + OPEN + rb"[\w.@\-]{1,60}:(?P<bare>[^\"'\\\s]{5,100})" + OPEN),
    (b"basic_auth=", 0, rb"basic_auth=" + OPEN + rb"[\w.@\-]{1,60}:(?P<bare>[^\"'\\\s]{5,100})"),
    (b"socks", 0, rb"socks[45][ ][\w.\-]{3,60}[ ]\d{2,5}[ ][\w.@\-]{1,60}[ ](?P<bare>[^\s\"'\\]{6,100}+)"),
    (b"community", 0, rb"community[ ](?:=[ ])?(?P<bare>[\w.\-!\#%]{8,64}+)(?=[ ](?:\d|default)|[\r\n\\\"]|\Z)"),
    (b"community ", 0, rb"community[ ](?P<bare>[\w.\-!\#%]{5,64}+)(?=[ ](?:RO|RW|ro|rw)\b)"),
    (b"rver ", 0, rb"rver[ ](?:host[ ][\w.\-:]{3,60}[ ])?(?:[\w\-]{1,20}[ ]\d{1,5}[ ]){0,2}key[ ](?:\d[ ])?" + _ARG),
    (b"isakmp key", 0, rb"isakmp[ ]key[ ](?:\d[ ])?" + _ARG),
    (b"set pass", 0, rb"set[ ]passw(?:or)?d[ ](?:ENC[ ])?" + _ARG),
    (b"set psksecret", 0, rb"set[ ]psksecret[ ](?:ENC[ ])?" + _ARG),
    (b"]:", 60, rb"\[[\w.\-]{3,60}\]:\d{2,5}[ \t]{1,8}[^\s:]{1,80}:(?P<bare>[^\s\"'\\]{5,200}+)"),
    (b"WiFi.begin", 0, rb"WiFi\.begin\([ ]?[^,()\n]{1,60},[ ]?\\{0,15}\"(?P<bare>[^\"\\\n]{8,64})"),
    (b"CURLOPT_", 0, rb"CURLOPT_(?:PROXY)?USERPWD,[ ]?" + OPEN + rb"[^\"':\n]{1,80}:(?P<bare>[^\"'\\\n]{4,200})"),
)  # fmt: skip


ANCHORS: Final = tuple(_PHRASES)


def find(text: Text) -> Iterator[SecretSpan]:
    """Yield the secrets of phrases."""
    for phrase in text.among(_PHRASES):
        for at in text.exact(phrase.anchor):
            if (found := phrase.at(text.data, at)) and (span := span_of(found, phrase.kind)):
                yield span
