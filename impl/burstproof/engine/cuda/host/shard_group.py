"""The shards of one device: one stream, and one graph per kind of batch; all shards publish before any waits."""

from __future__ import annotations

from burstproof.device.protocol import DeviceGraph, DeviceRuntime, DeviceStream
from burstproof.engine.cuda.exchange.devices import make_current
from burstproof.engine.cuda.host.batch import Streams
from burstproof.engine.cuda.host.launches import Call
from burstproof.engine.cuda.host.shard import DeviceShard
from burstproof.engine.cuda.kernels.control import COUNTS, LISTS
from burstproof.engine.cuda.plan.buffers import SETS


class DeviceGroup:
    """The shards that share a device.

    A burst is queued in two halves: first the dynamics of all shards, which publish their lists, then the kernels of
    all shards that wait for lists. So no kernel waits for one that is queued behind it.
    """

    def __init__(self, runtime: DeviceRuntime, streams: Streams, use_graphs: bool) -> None:
        self.runtime, self.streams = runtime, streams
        self.shards: list[DeviceShard] = []
        self.graphs = use_graphs and runtime.graphs
        self._graphs: dict[tuple[int, int, bool, bool], DeviceGraph] = {}
        make_current(runtime)
        self._uploaded = [runtime.event() for _ in range(SETS)]
        self._finished = [runtime.event() for _ in range(SETS)]

    def warm(self) -> None:
        """Launch every kernel once, in a batch of 0 bursts: kernels must not be loaded during a capture."""
        make_current(self.runtime)
        for number in range(SETS):
            self._queue(number, 1, True, True, self.streams.burst)
            self._queue(number, 1, False, True, self.streams.burst)
        self.streams.burst.synchronize()

    def forget(self, number: int) -> None:
        """Discard the graphs of a set whose launches have changed."""
        self._graphs = {key: graph for key, graph in self._graphs.items() if key[0] != number}

    def ready(self, number: int) -> None:
        """Let the bursts of set ``number`` wait for its uploads."""
        self._uploaded[number].record(self.streams.upload)
        self.streams.burst.wait(self._uploaded[number])

    def prepare(self, number: int, length: int, stimulated: bool, keep: bool) -> None:
        """Capture the batch unless it is: the host must not stop to capture while a device waits for others."""
        key = (number, length, stimulated, keep)
        if key not in self._graphs:
            make_current(self.runtime)
            self._graphs[key] = self.runtime.capture(lambda stream: self._queue(*key, stream))

    def run(self, number: int, length: int, stimulated: bool, keep: bool) -> None:
        """Queue the captured batch, then the download of its reports."""
        make_current(self.runtime)
        self._graphs[number, length, stimulated, keep].launch(self.streams.burst)
        self.finish(number)

    def burst(self, number: int, place: int, stimulated: bool, keep: bool) -> None:
        """Queue one burst of a batch without a graph."""
        make_current(self.runtime)
        self._burst(number, place, stimulated, keep, self.streams.burst)

    def finish(self, number: int) -> None:
        """Queue the download of a batch's reports after its bursts; the device must be current."""
        for shard in self.shards:
            shard.download(number)
        self._finished[number].record(self.streams.burst)

    def wait(self, number: int) -> None:
        """Block the host until a batch is over."""
        self._finished[number].synchronize()

    def census(self, number: int, stimulated: bool) -> bool:
        """Queue the phases before the dynamics; ``True`` if candidates are counted ahead."""
        stimulus, count_ahead, *_ = self._phases(number, stimulated)
        self._launch(stimulus + count_ahead)
        return bool(count_ahead)

    def dynamics(self, number: int, stimulated: bool) -> None:
        """Queue the dynamics of one burst."""
        self._launch(self._phases(number, stimulated)[2])

    def deliver(self, number: int) -> None:
        """Queue the delivery of one burst."""
        self._launch(self._phases(number, False)[3])

    def _launch(self, calls: list[Call]) -> None:
        make_current(self.runtime)
        for call in calls:
            call.queue(self.streams.burst)

    def _queue(self, number: int, length: int, stimulated: bool, keep: bool, stream: DeviceStream) -> None:
        """Queue ``length`` bursts; capturable, since it neither allocates nor synchronises."""
        for place in range(length):
            self._burst(number, place, stimulated, keep, stream)

    def _burst(self, number: int, place: int, stimulated: bool, keep: bool, stream: DeviceStream) -> None:
        for phase in self._phases(number, stimulated, LISTS if keep else COUNTS, place):
            for call in phase:
                call.queue(stream)

    def _phases(self, number: int, stimulated: bool, mode: int = COUNTS, place: int = 0) -> list[list[Call]]:
        """The launches of all shards, phase by phase."""
        shards = [shard.calls[number].phases(stimulated, mode, place) for shard in self.shards]
        return [[call for calls in phase for call in calls] for phase in zip(*shards, strict=True)]

    def release(self) -> None:
        """Wait for the device, then free its memory."""
        make_current(self.runtime)
        self.runtime.close()
        self._graphs.clear()
        for shard in self.shards:
            shard.release()
        self.shards = []
