"""Any mixture of recording, barriers and failing writes ends in the file that an undisturbed recorder writes."""

from __future__ import annotations

import errno
import os
from functools import partial
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recording import Disk, create, say, session_file

from commonplace.errors import WriteFailed
from commonplace.rollout.recorder import Recorder

Step = tuple[str, int]

faults = st.one_of(
    st.sampled_from([errno.ENOSPC, errno.EIO]).map(lambda number: OSError(number, os.strerror(number))),
    st.integers(0, 3000),
    st.tuples(st.integers(0, 3000), st.sampled_from([errno.ENOSPC, errno.EIO])),
)
steps: st.SearchStrategy[list[Step]] = st.lists(
    st.one_of(
        st.tuples(st.just("say"), st.sampled_from([1, 20, 400, 3000])),
        st.tuples(st.just("barrier"), st.integers(0, 3)),
        st.tuples(st.just("vanish"), st.just(0)),
    ),
    max_size=15,
)


async def barrier(recorder: Recorder, which: int) -> bool:
    """Pass a barrier; say whether it was passed."""
    try:
        await (recorder.flush, recorder.end_turn, recorder.persist, recorder.flush)[which]()
    except WriteFailed:
        return False
    return True


async def run(home: Path, plan: list[Step], script: list[int | tuple[int, int] | OSError]) -> bytes:
    disk = Disk(*script)
    recorder = await create(home, write=disk, fsync="never", blob_bytes=1024)
    for place, (kind, size) in enumerate(plan):
        if kind == "say":
            say(recorder, f"{place} " + "x" * size)
        elif kind == "vanish":
            session_file(home).unlink(missing_ok=True)
        elif await barrier(recorder, size) and session_file(home).exists():
            expected = sum(kind == "say" for kind, _ in plan[: place + 1])
            assert expected == session_file(home).read_bytes().count(b"\n") - 1, (
                "a barrier that returned told the truth"
            )
    say(recorder, "the end")
    disk.script.clear()
    await recorder.close()
    return session_file(home).read_bytes()


@given(plan=steps, script=st.lists(faults, max_size=12))
def test_any_order_of_things_ends_in_the_same_bytes(
    tmp_path_factory: pytest.TempPathFactory, plan: list[Step], script: list[int | tuple[int, int] | OSError]
) -> None:
    place = tmp_path_factory.mktemp("any")
    disturbed = anyio.run(partial(run, place / "disturbed", plan, script))
    calm = [step for step in plan if step[0] == "say"]

    assert disturbed.count(b"\n") == len(calm) + 2
    assert disturbed == anyio.run(
        partial(run, place / "calm", [step if step[0] == "say" else ("barrier", 3) for step in plan], [])
    )
