"""What the context promises, measured: one more item costs what that item costs, however long the history is.

A history is made of turns as coding agents have them: a question, reasoning, calls with outputs of some kilobytes, an
answer. Times of a process, not of the wall, because other programs run beside.
"""

from __future__ import annotations

import gc
import json
import random
import statistics
import time
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final

from bench.ledger import Table
from commonplace.context.history import History
from commonplace.context.modalities import ALL
from commonplace.context.usage import TokenUsage

SIZES: Final = (1_000, 10_000, 40_000)
APPENDS: Final = 200
PROMISED_MS: Final = 10


def run_all() -> list[Table]:
    """Run every measurement."""
    return [one_more(), whole()]


def told(count: int, seed: int = 1) -> Iterator[bytes]:
    """Yield the items of a long session, as they stand in its file."""
    draw = random.Random(seed)
    words = [
        "def",
        "return",
        "import",
        "path",
        "error",
        "test",
        "value",
        "the",
        "file",
        "in",
        '"name":',
        "\\n",
        "größer",
    ]

    def text(size: int) -> str:
        return " ".join(draw.choices(words, k=size))

    for number in range(count):
        place = number % 10
        item: dict[str, Any]
        if place == 0:
            item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text(60)}]}
        elif place == 1:
            item = {"type": "reasoning", "summary": [], "content": None, "encrypted_content": "gA" * 900}
        elif place == 9:
            item = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text(80)}]}
        elif place % 2 == 0:
            arguments = json.dumps({"cmd": text(8)})
            item = {"type": "function_call", "name": "exec_command", "arguments": arguments, "call_id": f"c{number}"}
        else:
            item = {"type": "function_call_output", "call_id": f"c{number - 1}", "output": text(draw.choice((40, 700)))}
        noted = {"turn_id": f"t{number // 10}", "create_time": 1787216405.12}
        item |= {"id": f"item_{number}", "internal_chat_message_metadata_passthrough": noted}
        yield json.dumps(item, separators=(",", ":"), ensure_ascii=False).encode()


def _filled(items: list[bytes]) -> History:
    history = History()
    for raw in items:
        history.record(raw)
    return history


def one_more() -> Table:
    """Append one item, count tokens, make the prompt: again and again at the end of a history."""
    header = ("items before", "MB", "median", "slowest", "tokens alone", "prompt alone")
    table = Table(f"One more item: record, count, prompt (promised: {PROMISED_MS} ms at 10,000 items)", header)
    for size in SIZES:
        items = list(told(size + APPENDS))
        history = _filled(items[:size])
        history.record_usage(TokenUsage(total_tokens=100_000))
        history.used()
        history.for_prompt()
        gc.collect()
        spent: list[tuple[float, float, float]] = []
        for raw in items[size:]:
            begun = time.process_time()
            history.record(raw)
            recorded = time.process_time()
            history.used()
            history.estimate()
            counted = time.process_time()
            history.for_prompt()
            ended = time.process_time()
            spent.append((ended - begun, counted - recorded, ended - counted))
        total, tokens, prompt = zip(*spent, strict=True)
        middle = [f"{statistics.median(times) * 1000:.2f} ms" for times in (total, tokens, prompt)]
        megabytes = f"{sum(map(len, items)) / 1e6:.0f}"
        table.add(f"{size:,}", megabytes, middle[0], f"{max(total) * 1000:.2f} ms", *middle[1:])
    return table


def whole() -> Table:
    """Do everything to a history for the first time; a ratio near that of the sizes says that the cost is linear."""
    header = ("items", "MB", "record", "count tokens", "prompt", "prompt of a model without media", "µs an item, all")
    table = Table("A whole history, cold", header)
    for size in SIZES:
        items = list(told(size))
        times = [time.process_time()]
        history = _filled(items)
        times.append(time.process_time())
        history.used()
        times.append(time.process_time())
        history.for_prompt(ALL)
        times.append(time.process_time())
        history.for_prompt(frozenset({"text"}))
        times.append(time.process_time())
        steps = [f"{(after - before) * 1000:.0f} ms" for before, after in pairwise(times)]
        each = (times[-1] - times[0]) / size * 1e6
        table.add(f"{size:,}", f"{sum(map(len, items)) / 1e6:.0f}", *steps, f"{each:.0f}")
    return table
