"""Single bursts of several kernels on one device, with stimulus and fired list in mapped host memory.

Such a burst is one graph launch and one wait. A batch would also upload its head and stimulus, and download its report
and list.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from burstproof.device.protocol import DeviceBuffer, DeviceGraph, DeviceRuntime, DeviceStream
from burstproof.engine.cuda.host.devices import Behind, FiredList
from burstproof.engine.cuda.host.launches import BurstCalls, Kernels, Values
from burstproof.engine.cuda.host.window import HostWindow
from burstproof.engine.cuda.plan.packed import Packed
from burstproof.engine.packing import PackedStimulus
from burstproof.engine.state import Stimulus

_BLOCK, _BLOCKS = 256, 8

MakeCalls = Callable[[dict[str, DeviceBuffer], int], BurstCalls]
"""Makes the launches of a burst whose stimulus lies in these buffers and is read by so many threads."""


class SingleBurst:
    """Runs single bursts on batch set ``number``; other kernel arguments come from ``values``."""

    def __init__(self, runtime: DeviceRuntime, packed: Packed, number: int, values: Values, make: MakeCalls) -> None:
        from burstproof.engine.cuda.kernels.single import single_kernels

        self._window = HostWindow(runtime, packed, 2)
        self._runtime, self._graphs = runtime, packed.options.cuda.graphs and runtime.graphs
        kernels = Kernels(runtime, None, single_kernels())
        values = values.replacing(**self._window.given)
        self._open = kernels.call("open_single", 1, 1, values)
        self._show = kernels.call("show_list", _BLOCKS, _BLOCK, values)
        table = {f"{name}.{number}": buffer for name, buffer in self._window.table.items()}
        self._calls = make(table, self._window.readers)
        self._captured: dict[bool, DeviceGraph | None] = {}

    def holds(self, stimulus: Stimulus | PackedStimulus) -> bool:
        """Whether ``step`` can take ``stimulus``."""
        return self._window.holds(stimulus)

    def step(
        self, stimulus: PackedStimulus | None, stream: DeviceStream, behind: Behind | None
    ) -> tuple[FiredList | None, int, int]:
        """Run one burst; return its fired list (ids ascending; ``None`` if too long), its length and its candidates."""
        if stimulus is not None:
            self._window.put(stimulus)
        self._run(stimulus is not None, stream)
        if behind is not None:
            behind()
        stream.synchronize()
        count, candidates = self._window.answer.tolist()
        if count > self._window.size:
            return None, count, candidates
        ids = self._window.ids[:count]
        order = np.argsort(ids)
        return (ids[order], self._window.potentials[:count][order]), count, candidates

    def _run(self, stimulated: bool, stream: DeviceStream) -> None:
        """Queue a burst: the first of a kind launches and so loads its kernels, later ones replay a graph."""
        if not self._graphs or stimulated not in self._captured:
            self._queue(stimulated, stream)
            self._captured[stimulated] = None
            return
        graph = self._captured[stimulated] or self._runtime.capture(lambda stream: self._queue(stimulated, stream))
        self._captured[stimulated] = graph
        graph.launch(stream)

    def _queue(self, stimulated: bool, stream: DeviceStream) -> None:
        self._open.queue(stream)
        for phase in self._calls.phases(stimulated):
            for call in phase:
                call.queue(stream)
        self._show.queue(stream)
