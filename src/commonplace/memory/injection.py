"""Prompt injection: texts that try to steer their reader are never kept, whoever wrote them."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise
from typing import Final

from commonplace.patterns import regex
from commonplace.protocol import shell

_INJECTION: Final = regex(
    r"ignore (?:all |any )?(?:previous|prior|above|earlier)"
    r"|disregard (?:the |all )?(?:previous|above)"
    r"|system prompt"
    r"|you are now"
    r"|as an ai"
    r"|</?(?:system|instructions?|assistant|memory)\b",
    re.IGNORECASE,
)


_HIDING: Final = regex(r"\"\"|''|\\(?=[a-z])|\$[@*]|(?<=\w)\^(?=\w)")
"""What a shell drops from inside a word."""
_BLANKS: Final = regex(r"\$\{?ifs\}?")
_FETCHES: Final = regex(
    r"(?<![\w.-])(?:curl|wget|aria2c|axel|lynx|w3m|lwp-request|lwp-download|iwr|irm|invoke-webrequest|invoke-restmethod"
    r"|start-bitstransfer|bitsadmin|certutil|(?:ncat|netcat|nc)(?! -\w{0,3}z)|socat|tftp|base64|xxd)"
    r"(?:\.exe)?(?![\w/-]|\.\w)"
    r"|(?<![\w./-])(?:git[ ](?:[^;&|\n]{0,80}[ ])?clone|gh[ ](?:release|run)[ ]download|https?|fetch[ ]-[oq]"
    r"|gh[ ]repo[ ]clone|hg[ ]clone|svn[ ](?:export|checkout|co)|git[ ](?:submodule|remote)[ ]add"
    r"|git[ ]pull(?=[ ](?:https?:|git@|ssh:)))[ ]"
    r"|(?<![\w./-])(?:mount[ ]-t[ ](?:nfs|cifs|smb3?)|sshfs|smbclient|az[ ]storage)[ ]"
    r"|(?<![\w.-])(?:scp|rsync|sftp|ftp)[ ](?:-\S{1,40}[ ]){0,6}[\w.@-]{1,80}:|\.download(?:string|file)\b",
)
"""Programs that bring a text from elsewhere, or out of a disguise."""
_RUNS: Final = regex(
    r"(?<![\w.-])(?:(?:ba|z|da|k|c|tc|fi|a)?sh|eval|source|exec|iex|invoke-expression|pwsh|powershell|osascript"
    r"|(?:python[\d.]{0,5}|node|deno|bun|perl|ruby|php|lua)(?! +-[cemn]))(?![\w.=-])|(?<![\w./])\.[/\\]"
    r"|(?:^|(?<=[;&|\n`(]))[ \t]*\. |(?<!\S)\. (?=<\()|\bchmod "
    r"|\b(?:dpkg|rpm) -|\bjava -jar |\bpip3? install [\w./-]{1,80}\.whl\b|\bmake -f\b"
    r"|(?<=[;&|\n(])[ \t]*(?:sudo[ ])?(?:~|/(?!(?:usr|bin|opt|sbin|dev)/))[/\w]"
    r"|(?<=[;&|\n])[ \t]*(?:make|[\w.:\\-]{1,80}\.exe)\b",
)
"""Programs that run a text."""
_CARRIERS: Final = frozenset({"sudo", "env", "command", "exec", "nohup", "time", "xargs", "busybox"})
_SHELLS: Final = frozenset(
    {"sh", "bash", "zsh", "dash", "ksh", "csh", "tcsh", "fish", "ash", "iex", "invoke-expression"}
)
_INTERPRETER: Final = regex(r"(?:python[\d.]{0,5}|node|perl|ruby|php)\Z")
_PROGRAM: Final = regex(r"\s*[\w./-]+\s*")
_ENDS: Final = ";&`\"')"
"""What may stand behind a command."""
_REMOTE: Final = regex(
    r"\b(?:npx|bunx|uvx|dlx|pipx (?:run|install)|deno (?:run|install)|go run|(?:uv )?pip3? install"
    r"|uv (?:tool )?(?:run|install|add)|poetry add|(?:conda|mamba) install|composer (?:require|config)|deno eval"
    r"|gem specific_install|(?:dnf|yum|zypper|snap|flatpak|apk|port) (?:-y )?(?:install|add)|pacman -u|nix-env"
    r"|guix install|terraform init|ansible-(?:pull|galaxy)|docker (?:build|import)|code --install-extension"
    r"|(?:claude|codex) (?:mcp|plugin)"
    r"|node --(?:import|require|loader|experimental-network-imports)|vim? -c|script:"
    r"|(?:npm|pnpm|yarn|bun) (?:i|install|exec|add|x)|cargo install|gem install|bun (?:run|x)|brew (?:install|tap)"
    r"|mise (?:exec|x|use)|nix (?:run|shell|develop|profile install)|nix-shell|helm (?:install|upgrade)"
    r"|kubectl (?:apply|create)"
    r"|mshta|regsvr32|msiexec|rundll32|apt(?:-get)? install|dpkg -i|rpm -i|installer)\b"
    r"[^\n;&|]{0,200}(?:https?://(?!localhost|127\.)|git\+|git@|--git\b|(?<![\w-])(?:github|gitlab|bitbucket|gist|ubi):)"
    r"|\bhelm (?:install|upgrade)\b[^\n;&|]{0,200}\boci://|/(?:dev|inet)/(?:tcp|udp)/|\bztcp[ ]|\brundll32 javascript:"
    r"|\b(?:ncat|netcat|nc)[ ](?:[^\n;&|]{0,80}[ ])?-{1,2}(?:e|c|exec|sh-exec)[ ]"
    r"|\bsocat\b[^\n;&|]{0,200}[ :,](?:exec|system):"
    r"|\b(?:powershell|pwsh)(?:\.exe)?[ ](?:[^\n;&|]{0,80}[ ])?-e(?:c|nc|ncodedcommand)?[ ][a-z0-9+/=]{8}"
    r"|\b(?:python[\d.]{0,5}|node|deno|bun|perl|ruby|php|lua|rscript|julia)[ ]-{1,2}\w{1,10}[ ]{1,4}[\"']?(?:\$\(|`)"
    r"[ ]*(?:sudo[ ])?(?:[\w./-]{0,40}/)?(?:curl|wget|fetch|nc|ncat|lynx)[ ]"
    r"|(?:^|[;&|\n`])[ \t]*\$\([ ]*(?:[\w./-]{0,40}/)?(?:curl|wget)[ ]"
    r"|(?<![\w.-])(?:curl|wget)[ ][^\n|]{0,300}\|[ ]*(?:sudo[ ])?(?:[gm]?awk[ ][^\n|]{0,200}\bsystem\(|at[ ]now\b"
    r"|crontab\b|tee[ ](?:-a[ ])?/etc/cron)",
)
"""Programs that fetch and run in one, and what connects a shell with another machine."""
_INLINE: Final = regex(r"\b(?:python[\d.]{0,5}|node|deno|bun|perl|ruby|php|lua|rscript|julia|elixir|emacs)(?=[ ]-)")
"""Programs that may be given code as an argument."""
_IS_CODE: Final = regex(r"[ ]-{1,2}(?:\w{0,8}[cer]|eval|run|print)\b")
_ADDRESS: Final = regex(r"https?://|urlopen|\bsocket|file_get_contents|\bget\b")
_EXECUTES: Final = regex(
    r"\b(?:exec|eval|system|spawn\w{0,6}|popen|subprocess|function|loadstring|compile|run_string)\b"
)
_LOADS: Final = regex(
    r"\b(?:source|load|include|import|install_url|install_github|eval_string)\b[^\n]{0,80}https?://(?!localhost|127\.)"
)
"""Code that runs what an address holds."""
_SEPARATE: Final = regex(r"[|;\n]|&&")
_OPENS: Final = regex(r"<\(|\$\(|`|\(")
_REACH: Final = 400
"""How far apart the two may stand."""
_MOST: Final = 20_000


def fetches_and_runs(text: str) -> bool:
    """Say whether a text holds a command that runs what it fetches from elsewhere; such commands are never kept."""
    return _is_fetch_and_run(text[:_MOST])


_ELSEWHERE: Final = regex(
    r"(?i)\b(?:https?|ftps?|ssh|git|s3|gs|oci)://"
    r"(?!localhost\b|127\.|0\.0\.0\.0|\[::1\]|10\.|192\.168\.|host\.docker\.internal|[\w\-]{1,40}(?:[:/\s\"']|\Z))"
    r"|\b(?:git\+|ext::|(?:s3|gs)://)|\bgit@|(?<![\w/:])//[\w\-]{1,40}\.\w|\\\\[\w.\-]{1,60}\\"
)
"""An address of another machine; names without a dot are of the same network."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_PASSES_ON: Final = _words(
    "curl wget http https xh jq yq head tail grep egrep fgrep rg cat echo printf cd ls pwd find mkdir sort uniq wc cut"
    " tr sed awk column test [ true false sleep date ping dig nslookup host git gh aws gsutil docker podman python3"
    " python"
)
"""Programs that may have such an address, or stand beside one that has: they show, send or keep what they get."""
_SUBCOMMANDS: Final = {
    "git": _words("clone fetch pull push remote ls-remote status log switch checkout commit add tag diff show branch"),
    "gh": _words("pr issue api repo run release auth search browse"),
    **dict.fromkeys(("docker", "podman"), _words("pull push login tag images inspect search")),
}
_BARRED: Final = {
    "curl": regex(r"-(?!-)[A-Za-z]*[oOKJ]|--(?:output|remote|config)"),
    "git": regex(r"-c|--(?:upload|exec|receive|template|config)|ext::"),
    "find": regex(r"-(?:exec|ok|delete|f)"),
    **dict.fromkeys(("sed", "awk"), regex(r"-\w*[fi]|--(?:file|in-place|expression|exec)")),
}
"""Options with which one of them runs something, or writes what another may run."""
_NOTHING: Final = regex(r"(?:^|(?<=\s))(?:-[a-zA-Z]*o|--output)[ =]?(?:/dev/null|-)(?!\S)")
_TO_NOWHERE: Final = regex(r"/dev/null|&?[0-9-]")
_SHOWN: Final = regex(r"(?:^|\s)(?:-\w*O ?-|--output-document=-|--spider)")
_LEADS: Final = regex(
    r"(?i)(?!(?:https?|all|no|ftp)_proxy\b)"
    r"\w{0,80}?(?:index|registry|proxy|mirror|options|source|channel|links|repos|env|startup|command|preload)"
)
"""Variables that tell programs where to get what they run; the proxy of a network only passes on what is asked for."""


