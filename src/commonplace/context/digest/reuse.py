"""The chance that a name is used again: from where, how often and how long ago it occurred.

A logistic model over a few sums, fitted on real coding sessions; the weights are data.
Sums fade with the steps that have passed, over three lengths of memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from commonplace.context.digest.names import Kind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from commonplace.context.digest.tally import Tally

FADES: Final = (3.0, 12.0, 50.0)
_BIAS: Final = -2.57
"""The intercept of the fitted model; the constants below are its weights."""
# For each channel: the sums that fade over 3, 12 and 50 steps, and the one that does not.
_CHANNELS: Final = (
    (-1.35, 1.89, -0.45, 0.05),  # the person
    (0.53, 0.85, 0.51, -0.07),  # the model
    (0.62, 0.11, 0.89, -0.37),  # calls
    (0.27, -0.23, 1.42, -1.30),  # results
)
_EDITED: Final = -0.60
_LAST_USER: Final = 1.72
_LAST_ANSWERS: Final = -0.02
_PLANNED: Final = 0.53
_SPREAD: Final = 1.45
_AGE: Final = -0.24
_LENGTH: Final = -0.38
_CALL_AND_RESULT: Final = 0.89
_USER_AND_ASSISTANT: Final = -0.26
_RECENT: Final = 25.0
"""Over how many steps occurrences fade."""
_KINDS: Final = {
    Kind.PATH: 0.07, Kind.SYMBOL: 0.15, Kind.TEST: 0.21, Kind.GIT: -0.46, Kind.COMMAND: 1.06, Kind.FLAG: 0.71,
    Kind.NUMBER: -1.11, Kind.URL: -2.02, Kind.ERROR: -0.16, Kind.MESSAGE: -1.0,
}  # fmt: skip


def chances(tally: Tally) -> NDArray[np.float64]:
    """Return, for each name of a session, the chance that it is used again."""
    count = len(tally.names.known)
    if not count:
        return np.zeros(0)
    ids = np.frombuffer(tally.ids, np.uint32) if tally.ids else np.zeros(0, np.uint32)
    steps = np.frombuffer(tally.steps, np.uint32) if tally.steps else np.zeros(0, np.uint32)
    channels = np.frombuffer(tally.channels, np.uint8) if tally.channels else np.zeros(0, np.uint8)
    often = np.frombuffer(tally.often, np.uint8).astype(np.float64) if tally.often else np.zeros(0)
    age = tally.step - steps.astype(np.float64)
    score = np.full(count, _BIAS)
    seen: list[NDArray[np.bool_]] = []
    for channel, weights in enumerate(_CHANNELS):
        own = channels == channel
        seen.append(np.bincount(ids[own], minlength=count) > 0)
        for fade, weight in zip((*FADES, None), weights, strict=True):
            values = often[own] if fade is None else often[own] * np.exp(-age[own] / fade)
            score += weight * np.log1p(np.bincount(ids[own], values, count))
    score += _CALL_AND_RESULT * (seen[2] & seen[3]) + _USER_AND_ASSISTANT * (seen[0] & seen[1])
    score += _EDITED * _faded(tally.edited.tolist(), tally.step, count)
    score += _SPREAD * np.log1p(_distinct(ids, steps, count))
    first = np.full(count, float(tally.step))
    np.minimum.at(first, ids, steps.astype(np.float64))
    score += _AGE * np.log1p(tally.step - first)
    for number, name in enumerate(tally.names.known):
        score[number] += _KINDS[name.kind] + _LENGTH * np.log(len(name.text) + 1.0)
    for number in tally.last_user:
        score[number] += _LAST_USER
    for number in _in_answers(tally):
        score[number] += _LAST_ANSWERS
    for number in _planned(tally):
        score[number] += _PLANNED
    occurs = np.bincount(ids, minlength=count) > 0  # not what was taken back
    return occurs / (1 + np.exp(-score))


def _faded(pairs: list[int], now: int, count: int) -> NDArray[np.float64]:
    found = np.zeros(count)
    if pairs:
        ids, steps = np.array(pairs[::2]), np.array(pairs[1::2], np.float64)
        found = np.log1p(np.bincount(ids, np.exp(-(now - steps) / _RECENT), count))
    return found


def _distinct(ids: NDArray[np.uint32], steps: NDArray[np.uint32], count: int) -> NDArray[np.float64]:
    """Return in how many steps each name occurred."""
    if not len(ids):
        return np.zeros(count)
    pairs = np.unique(ids.astype(np.uint64) << np.uint64(32) | steps)
    return np.bincount((pairs >> np.uint64(32)).astype(np.int64), minlength=count).astype(np.float64)


def _in_answers(tally: Tally) -> set[int]:
    return {number for said in tally.answers for number in tally.names.count(said.text)}


def _planned(tally: Tally) -> set[int]:
    return {number for _, text in tally.plan for number in tally.names.count(text)}
