"""A batch of bursts: queued as one piece, run without the host, its report and fired lists fetched afterwards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.device.protocol import DeviceBuffer, DeviceGraph, DeviceRuntime, DeviceStream
from burstproof.engine.cuda.host.devices import BatchReport, FiredList
from burstproof.engine.cuda.host.launches import PhaseLaunches
from burstproof.engine.cuda.host.stimulus_table import StimulusTable
from burstproof.engine.cuda.kernels.control import INDEX, KEEP, LIMIT, REPORT_HEAD, report_length
from burstproof.engine.cuda.plan.buffers import TrainSizes, stimulus_specs
from burstproof.engine.cuda.plan.packed import Packed


@dataclass(frozen=True)
class Streams:
    """Streams for what goes up, for the bursts and for what comes down; they may be the same."""

    upload: DeviceStream
    burst: DeviceStream
    download: DeviceStream

    @classmethod
    def open(cls, runtime: DeviceRuntime, count: int) -> Streams:
        """``count`` different streams, at most the three that can overlap."""
        streams = [runtime.stream() for _ in range(max(1, min(3, count)))]
        return cls(streams[1 % len(streams)], streams[0], streams[2 % len(streams)])


class Staging:
    """Page-locked host memory that grows, one array per name."""

    def __init__(self, runtime: DeviceRuntime) -> None:
        self._runtime = runtime
        self._arrays: dict[str, npt.NDArray[Any]] = {}

    def room(self, name: str, count: int, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        """``count`` elements of the array called ``name``; what was there is lost."""
        array = self._arrays.get(name)
        if array is None or len(array) < count:
            array = self._runtime.pinned(max(count, 2 * len(array) if array is not None else 1024), dtype)
            self._arrays[name] = array
        return array[:count]

    def filled(self, name: str, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """``values`` copied into the array called ``name``."""
        room = self.room(name, len(values), values.dtype)
        room[:] = values
        return room

    def fired(
        self, count: int, own: Callable[[str], DeviceBuffer], runtime: DeviceRuntime, stream: DeviceStream
    ) -> FiredList:
        """The first ``count`` entries of a log whose buffers ``own`` finds: ids and potentials."""
        ids = self.room("fired_ids", count, np.dtype(np.uint32))
        potentials = self.room("fired_potentials", count, np.dtype(np.float32))
        runtime.download(ids, own("log_ids"), stream)
        runtime.download(potentials, own("log_potentials"), stream)
        stream.synchronize()
        return ids.copy(), potentials.copy()


def report_of(report: npt.NDArray[np.int64]) -> BatchReport:
    """What a report says that has come back from its device."""
    done = int(report[INDEX]) + 1
    counts = report[REPORT_HEAD : REPORT_HEAD + 2 * done].reshape(done, 2)
    return BatchReport(counts[None, :, 0].copy(), counts[:, 1].copy())


def table_columns(table: StimulusTable) -> dict[str, npt.NDArray[Any]]:
    """The buffers that hold ``table``, with their contents."""
    return {
        "stimulus_offsets": table.offsets,
        "stimulus_ids": table.ids,
        "stimulus_amounts": table.amounts,
        "forced_offsets": table.forced_offsets,
        "forced_ids": table.forced,
    }


class Batch:
    """One of the two sets of batch buffers, with its graphs; used for one batch at a time."""

    def __init__(
        self,
        runtime: DeviceRuntime,
        launches: PhaseLaunches,
        packed: Packed,
        buffers: dict[str, DeviceBuffer],
        number: int,
        streams: Streams,
    ) -> None:
        self._runtime = runtime
        self._launches = launches
        self._variant = packed.variant
        self._buffers = buffers
        self._number = number
        self.sizes = packed.train
        self._streams = streams
        self._use_graphs = packed.options.cuda.graphs and runtime.graphs
        self._staging = Staging(runtime)
        self._graphs: dict[tuple[int, bool], DeviceGraph] = {}
        self._calls = launches.calls(buffers, number)
        self._uploaded = runtime.event()
        self._finished = runtime.event()
        self._offsets_clear = True
        self._report = runtime.pinned(report_length(self.sizes.length), np.int64)

    def _own(self, name: str) -> DeviceBuffer:
        return self._buffers[f"{name}.{self._number}"]

    def warm(self) -> None:
        """Launch every kernel once in a batch of no bursts, so that nothing is loaded during a capture."""
        self._upload_head(0, keep=False)
        self._calls.queue(1, True, self._streams.burst)
        self._calls.queue(1, False, self._streams.burst)
        self._streams.burst.synchronize()

    def prepare_capacity(self, table: StimulusTable) -> None:
        """Grow the stimulus buffers to hold ``table``; only a single burst can be larger than they are."""
        needed = max(len(table.ids), len(table.forced))
        if needed <= self.sizes.stimulus:
            return
        self.sizes = TrainSizes(self.sizes.length, needed, self.sizes.log)
        self._streams.burst.synchronize()
        self._buffers.update(self._runtime.allocate(stimulus_specs(self._number, self._variant, self.sizes)))
        self._calls = self._launches.calls(self._buffers, self._number)
        self._graphs.clear()
        self._offsets_clear = True

    def submit(self, table: StimulusTable, keep: bool) -> None:
        """Queue a batch over ``table``; ``keep`` all its fired lists or only the last. Returns at once."""
        self.prepare_capacity(table)
        self._upload_head(table.bursts, keep)
        self._upload_table(table)
        streams = self._streams
        self._uploaded.record(streams.upload)
        streams.burst.wait(self._uploaded)
        self._run(table.bursts, not table.empty)
        self._runtime.download(self._report, self._own("report"), streams.burst)
        self._finished.record(streams.burst)

    def _upload_head(self, limit: int, keep: bool) -> None:
        head = self._staging.room("head", REPORT_HEAD, np.dtype(np.int64))
        head[:] = 0
        head[LIMIT], head[KEEP], head[INDEX] = limit, int(keep), -1
        self._runtime.upload(self._own("report"), head, self._streams.upload)
        self._uploaded.record(self._streams.upload)
        self._streams.burst.wait(self._uploaded)

    def _upload_table(self, table: StimulusTable) -> None:
        """Send the table up; offsets of an empty one are sent only if others lie there."""
        if table.empty and self._offsets_clear:
            return
        self._offsets_clear = table.empty
        for name, values in table_columns(table).items():
            self._runtime.upload(self._own(name), self._staging.filled(name, values), self._streams.upload)

    def _run(self, bursts: int, stimulated: bool) -> None:
        length = 1 if bursts == 1 else self.sizes.length
        if not self._use_graphs:
            self._calls.queue(bursts, stimulated, self._streams.burst)
            return
        key = (length, stimulated)
        if key not in self._graphs:
            calls = self._calls
            self._graphs[key] = self._runtime.capture(lambda stream: calls.queue(length, stimulated, stream))
        self._graphs[key].launch(self._streams.burst)

    def collect(self) -> BatchReport:
        """Wait for the batch and read its report."""
        self._finished.synchronize()
        return report_of(self._report)

    def fired(self, count: int) -> FiredList:
        """The first ``count`` entries of the log: ids and potentials in the order of the log."""
        return self._staging.fired(count, self._own, self._runtime, self._streams.download)