@lru_cache(maxsize=1024)
def may_run_fetched(command: str) -> bool:
    """Say whether a command runs, or may run, what comes from elsewhere: nobody is told to run such a command again.

    What is known to fetch and run is one part. The other is told from what is known to do no harm: a command with an
    address of another machine must consist of programs that only show, send or keep what they get.
    """
    if fetches_and_runs(command):
        return True
    text = command[:_MOST]
    if _ELSEWHERE.search(text) is None:
        return False
    segments = shell.segments(_NOTHING.sub("", text))
    return any(map(_reaches_out, segments)) and not all(map(_passes_on, segments))


def _reaches_out(segment: shell.CommandSegment) -> bool:
    """Say whether a simple command has an address of another machine; one that a variable holds is only told to it."""
    words = segment.texts
    while words and shell.is_assignment(words[0]) and not (_LEADS.match(words[0]) or _OPENS.search(words[0])):
        words.pop(0)
    return any(map(_ELSEWHERE.search, (*words, *(each.target for each in segment.redirections))))


def _passes_on(segment: shell.CommandSegment) -> bool:
    """Say whether a simple command does no more with what it fetches than to show, to send or to keep it."""
    words = segment.texts
    while words and shell.is_assignment(words[0]):
        name, _, value = words.pop(0).partition("=")
        if _LEADS.match(name) and _ELSEWHERE.search(value):
            return False
    if any(
        each.operator in (">", ">>", "&>", ">|") and not _TO_NOWHERE.match(each.target) for each in segment.redirections
    ):
        return False
    if not words or any(each.target[:2] in ("<(", ">(") for each in segment.redirections):
        return not words
    program = words[0].rpartition("/")[2].removesuffix(".exe")
    if program not in _PASSES_ON or "(" in "".join(word for word in words if word[:2] in ("<(", ">(")):
        return False
    if program.startswith("python"):
        return words[1:3] == ["-m", "json.tool"]
    if program == "wget" and not _SHOWN.search(" ".join(words)):
        return False
    known = _SUBCOMMANDS.get(program)
    if known is not None and (len(words) < 2 or words[1] not in known or words[1:3] == ["clone", "-u"]):
        return False
    barred = _BARRED.get(program)
    return barred is None or not any(map(barred.match, words[1:]))


