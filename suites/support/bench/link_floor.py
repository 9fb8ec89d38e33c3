"""What the link allows a burst: the rows of what fired, read in ascending order by a kernel that does nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.device.protocol import BufferSpec, DeviceBuffer, DeviceRuntime, DeviceStream
from suites.support.bench.steady import Rule, Timed, Watch, time_steadily
from suites.support.bench.timers import DeviceTimer

_THREADS = 256
_BLOCKS_PER_MULTIPROCESSOR = 8
_ARRAYS = 3
_LARGEST = 0x7FFFFFFF
_RULE = Rule(warmup=1, min_samples=10, max_samples=40, max_seconds=2.0)


def reading_ms(
    runtime: DeviceRuntime,
    arrays: Sequence[BufferSpec],
    neurons: int,
    lists: Sequence[npt.NDArray[np.uint32]],
    watch: Callable[[], Watch] | None = None,
) -> Timed:
    """Time in ms that reading the rows of one burst takes, checked by the sum of what was read.

    ``arrays``, at most three, are those that hold entries of the rows, all rows equally long and of whole words;
    page-locked memory of the same sizes takes their place. ``lists`` are the ascending lists of some bursts, read in
    turn so that no row is in a cache still. The mean over the lists counts.

    Raises
    ------
    AssertionError
        Something else was read.
    """
    from suites.support.bench.limit_kernels import NUMBER_WORDS, READ_ROWS

    stream, grid = runtime.stream(), runtime.multiprocessors * _BLOCKS_PER_MULTIPROCESSOR
    words = [runtime.words(buffer) for buffer in runtime.allocate_host(arrays).values()]
    number, read = runtime.kernel(NUMBER_WORDS), runtime.kernel(READ_ROWS)
    for array in words:
        runtime.launch(number, grid, _THREADS, stream, (array,))
    lengths = [array.spec.count // neurons for array in words]
    lengths += [0] * (_ARRAYS - len(lengths))
    words += [words[0]] * (_ARRAYS - len(words))
    shape = _uploaded(runtime, stream, "lengths", np.array(lengths, np.int64))
    rows = [_uploaded(runtime, stream, f"rows.{i}", ids) for i, ids in enumerate(lists)]
    sums = runtime.allocate([BufferSpec("sums", grid * _THREADS, np.dtype(np.uint32))])["sums"]

    def launch(queue: DeviceStream) -> None:
        for ids in rows:
            runtime.launch(read, grid, _THREADS, queue, (ids, *words, shape, sums))

    timer = DeviceTimer(runtime, stream, launch)
    timed = time_steadily(lambda: timer() / len(rows), _RULE, watch)
    got = runtime.pinned(sums.spec.count, np.uint32)
    runtime.download(got, sums, stream)
    stream.synchronize()
    if int(got.sum(dtype=np.uint64)) % 2**32 != _sum_of(lists[-1], lengths):
        raise AssertionError("other words were read than those of the rows, so the time means nothing")
    return timed


def _uploaded(runtime: DeviceRuntime, stream: DeviceStream, name: str, values: npt.NDArray[Any]) -> DeviceBuffer:
    buffer = runtime.allocate([BufferSpec(name, len(values), values.dtype)])[name]
    runtime.upload(buffer, values, stream)
    stream.synchronize()
    return buffer


def _sum_of(ids: npt.NDArray[np.uint32], lengths: Sequence[int]) -> int:
    """Sum, mod 2^32, of the words of the rows of ``ids``, each of which holds its place."""
    total = 0
    for length in lengths:
        places = ids.astype(np.int64)[:, None] * length + np.arange(length)
        total += int((places & _LARGEST).sum())
    return total % 2**32
