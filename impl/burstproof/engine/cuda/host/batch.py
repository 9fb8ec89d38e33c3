"""What batches share: streams, page-locked staging memory, tables and reports."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.device.protocol import DeviceBuffer, DeviceRuntime, DeviceStream
from burstproof.engine.cuda.host.devices import BatchReport, FiredList
from burstproof.engine.cuda.host.stimulus_table import StimulusTable
from burstproof.engine.cuda.kernels.control import INDEX, REPORT_HEAD


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
