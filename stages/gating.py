"""The gates of this pytest session: evaluated once, on first use, or all closed on request.

Each worker of a stage begins with another GPU: every worker sees all GPUs, each in another order.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from hardware.gates import GATE_NAMES, Gate
from stages.plan import NO_GATE

if TYPE_CHECKING:
    from hardware.inventory import Inventory

GPU_FREE_REASON = "a GPU-free run was asked for"


def machine_gates(worker: int) -> Mapping[str, Gate]:
    """Evaluate the gates of this machine through NVML, without a CUDA context.

    On a machine with several equal GPUs, a worker with a number above 0 then begins with another GPU.
    """
    from hardware.gates import evaluate_gates
    from hardware.inventory import take_inventory

    inventory = take_inventory()
    if worker:
        _begin_elsewhere(inventory, worker)
    return evaluate_gates(inventory)


def _begin_elsewhere(inventory: Inventory, worker: int) -> None:
    """Rotate the order in which CUDA numbers equal GPUs, unless ``CUDA_VISIBLE_DEVICES`` is set already."""
    gpus = inventory.gpus
    alike = len({gpu.name for gpu in gpus}) == 1 and not any(gpu.mig_enabled for gpu in gpus)
    if len(gpus) > 1 and alike and inventory.host.visible_devices is None:
        order = (str((worker + place) % len(gpus)) for place in range(len(gpus)))
        os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(order)


def closed_gates() -> Mapping[str, Gate]:
    """The gates of a GPU-free run: every hardware gate is closed."""
    return {
        name: Gate(name, name == NO_GATE, GPU_FREE_REASON if name != NO_GATE else "Needs nothing.")
        for name in GATE_NAMES
    }


class Gatekeeper:
    """Evaluates the gates on first use.

    Parameters
    ----------
    gpu_free : bool
        Treat every hardware gate as closed, without asking NVML.
    worker : int
        Number of this process among the workers of a stage.
    """

    def __init__(self, *, gpu_free: bool, worker: int = 0) -> None:
        self._gpu_free, self._worker = gpu_free, worker

    @cached_property
    def gates(self) -> Mapping[str, Gate]:
        """All gates by name."""
        return closed_gates() if self._gpu_free else machine_gates(self._worker)

    def closed_reason(self, name: str) -> str | None:
        """Return why the gate is closed, or ``None`` if it is open."""
        gate = self.gates[name]
        return None if gate.is_open else gate.reason
