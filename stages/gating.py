"""The gates of this session: evaluated once, when first asked for, or all closed on request."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from hardware.gates import GATE_NAMES, Gate
from stages.plan import NO_GATE

GPU_FREE_REASON = "a GPU-free run was asked for"


def machine_gates() -> Mapping[str, Gate]:
    """Evaluate the gates of this machine through NVML, without a CUDA context."""
    from hardware.gates import evaluate_gates
    from hardware.inventory import take_inventory

    return evaluate_gates(take_inventory())


def closed_gates() -> Mapping[str, Gate]:
    """Return every hardware gate closed, as a GPU-free run has them."""
    return {
        name: Gate(name, name == NO_GATE, GPU_FREE_REASON if name != NO_GATE else "Needs nothing.")
        for name in GATE_NAMES
    }


class Gatekeeper:
    """Knows which gates are open.

    Parameters
    ----------
    gpu_free : bool
        Treat every hardware gate as closed and ask NVML nothing.
    """

    def __init__(self, *, gpu_free: bool) -> None:
        self._gpu_free = gpu_free

    @cached_property
    def gates(self) -> Mapping[str, Gate]:
        """All gates by name."""
        return closed_gates() if self._gpu_free else machine_gates()

    def closed_reason(self, name: str) -> str | None:
        """Return why the gate is closed, or ``None`` if it is open."""
        gate = self.gates[name]
        return None if gate.is_open else gate.reason
