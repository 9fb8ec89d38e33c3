"""Checks of an engine whose device fails: faults raised at the driver's seam of the CUDA simulator."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from unittest import mock

import numpy as np

from burstproof.device.open import open_device
from burstproof.engine.options import EngineOptions
from burstproof.engine.state import Stimulus
from burstproof.errors import DeviceFaultError, InputError, OutOfMemoryError
from burstproof.network.model import Network, NeuronTable, SynapseTable
from suites.support.parity.train_checks import cuda_engine, runs_differ


class CUDAError(Exception):
    """Stands for the driver's error of this name."""


def failing_device() -> list[str]:
    """A driver call that fails ends the run with the package's error; the engine closes, and another one works."""
    network = Network(NeuronTable.build(3), SynapseTable.build([0, 1], [1, 2]))
    problems = []
    for said, expected in (
        ("CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered", DeviceFaultError),
        ("CUDA_ERROR_DEVICE_UNAVAILABLE", DeviceFaultError),
        ("cudaErrorMemoryAllocation: out of memory", OutOfMemoryError),
    ):
        engine = cuda_engine(network, EngineOptions())
        with mock.patch.object(type(open_device(0)), "launch", side_effect=CUDAError(said)):
            for what in (partial(engine.run, 3), engine.step):
                try:
                    what()
                    problems.append(f"{said}: no error")
                except expected as error:
                    problems += [] if said in str(error) else [f"{said}: {error}"]
        with mock.patch.object(type(open_device(0)), "close", side_effect=CUDAError(said)):
            engine.close()
    return problems + runs_differ(network, EngineOptions(), 3, {1: Stimulus(forced=np.array([0], np.uint32))})


def restore_without_memory() -> list[str]:
    """A state that needs the network packed again, for which no memory is left: an error, and a closed engine."""
    network = Network(NeuronTable.build(3), SynapseTable.build([0, 1], [1, 2]))
    engine = cuda_engine(network, EngineOptions())
    state = replace(engine.state(), weights=np.array([1, 2], np.float32))
    problems = []
    with mock.patch.object(type(open_device(0)), "allocate", side_effect=OutOfMemoryError("no arena")):
        try:
            engine.restore(state)
            problems.append("no error")
        except OutOfMemoryError:
            pass
    try:
        engine.run(1)
        problems.append("the engine went on")
    except InputError as error:
        problems += [] if "closed" in str(error) else [str(error)]
    return problems
