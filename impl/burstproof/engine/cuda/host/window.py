"""Mapped host memory of a single burst: the device reads its stimulus there and writes its fired list there."""

from __future__ import annotations

from typing import Any

import numpy as np

from burstproof.device.protocol import BufferSpec, DeviceRuntime
from burstproof.engine.cuda.args import Stimulus as StimulusColumns
from burstproof.engine.cuda.host.devices import FiredList
from burstproof.engine.cuda.plan.packed import Packed
from burstproof.engine.packing import PackedStimulus
from burstproof.engine.state import Stimulus

_LARGEST = 1 << 16
_READERS = 1 << 12
_TABLE = StimulusColumns._fields


class HostWindow:
    """Room for ``size`` amounts, ``size`` forced firings and a fired list of ``size`` entries.

    Attributes
    ----------
    size : int
    readers : int
        Threads that read a stimulus. More would be slower: each reads the stimulus' length over the link.
    table : dict of DeviceBuffer
        Stimulus columns, named as those of a batch set.
    given : dict
        Fields of ``args.Window``: the buffers for the fired list and for an ``answer`` of so many numbers.
    ids, potentials, answer : uint32 (size,), float32 (size,), int64
        The same memory as NumPy arrays.
    """

    def __init__(self, runtime: DeviceRuntime, packed: Packed, answer: int) -> None:
        self.size = max(1, min(packed.sizes.neurons, _LARGEST))
        self.readers = min(self.size, _READERS)
        ids, numbers = np.dtype(np.uint32), np.dtype(np.int64)
        dtypes: tuple[np.dtype[Any], ...] = (numbers, ids, np.dtype(packed.variant.accumulator), numbers, ids)
        counts = (2, self.size, self.size, 2, self.size)
        specs = [BufferSpec(*column) for column in zip(_TABLE, counts, dtypes, strict=True)]
        self.table = {spec.name: runtime.mapped(spec) for spec in specs}
        shown = {
            "window_ids": runtime.mapped(BufferSpec("window_ids", self.size, ids)),
            "window_potentials": runtime.mapped(BufferSpec("window_potentials", self.size, np.dtype(np.float32))),
            "answer": runtime.mapped(BufferSpec("answer", answer, numbers)),
        }
        self.given: dict[str, Any] = {**shown, "window": self.size}
        self.ids, self.potentials, self.answer = (buffer.array for buffer in shown.values())

    def holds(self, stimulus: Stimulus | PackedStimulus) -> bool:
        """Whether there is room for ``stimulus``."""
        return len(stimulus.ids) <= self.size and len(stimulus.forced) <= self.size

    def put(self, stimulus: PackedStimulus) -> None:
        """Write ``stimulus``, which must fit, for the device to read."""
        offsets, ids, amounts, forced_offsets, forced = (self.table[name].array for name in _TABLE)
        offsets[1], forced_offsets[1] = len(stimulus.ids), len(stimulus.forced)
        ids[: len(stimulus.ids)] = stimulus.ids
        amounts[: len(stimulus.ids)] = stimulus.amounts
        forced[: len(stimulus.forced)] = stimulus.forced

    def fired(self, count: int) -> FiredList:
        """A copy of the first ``count`` entries of the fired list, in the device's order."""
        return self.ids[:count].copy(), self.potentials[:count].copy()
