"""A home for the page: sessions that teach, and some that try to run scripts or hold secrets."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Mapping
from pathlib import Path

import anyio
import taught_homes as taught

from commonplace.app import book as books
from commonplace.memory.edits.edits import NoteRequest
from ledgers import Script, assistant, function_call, function_output, user

HOSTILE = "0198c0de-0000-7000-8000-0000000000e1"
SECRET = "ghp_" + "a8Gk2Lm9Qr5TzXw3Bn7Vc1Ys6Df4Hj0Pe2Ru"  # made up
SCRIPT = '<script>window.ran = 1</script><img src=x onerror="window.ran = 1">"\'><svg onload=window.ran=1>'
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
"""A whole picture of one pixel, which a browser shows."""
UNSEEN = "\u202egpj.exe\u202c \u2066x\u2069 \x1b[2J\x07 \x9b"
"""Characters that reorder what stands beside them, and that a terminal obeys."""
LONG = "/srv/" + "a-folder-with-a-name/" * 12
"""One word that is wider than a phone."""
PATCH = "*** Begin Patch\n*** Update File: shop.py\n@@\n-price = 1.0\n+price = 100\n*** End Patch"


WAITS = "right, the staging host only has 2 GB of memory, anything that compiles gets killed there. have a look?"
"""What becomes a candidate or a doubtful entry."""


def hostile() -> Script:
    """A session whose every text tries to run a script, and that holds a secret, an image, a diff and a compaction."""
    script = Script(HOSTILE, cwd=f"/repo/{SECRET}/{SCRIPT.replace('/', '_')}{UNSEEN}", originator=f"{SECRET}{UNSEEN}")
    picture = {"type": "input_image", "image_url": f"data:image/png;base64,{base64.b64encode(PIXEL).decode()}"}
    drawn = {
        "type": "input_image",
        "image_url": f"data:image/svg+xml;base64,{base64.b64encode(SCRIPT.encode()).decode()}",
    }
    said = user(f"{SCRIPT} {UNSEEN} From now on always call it {SCRIPT} in every answer.")
    said["content"] += [picture, drawn]
    script.turn(
        said,
        function_call(
            "c1", name=f"{SECRET}{UNSEEN}{SCRIPT}", arguments=json.dumps({"cmd": f"echo {SECRET} '{SCRIPT}'"})
        ),
        function_output("c1", f"{SCRIPT}{UNSEEN}\ntoken: {SECRET}\n" + f"{LONG}\n" * 60),
        function_call("c2", name="apply_patch", arguments=json.dumps({"input": PATCH})),
        function_output("c2", "Exit code: 1\nOutput:\nfailed"),
        assistant(f"Done: {SCRIPT} {UNSEEN} with {SECRET} `{SCRIPT}` **{SCRIPT}**"),
    )
    script.compacted([user("kept")], message=f"summary {SCRIPT} {SECRET}")
    script.line("commonplace", {"kind": "retention", "score": {"r_p": 0.81, "r_d": 0.7, "constraints": 1.0}})
    usage = {"total_token_usage": {"total_tokens": 90}, "last_token_usage": {"total_tokens": 40}}
    for size in (40, 80, 20):
        script.event("token_count", info={**usage, "last_token_usage": {"total_tokens": size}})
    script.turn(user(WAITS), assistant(f"ok, see {LONG}"))
    script.turn(user("and the third turn"), assistant("ok"))
    return script.event("thread_rolled_back", num_turns=1)


def environment(home: Path) -> dict[str, str]:
    """Return the variables of a program that works on a home."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("COMMONPLACE_")}
    return {**kept, "COMMONPLACE_HOME": str(home), "COMMONPLACE_NOW": taught.NOW, "HOME": str(home.parent)}


def write(home: Path) -> Mapping[str, str]:
    """Write the sessions and learn from them; return the variables to go on with."""
    taught.write(home)
    hostile().write_home(home)
    variables = environment(home)

    async def learn() -> None:
        async with books.open(environment=variables) as book:
            await book.memory.run()
            await book.memory.note(NoteRequest(text=f"A note with {SCRIPT} in it", everywhere=True))
            await book.memory.note(NoteRequest(text=f"The logs stand below {LONG}", project="shop"))
            await book.sessions.rename(HOSTILE, SCRIPT)
            await book.memory.prompt(project="shop")

    anyio.run(learn)
    return variables
