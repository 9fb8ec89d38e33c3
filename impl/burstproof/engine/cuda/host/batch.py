"""Shared by all kinds of batches: streams, page-locked staging memory, reports and stimulus tables."""

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
    """Streams for uploads, bursts and downloads; they may coincide."""

    upload: DeviceStream
    burst: DeviceStream
    download: DeviceStream

    @classmethod
    def open(cls, runtime: DeviceRuntime, count: int) -> Streams:
        """Open ``count`` distinct streams, at most three."""
        streams = [runtime.stream() for _ in range(max(1, min(3, count)))]
        return cls(streams[1 % len(streams)], streams[0], streams[2 % len(streams)])


class Staging:
    """Growing page-locked host memory, one array per name."""

    def __init__(self, runtime: DeviceRuntime) -> None:
        self._runtime = runtime
        self._arrays: dict[str, npt.NDArray[Any]] = {}

    def room(self, name: str, count: int, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        """The first ``count`` elements of array ``name``; one that is too short is replaced, without its contents."""
        array = self._arrays.get(name)
        if array is None or len(array) < count:
            array = self._runtime.pinned(max(count, 2 * len(array) if array is not None else 1024), dtype)
            self._arrays[name] = array
        return array[:count]

    def filled(self, name: str, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """``values`` copied into array ``name``."""
        room = self.room(name, len(values), values.dtype)
        room[:] = values
        return room

    def fired(self, count: int, buffer_of: Callable[[str], DeviceBuffer], stream: DeviceStream) -> FiredList:
        """Ids and potentials of the first ``count`` entries of a log; ``buffer_of`` finds its buffers by name."""
        ids = self.room("fired_ids", count, np.dtype(np.uint32))
        potentials = self.room("fired_potentials", count, np.dtype(np.float32))
        self._runtime.download(ids, buffer_of("log_ids"), stream)
        self._runtime.download(potentials, buffer_of("log_potentials"), stream)
        stream.synchronize()
        return ids.copy(), potentials.copy()


def report_of(report: npt.NDArray[np.int64]) -> BatchReport:
    """The counts in a ``report`` (``kernels.control``) downloaded from the device."""
    done = int(report[INDEX]) + 1
    counts = report[REPORT_HEAD : REPORT_HEAD + 2 * done].reshape(done, 2)
    return BatchReport(counts[None, :, 0].copy(), counts[:, 1].copy())


def table_columns(table: StimulusTable) -> dict[str, npt.NDArray[Any]]:
    """``table`` as buffer contents, by buffer name."""
    return {
        "stimulus_offsets": table.offsets,
        "stimulus_ids": table.ids,
        "stimulus_amounts": table.amounts,
        "forced_offsets": table.forced_offsets,
        "forced_ids": table.forced,
    }
