"""Kernel that ends one burst of a train and begins the next, so that the host need not know when."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from burstproof.device.numba_cuda import cuda
from burstproof.engine.cuda.args import Fcl, History, Network, Steering
from burstproof.engine.cuda.kernels.control import (
    ACTIVE,
    BATCH,
    BURST,
    CANDIDATES,
    COUNT,
    HALTED,
    HISTORY,
    INDEX,
    KEEP,
    LIMIT,
    REPORT_HEAD,
    SLOT,
    START,
    USED,
)


def make_advance() -> Callable[..., None]:
    """``advance(...)``, one thread: before the first burst of a train, between bursts and after the last.

    A burst begins only while the train's limit is not reached and the log has room for all neurons; otherwise
    ``HALTED`` is set and nothing more happens.
    """

    def advance(steering: Steering, fcl: Fcl, history: History, network: Network) -> None:
        control, report = steering.control, steering.report
        if cuda.grid(1) != 0:
            return
        if control[ACTIVE] != 0:
            done = report[INDEX]
            report[REPORT_HEAD + 2 * done] = control[COUNT]
            report[REPORT_HEAD + 2 * done + 1] = control[CANDIDATES]
            if report[KEEP] != 0:
                report[USED] += control[COUNT]
            if control[HISTORY] < np.int64(history.longest) - 1:
                control[HISTORY] += 1
            control[ACTIVE] = 0
        following = report[INDEX] + 1
        if following >= report[LIMIT] or control[HALTED] != 0:
            return
        if report[USED] + np.int64(network.neurons) > steering.capacity:
            control[HALTED] = 1
            return
        report[INDEX] = following
        control[BURST] += 1
        control[SLOT] = control[BURST] % np.int64(fcl.ring)
        control[START] = report[USED]
        control[COUNT] = 0
        control[CANDIDATES] = 0
        control[BATCH] = 0
        control[ACTIVE] = 1

    return advance
