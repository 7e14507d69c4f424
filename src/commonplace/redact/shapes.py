"""Tables for `judge`: letter pairs of words, what stands for a secret, where a secret is kept, what is never one."""

from __future__ import annotations

from typing import Final

from commonplace.patterns import regex

_GROUPS: Final = """
    abcdgilmnprstuy baeiloru caehiklorstu dadefilorsu eabcdefgilmnoprstvwx faefilort gaeirsu haeiot
    iabcdefglmnoprstvz ke ladeilostuy maeiops nacdefgiostuv oabcdfgilmnoprstuvw paeiloprstu qu racdegilmnoprstuy
    sacehilopstuy tacdefhilmoprstuy uabeilmnprst vaei waei xt yps ze
"""
PAIRS: Final = frozenset((group[0] + tail).encode() for group in _GROUPS.split() for tail in group[1:])
"""The 220 letter pairs that make up 87 % of the pairs in the words of source code and its documentation."""

_PARTS: Final = """
    redacted *** xxxxx ... … ----- _____ 0000000000 #### example placeholder dummy sample changeme change-me change_me
    changeit change-it changethis change-this replaceme replace-me replace_me replace-with replace_with replacewith
    replace-this notreal not-real not_real not-a- not_a_ notasecret notset not-set not_set secret-goes secret_goes
    nopassword no-password no_password lorem abcdefgh 12345678 23456789 qwerty deadbeef insert- insert_ enter- enter_
    -here _here
"""
PLACEHOLDER_PARTS: Final = (b"change me", *(part.encode() for part in _PARTS.split()))
"""What a value that stands for a secret has somewhere, in lower case."""

PLACEHOLDER_HINT: Final = regex(
    rb"xxx|fake|todo|your|foo|bar|baz|qux|super|^(?:put|insert|enter|add|paste|set|use|fill|my)"
)
"""Without one of these, `PLACEHOLDER` need not be tried."""
PLACEHOLDER: Final = regex(
    rb"""(?x)
      (?<![a-z0-9])x{3,}(?![a-z0-9]) | (?<![a-z])fake | (?<![a-z0-9])todo(?![a-z0-9])
    | your[\-_ .]?(?:own|new|actual|real|api|key|token|secret|pass|access|auth|client|app|private|project|account|org|
        github|gitlab|openai|aws|azure|google|slack|stripe|username|user|db|database|server|service|domain|company|
        personal|bot|jwt|webhook|host|strong|super|long|random|unique|generated|anthropic)
    | ^(?:put|insert|enter|add|paste|set|use|fill)[\-_ ] | ^my[\-_ ]?(?:secret|token|password|key|api|super|very)
    | (?<![a-z0-9])(?:foo|bar|baz|qux)(?:foo|bar|baz|qux|\d{0,3}(?![a-z0-9])) | super[\-_]?secret(?![a-z0-9])
    """
)

_STOCK: Final = """
    password passwd passphrase pass pwd pw secret secrets token tokens key keys apikey api_key api-key value values none
    null nil n/a tbd todo undefined true false yes no on off empty default string str text bytes number int integer bool
    boolean object any unknown void never optional required missing invalid expired enabled disabled hidden masked
    private public admin administrator root user username guest test tester testing tests demo local localhost dev
    development prod production staging postgres postgresql mysql redis mongo mongodb rabbitmq example examples basic
    bearer auth oauth abc abc123 123 1234 12345 123456 letmein mysecret mytoken mykey mypassword testing123 test123
    testpass testpassword test-token test-key test_token test_key test-secret test_secret testtoken testkey testsecret
    some-token sometoken base64 utf8 utf-8 latin1 latin-1 ascii hex utf16 utf-16 unicode cp1252 sha1 sha256 sha512 md5
    bcrypt argon2 scrypt pbkdf2 tiger a b c x y z foo bar baz qux env file prompt ask stdin input output type name id
"""
STOCK_WORDS: Final = frozenset(word.encode() for word in _STOCK.split())
"""Words that are written where a secret would stand."""

