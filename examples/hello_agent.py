"""An agent without a key or a network: a scripted model runs one command and says what it found.

    python examples/hello_agent.py

With a model of your own, leave `speaker` out and say `model="openai:gpt-5.4"`.
"""

import os
import tempfile
from pathlib import Path

import anyio

import commonplace
from commonplace import events, scripted


async def main() -> None:
    model = commonplace.ScriptedModel(
        scripted.answer(scripted.call("shell", {"command": ["wc", "-l", "poem.txt"]}, "call_1")),
        scripted.answer(scripted.say("The poem has two lines.")),
    )
    with tempfile.TemporaryDirectory() as folder:
        work, home = Path(folder, "work"), Path(folder, "home")
        work.mkdir()
        (work / "poem.txt").write_text("An old silent pond…\nA frog jumps in.\n", "utf-8")
        environment = {**os.environ, "COMMONPLACE_HOME": str(home), "COMMONPLACE_MEMORY_BACKGROUND": "false"}
        async with commonplace.open(environment=environment) as book:
            thread = await book.start(cwd=work, speaker=model, sandbox="danger-full-access", approval="never")
            async for event in thread.run("How long is the poem?"):
                match event:
                    case events.ItemCompleted(item=events.CommandExecution() as ran):
                        print(f"$ {' '.join(ran.command)}\n{ran.output}", end="")
                    case events.ItemCompleted(item=events.AgentMessage() as said):
                        print(said.text)
                    case _:
                        pass


anyio.run(main)
