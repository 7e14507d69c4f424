"""The conversation that the README shows: a real `commonplace chat` in a terminal, its model scripted."""

from __future__ import annotations

import re
from pathlib import Path

from anchors.scripted_responses import ScriptedResponses, answer, call, custom_call, reply
from exec_driver import make_place
from terminal import CTRL_D, Terminal

MODEL = "openai:gpt-5.4"
PATCH = """*** Begin Patch
*** Update File: greet.sh
@@
-echo "hey $1"
+echo "Good morning, $1."
*** End Patch"""
ANSWER = "The greeting is polite now:\n\n- `greet.sh` says *Good morning*; callers need no change\n"


def recorded(root: Path) -> str:
    """Have the conversation in a folder; return the screen at its end, without what differs from run to run."""
    run = {"cmd": "sh greet.sh Ines", "escalate": True, "justification": "to see what it says"}
    script = [answer(custom_call("apply_patch", PATCH, "c1")), answer(call("exec_command", run, "c2")), reply(ANSWER)]
    with ScriptedResponses(script) as server:
        place = make_place(root, server.base_url, model=MODEL, settings={"sandbox": "workspace-write"})
        (place.cwd / "greet.sh").write_text('echo "hey $1"\n')
        address = f'providers.openai.base_url="{server.base_url}"'
        with Terminal(place, "chat", "-c", address, columns=300, more={"OPENAI_API_KEY": "scripted"}) as terminal:
            terminal.ready()
            terminal.say("make the greeting polite, then run it for Ines")
            terminal.wait("answer ›")
            terminal.say("y")
            terminal.wait("no change")
            terminal.ready()
            terminal.say("/undo")
            terminal.wait("went back")
            terminal.ready()
            terminal.type(CTRL_D)
            assert terminal.end() == 0
    shown = re.sub(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "01a1df14-…", terminal.text)
    return "$ commonplace chat\n" + shown.replace(str(place.cwd), "~/shop")