@lru_cache(maxsize=1024)
def _is_fetch_and_run(text: str) -> bool:
    """Say it of a text that is short enough; several readers ask about the same command."""
    looked = _BLANKS.sub(" ", text.lower())
    bare = _HIDING.sub("", looked)
    return _runs_fetched(looked) or (bare != looked and _runs_fetched(bare))


def _runs_fetched(looked: str) -> bool:
    if _REMOTE.search(looked) or _is_piped_into_shell(looked):
        return True
    for found in _INLINE.finditer(looked):
        code = looked[found.end() : found.end() + _REACH].partition("\n")[0]
        is_run = _LOADS.search(code) or (_ADDRESS.search(code) and _EXECUTES.search(code))
        if is_run and _IS_CODE.search(code):
            return True
    fetches = [found.span() for found in _FETCHES.finditer(looked)]
    runs = [found.span() for found in _RUNS.finditer(looked)] if fetches else []
    for start, end in fetches:
        for first, last in runs:
            if end <= first <= end + _REACH and _SEPARATE.search(looked, end - 1, max(first, end) + 1):
                return True
            if last <= start <= last + _REACH and _OPENS.search(looked, last, start):
                return True
    return False


def _is_piped_into_shell(text: str) -> bool:
    """Say whether something runs whatever is piped into it: `| sudo -E bash`, `| python3 -`."""
    for before, part in pairwise(text.split("|")):
        words = part[:_REACH].partition("\n")[0].lstrip("& ").split()
        while words and (words[0] in _CARRIERS or words[0].startswith("-") or "=" in words[0]):
            words.pop(0)
        if not words:
            continue
        program = words[0].rstrip(_ENDS).rpartition("/")[2]
        if not before[-1:].isspace() and part[:1].isalpha() and words[0].rstrip(";&") != words[0].rstrip(_ENDS):
            continue  # one of several words in an expression: `(sh|bash)`
        if (words[1:2] == ["-c"] and len(words) > 2) or _PROGRAM.fullmatch(before):
            continue  # the code is another, or what a program prints that is told nothing
        is_alone = len(words) == 1 or words[0][-1] in _ENDS or words[1] == "-" or words[1][0] in _ENDS
        if program in _SHELLS or (is_alone and _INTERPRETER.match(program)):
            return True
    return False


def is_injection(text: str) -> bool:
    """Say whether a text tries to steer its reader, or holds a command that runs what it fetches."""
    return bool(_INJECTION.search(text)) or fetches_and_runs(text)
