"""Tell an agent what you know beside your words, and let it start another one.

A script plays the model: `python examples/sub_agents.py` needs no key and no network.
"""

import os
import re
import tempfile

import anyio

import commonplace
from commonplace import models, scripted

TASK = "How many lines has the poem?"


def act(request: models.Request) -> scripted.Answer:
    said = b"".join(request.input).decode()
    agent = re.search(r"agent_id\W+([0-9a-f-]{36})", said)
    if agent is None:
        spawn = scripted.call("spawn_agent", {"message": TASK}, "c1")
        return scripted.answer(scripted.say("It has two lines.") if TASK in said else spawn)
    if "timed_out" not in said:
        return scripted.answer(scripted.call("wait_agent", {"targets": [agent[1]]}, "c2"))
    return scripted.answer(scripted.say("The other agent says two."))


async def main() -> None:
    with tempfile.TemporaryDirectory() as home:
        # Nothing may go on learning in a home that is gone at the end.
        environment = {**os.environ, "COMMONPLACE_HOME": home, "COMMONPLACE_MEMORY_BACKGROUND": "false"}
        async with commonplace.open(environment=environment) as book:
            thread = await book.start(cwd=home, speaker=commonplace.ScriptedModel(*[act] * 4))
            end = await thread.turn(commonplace.Input("Have them counted.", context={"editor": "poem.txt is open"}))
            print(end.message if isinstance(end, commonplace.events.TurnCompleted) else end)
            print([(agent.depth, agent.status.message) for agent in thread.agents])


anyio.run(main)
