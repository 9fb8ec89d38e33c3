"""One burst at a time of a network on one device, in several kernels: stimulus and list lie in host memory.

So a burst is one graph and one wait; a batch would upload its head and its stimulus, and download report and list.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from burstproof.device.protocol import BufferSpec, DeviceBuffer, DeviceGraph, DeviceRuntime, DeviceStream
from burstproof.engine.cuda.args import Stimulus as StimulusColumns
from burstproof.engine.cuda.host.devices import Behind, FiredList
from burstproof.engine.cuda.host.launches import BurstCalls, Kernels, Values
from burstproof.engine.cuda.plan.packed import Packed
from burstproof.engine.state import Stimulus
from burstproof.engine.stimulus import PackedStimulus

_LARGEST_WINDOW = 1 << 16
_BLOCK, _BLOCKS = 256, 8
_TABLE = StimulusColumns._fields

MakeCalls = Callable[[dict[str, DeviceBuffer], int], BurstCalls]
"""The calls of a burst with these buffers of stimulus, with room for so many ids."""


class SingleBurst:
    """Runs single bursts on one set of batch buffers, ``number``, of which ``values`` knows the rest."""

    def __init__(self, runtime: DeviceRuntime, packed: Packed, number: int, values: Values, make: MakeCalls) -> None:
        from burstproof.engine.cuda.kernels.single import single_kernels

        self.window = max(1, min(packed.sizes.neurons, _LARGEST_WINDOW))
        self._runtime, self._graphs = runtime, packed.options.cuda.graphs and runtime.graphs
        ids, numbers = np.dtype(np.uint32), np.dtype(np.int64)
        dtypes: tuple[np.dtype[Any], ...] = (numbers, ids, np.dtype(packed.variant.accumulator), numbers, ids)
        counts = (2, self.window, self.window, 2, self.window)
        specs = [BufferSpec(*column) for column in zip(_TABLE, counts, dtypes, strict=True)]
        self._table = {spec.name: runtime.mapped(spec) for spec in specs}
        self._shown = {
            "window_ids": runtime.mapped(BufferSpec("window_ids", self.window, ids)),
            "window_potentials": runtime.mapped(BufferSpec("window_potentials", self.window, np.dtype(np.float32))),
            "answer": runtime.mapped(BufferSpec("answer", 2, numbers)),
        }
        kernels = Kernels(runtime, None, single_kernels())
        values = values.but(**self._shown, window=self.window)
        self._open = kernels.call("open_single", 1, 1, values)
        self._show = kernels.call("show_list", _BLOCKS, _BLOCK, values)
        self._calls = make({f"{name}.{number}": buffer for name, buffer in self._table.items()}, self.window)
        self._captured: dict[bool, DeviceGraph | None] = {}

    def holds(self, stimulus: Stimulus | PackedStimulus) -> bool:
        """Whether ``step`` can take it."""
        return max(len(stimulus.ids), len(stimulus.forced)) <= self.window

    def step(
        self, stimulus: PackedStimulus | None, stream: DeviceStream, behind: Behind | None
    ) -> tuple[FiredList | None, int, int]:
        """Run one burst: its list, ids ascending, or ``None`` if it is too long; its length; and its candidates."""
        if stimulus is not None:
            offsets, ids, amounts, forced_offsets, forced = (self._table[name].array for name in _TABLE)
            offsets[1], forced_offsets[1] = len(stimulus.ids), len(stimulus.forced)
            ids[: len(stimulus.ids)] = stimulus.ids
            amounts[: len(stimulus.ids)] = stimulus.amounts
            forced[: len(stimulus.forced)] = stimulus.forced
        self._run(stimulus is not None, stream)
        if behind is not None:
            behind()
        stream.synchronize()
        count, candidates = self._shown["answer"].array.tolist()
        if count > self.window:
            return None, count, candidates
        ids = self._shown["window_ids"].array[:count]
        order = np.argsort(ids)
        return (ids[order], self._shown["window_potentials"].array[:count][order]), count, candidates

    def _run(self, stimulated: bool, stream: DeviceStream) -> None:
        """The first burst of a kind loads its kernels; later ones are replayed."""
        graph = self._captured.get(stimulated)
        if graph is None and stimulated in self._captured and self._graphs:
            graph = self._captured[stimulated] = self._runtime.capture(lambda stream: self._queue(stimulated, stream))
        if graph is not None:
            graph.launch(stream)
            return
        self._queue(stimulated, stream)
        self._captured[stimulated] = None

    def _queue(self, stimulated: bool, stream: DeviceStream) -> None:
        calls = self._calls
        assert calls.dynamics is not None
        self._open.queue(stream)
        if stimulated:
            calls.stimulate.queue(stream)
        if calls.count_ahead is not None:
            calls.count_ahead.queue(stream)
        calls.dynamics[int(stimulated)].queue(stream)
        for call in calls.delivery:
            call.queue(stream)
        self._show.queue(stream)
