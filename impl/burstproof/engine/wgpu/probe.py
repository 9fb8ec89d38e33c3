"""Whether an adapter's float32 is the one that the rules need: the rules run on a table of cases, before any network.

WGSL lets an adapter flush subnormals to zero, ignore infinities and NaN, and round conversions as it likes. The rules
do without the adapter where a subnormal counts, and need the rest; so every adapter shows on the very functions of the
burst what comes out.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from burstproof.engine.reference import draw
from burstproof.engine.wgpu.probe_cases import Words, probe_cases
from burstproof.errors import BackendUnavailableError

RunProbe = Callable[[Words], Words]
"""Takes the cases, (C, 6) uint32, and returns the adapter's answers, (C, 10) uint32."""

ANSWERS = (
    "the sum added to a potential",
    "the sum added to a potential, negative ones as 0",
    "a potential times the leak factor",
    "a potential compared with a threshold",
    "a potential compared with a limit",
    "the excitability draw",
    "the excitability test",
    "a 64-bit sum converted",
    "a product added to a number",
    "the strength of a signal",
)

_CASE = ("potential", "sum", "unit", "leak factor", "threshold", "excitability")


@dataclass(frozen=True, eq=False)
class Probe:
    """``cases`` (C, 6) uint32 and the ``expected`` answers, (C, 10) uint32, as NumPy gives them."""

    cases: Words
    expected: Words


@cache
def make_probe() -> Probe:
    """The cases of ``probe_cases``; always the same."""
    cases = probe_cases()
    return Probe(cases, expected_answers(cases))


def expected_answers(cases: Words) -> Words:
    """NumPy's answers to ``cases``, (C, 6) uint32: (C, 10) uint32."""
    v, units, decay, threshold, excitability = (
        np.ascontiguousarray(cases[:, c]).view(np.float32) for c in (0, 2, 3, 4, 5)
    )
    sums = np.ascontiguousarray(cases[:, 1]).view(np.int32)
    with np.errstate(all="ignore"):
        x = sums.astype(np.float32) * units
        added, floored = v + x, v + np.where(x < 0, np.float32(0), x)
        lost = v * decay
        moved = lost + threshold
        share = v / np.abs(threshold)
    draws = _draws(cases[:, 0], cases[:, 1])
    passes = (excitability >= np.float32(0.999)) | ((excitability > 0) & (draws < excitability))
    wide = (sums.astype(np.int64) << 32 | cases[:, 0]).astype(np.float32)
    strengths = np.where((threshold != 0) & (share < 1), share, np.float32(1))
    answers = added, floored, lost, v >= threshold, v > threshold, draws, passes, wide, moved, strengths
    words = [column.view(np.uint32) if column.dtype == np.float32 else column for column in answers]
    return np.stack(words, axis=1).astype(np.uint32)


def _draws(neurons: Words, bursts: Words) -> npt.NDArray[np.float32]:
    draws = np.empty(len(neurons), np.float32)
    order = np.argsort(bursts, kind="stable")
    found, first = np.unique(bursts[order], return_index=True)
    for burst, places in zip(found, np.split(order, first[1:]), strict=True):
        draws[places] = draw(neurons[places], int(burst))
    return draws


def wrong_answers(answers: Words, expected: Words) -> npt.NDArray[np.bool_]:
    """Which words of (C, 10) uint32 are others than ``expected``; any NaN equals any other."""
    wrong: npt.NDArray[np.bool_] = (answers != expected) & ~(_nan(answers) & _nan(expected))
    return wrong


def check_adapter(name: str, run: RunProbe) -> None:
    """Refuse an adapter whose float32 is another one.

    Raises
    ------
    BackendUnavailableError
        An answer differs in a bit from NumPy's (any NaN equals any other).
    """
    probe = make_probe()
    answers = run(probe.cases)
    wrong = wrong_answers(answers, probe.expected)
    if wrong.any():
        case, column = (int(place) for place in np.argwhere(wrong)[0])
        raise BackendUnavailableError(
            f"the float32 of this adapter is not exact: {ANSWERS[column]} is wrong in {int(wrong[:, column].sum())} of "
            f"{len(answers)} cases of the probe, first for {_shown(probe.cases[case])}",
            where=f"WGPU adapter {name}",
            got=f"{int(answers[case, column]):#010x}",
            allowed=f"{int(probe.expected[case, column]):#010x}",
            cure="Take another adapter or driver, or --backend cpu",
        )


def _nan(words: Words) -> npt.NDArray[np.bool_]:
    """Which answers are NaN; columns that are no floats hold small numbers and never look like one."""
    found: npt.NDArray[np.bool_] = (words & np.uint32(0x7FFFFFFF)) > np.uint32(0x7F800000)
    return found


def _shown(case: Words) -> str:
    values: tuple[float, ...] = struct.unpack("<fiffff", np.ascontiguousarray(case).tobytes())
    return ", ".join(f"{name} {value!r}" for name, value in zip(_CASE, values, strict=True))