_FILE_ENDS: Final = (
    rb"(?:pem|key|json|ya?ml|txt|crt|cer|p12|pfx|jks|env|py|jsx?|tsx?|go|rs|md|toml|ini|cfg|conf|sh|html?|css|svg|png|"
    rb"jpe?g|gif|gz|zip|xml|log|lock|sql|rb|java|kt|php|cs|cpp|c|h)"
)
REFERENCE: Final = regex(
    rb"""(?x)
      \$[A-Za-z_]\w*(?:$|[.:\[\-]) | \$\$?\w+\$$ | \$\d+$ | \{[\w.\-]*\}$ | \{%
    | %[A-Za-z_]\w*%?$ | %[sdrv]$ | %\{
    | @@?[A-Za-z_.\-]+@@?$ | @[A-Za-z_]+$ | (__|%%|\#|~|!|\|)[A-Z_][A-Z0-9_.\-]*\1$ | :[A-Za-z_]+$ | \[\[.*\]\]$
    | << | <%?[^<>]{0,80}%?>$ | <[A-Za-z_] | \[[A-Za-z_\- ]{1,60}\]$ | @[A-Za-z][\w.]*\( | &(?:\#|lt|gt|amp)
    | (?:op|vault|ssm|awssm|gcpsm|secretsmanager|keyring|bws|ref\+\w+|env|file|sops|sm|projects)://?
    | (?:env|file|vault|secret|ref|var|data|local|module|keychain|pass)[:.][A-Za-z_/\[]
    | arn:aws | projects/[^/]+/secrets/ | ENC[\[(] | !vault | !Ref | !Sub | !secret | AQICAH | urn:
    | (?:https?|s3|gs|file)://[^@]*$ | /(?:run|etc|var|home|usr|opt|tmp|mnt|secrets|root|dev)/
    | ~?/?\.?/?[\w.\-]+/[\w./\-]*\."""
    + _FILE_ENDS
    + rb"""$ | \.{1,2}/ | [A-Z]:\\
    """
)
"""Where a secret is kept: the value is a variable, a template, a vault, a path."""
REFERENCE_SIGNS: Final = regex(rb"[${%#\\(\[]")
"""Without one of these, `REFERENCE_WITHIN` need not be tried."""
REFERENCE_WITHIN: Final = regex(
    rb"""(?x)
      \$\{ | \$\( | \{\{ | \{[a-z_][\w.]*\} | %\(\w+\)s | \#\{ | \\x[0-9a-fA-F]{2} | \(\?[:=!P<] | \[\^ | \\[dwsDWSb]
    """
)
"""A variable or a template within the value, or an expression that describes a secret."""

PUBLIC: Final = regex(
    rb"""(?x)
      v?\d+(?:\.\d+){1,3}(?:[\-+.][\w.]+)? | \d{4}-\d\d-\d\d(?:[T ][\d:.+\-Z]*)? | \d{1,2}:\d\d(?::\d\d)?
    | \d+(?:\.\d+)?\s?(?:[kKMGTP]i?[bB]?|ms|s|m|h|d|w|px|em|rem|%|x|bits?|bytes|B|days?|hours?|minutes?|seconds?|years?|
        chars?)
    | (?:\d{1,3}\.){3}\d{1,3}(?:[:/]\d+)? | (?:[0-9a-fA-F]{2}:){5,}[0-9a-fA-F]{2} | \#[0-9a-fA-F]{3,8}
    | [\w.+\-]+@[A-Za-z0-9\-]+(?:\.[A-Za-z0-9\-]+)*\.[a-z]{2,12}
    | (?:sha(?:1|224|256|384|512)|md5|blake2b)[:\-][A-Za-z0-9+/=]+
    | (?:AES|RSA|HS|RS|ES|PS|SHA|MD|EC|DES|RC|HMAC|aes|sha|rsa|hmac)[\-_]?\d{1,5}+
      (?>(?:[\-_/]?[A-Za-z]{2,24}+\d{0,4}+){0,3})
    | P-?(?:224|256|384|521) | (?i:ed25519|ed448|x25519|x448|secp\d{3}[kr]1|pkcs\d{1,2}|rfc\d{3,5})
    | ssh-(?:rsa|dss|ed25519).* | ecdsa-sha2.* | [\w\-]+\."""
    + _FILE_ENDS
    + rb"""
    | (?:[a-z]{2}-)?(?:us|eu|ap|sa|ca|me|af)-(?:gov-)?(?:north|south|east|west|central)+-?\d?\w?
    | (?i:string|n?varchar|char|u?int|text|binary|float)\(?\d{1,4}\)?
    | \d{1,5} | 0x[0-9a-fA-F]{1,16}[uUlL]{0,3}(?:[,;].*)? | [a-z]{2}[_\-][A-Z]{2}(?:\.[\w\-]+)?
    | (?:gpt|claude|gemini|llama|mistral|o\d|text|qwen|deepseek)-[\w.\-]+
    """
)
"""Shapes with digits that are no secrets whatever they are called: versions, times, sizes, addresses, files."""
