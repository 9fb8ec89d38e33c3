"""Kernels around a single burst of several kernels: it begins without an upload and ends with its list on the host."""

from __future__ import annotations

from functools import cache

import numpy as np

from burstproof.device.numba_cuda import cuda
from burstproof.engine.cuda.args import Log, Steering, Window
from burstproof.engine.cuda.kernels.control import COUNT, INDEX, KEEP, LIMIT, REPORT_HEAD, START, USED
from burstproof.engine.cuda.kernels.spec import KernelSpec, kernel_spec


@cache
def single_kernels() -> tuple[KernelSpec, KernelSpec]:
    """``open_single(steering)``, one thread, and ``show_list(steering, log, window)``.

    The window receives the list in the order of the log, if it fits. The answer is the list's length, and the number of
    candidates.
    """

    def open_single(steering: Steering) -> None:
        if cuda.grid(1) == 0:
            steering.report[LIMIT] = 1
            steering.report[KEEP] = 1
            steering.report[INDEX] = -1
            steering.report[USED] = 0

    def show_list(steering: Steering, log: Log, window: Window) -> None:
        count, start = steering.control[COUNT], steering.control[START]
        entry = np.int64(cuda.grid(1))
        if entry == 0:
            window.answer[0] = count
            window.answer[1] = steering.report[REPORT_HEAD + 1]
        while entry < count and count <= window.window:
            window.window_ids[entry] = log.log_ids[start + entry]
            window.window_potentials[entry] = log.log_potentials[start + entry]
            entry += np.int64(cuda.gridsize(1))

    return kernel_spec("open_single", open_single), kernel_spec("show_list", show_list)
