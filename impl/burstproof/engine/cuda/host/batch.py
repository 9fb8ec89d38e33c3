"""A train of bursts: queued as one piece, run without the host, its report and fired lists fetched afterwards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.device.protocol import DeviceBuffer, DeviceGraph, DeviceRuntime, DeviceStream
from burstproof.engine.cuda.host.launches import BurstLaunches
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


@dataclass(frozen=True, eq=False)
class TrainResult:
    """What a train did: ``fired`` and ``candidates`` (bursts done,) int64."""

    fired: npt.NDArray[np.int64]
    candidates: npt.NDArray[np.int64]

    @property
    def bursts(self) -> int:
        """Bursts done."""
        return len(self.fired)


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


def table_columns(table: StimulusTable) -> dict[str, npt.NDArray[Any]]:
    """The buffers that hold ``table``, with their contents."""
    return {
        "stimulus_offsets": table.offsets,
        "stimulus_ids": table.ids,
        "stimulus_amounts": table.amounts,
        "forced_offsets": table.forced_offsets,
        "forced_ids": table.forced,
    }


class TrainSet:
    """One of the two sets of train buffers, with its graphs; used for one train at a time.

    ``ordered`` says whether fired lists come ascending from the device.
    """

    ordered = False

    def __init__(
        self,
        runtime: DeviceRuntime,
        launches: BurstLaunches,
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
        """Launch every kernel once in a train of no bursts, so that nothing is loaded during a capture."""
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
        """Queue a train over ``table``; ``keep`` all its fired lists or only the last. Returns at once."""
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

    def collect(self) -> TrainResult:
        """Wait for the train and read its report."""
        self._finished.synchronize()
        done = int(self._report[INDEX]) + 1
        counts = self._report[REPORT_HEAD : REPORT_HEAD + 2 * done].reshape(done, 2)
        return TrainResult(counts[:, 0].copy(), counts[:, 1].copy())

    def fired(self, start: int, count: int) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.float32]]:
        """``count`` entries of the log from ``start`` on: ids and potentials in the order of the log."""
        ids = self._staging.room("fired_ids", count, np.dtype(np.uint32))
        potentials = self._staging.room("fired_potentials", count, np.dtype(np.float32))
        self._runtime.download(ids, self._own("log_ids"), self._streams.download, start)
        self._runtime.download(potentials, self._own("log_potentials"), self._streams.download, start)
        self._streams.download.synchronize()
        return ids.copy(), potentials.copy()
