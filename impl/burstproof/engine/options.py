"""Options of the engines."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from enum import Enum

from burstproof.engine.precision import Precision
from burstproof.engine.profile import FEAGI_2_6, Profile
from burstproof.errors import InputError

MOST_THREADS = 4096
"""Most threads that the CPU engine may be asked for."""


def _check_kind(where: str, value: object, kind: type) -> None:
    """Refuse a value of another type: a string would silently be taken for something else."""
    if isinstance(value, kind):
        return
    names = ", ".join(str(one) for one in kind) if issubclass(kind, Enum) else f"a value of {kind.__module__}"
    raise InputError(f"not a {kind.__name__}", where=where, got=value, allowed=names)


def check_firing_rate(rate: object) -> None:
    """Refuse a firing rate that is not a fraction.

    Raises
    ------
    InputError
        Not a number from 0 to 1.
    """
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 <= rate <= 1:
        raise InputError("not a firing rate", where="firing_rate", got=rate, allowed="0 to 1")


@dataclass(frozen=True)
class CpuOptions:
    """Options of the numba CPU engine.

    Attributes
    ----------
    threads : int
        0 chooses by network size.
    specialise : bool or None
        True: compile kernels for what the network uses, which takes seconds and makes bursts faster. False: use the
        general kernels, compiled once for all networks of a profile. ``None`` chooses by network size; a small network
        gets kernels of its own in a long run. Results are equal.
    """

    threads: int = 0
    specialise: bool | None = None

    def __post_init__(self) -> None:
        if type(self.threads) is not int or not 0 <= self.threads <= MOST_THREADS:
            allowed = f"0...{MOST_THREADS}"
            raise InputError("not a number of threads", where="threads", got=self.threads, allowed=allowed)


class SynapseMemory(Enum):
    """Memory for the synapses of the CUDA engine: device, page-locked host memory, or host only if they do not fit."""

    AUTO = "auto"
    DEVICE = "device"
    HOST = "host"


@dataclass(frozen=True)
class CudaOptions:
    """Options of the CUDA engine.

    ``block_size`` 0 takes the default for the network's size class; ``batch_length`` is the number of bursts captured
    in one graph (0 chooses); ``memory_limit_bytes`` 0 means the free memory of the device. ``synapse_memory`` affects
    the speed only. ``sum_bits`` is the least width of a neuron's sum on the device: 8, 16 or 32, and 0 chooses by size;
    sums that need more bits get them. ``autotune`` measures other launch configurations and takes the fastest
    (``cuda/tuning``). ``firing_rate`` is the expected fraction of neurons that fire in a burst, from 0 to 1 (0 means
    1 %): it decides how contributions are delivered, which affects the speed only. Rates observed in runs replace it.

    Raises
    ------
    InputError
        Synapse memory given as a string, or a firing rate out of range.
    """

    device_id: int = 0
    graphs: bool = True
    block_size: int = 0
    batch_length: int = 0
    stream_count: int = 4
    memory_limit_bytes: int = 0
    synapse_memory: SynapseMemory = SynapseMemory.AUTO
    sum_bits: int = 0
    autotune: bool = False
    firing_rate: float = 0.0

    def __post_init__(self) -> None:
        _check_kind("synapse_memory", self.synapse_memory, SynapseMemory)
        check_firing_rate(self.firing_rate)


@dataclass(frozen=True)
class WgpuOptions:
    """Options of the WGPU engine.

    ``adapter`` is a number from ``burstproof info``; ``None`` prefers a discrete GPU to an integrated one, and takes a
    software adapter last. ``batch_length`` is the number of bursts in one submission, at most 64 (0 means 64).
    """

    adapter: int | None = None
    batch_length: int = 0


@dataclass(frozen=True)
class EngineOptions:
    """The options of an engine, on any backend.

    Attributes
    ----------
    profile : Profile
        Rules that apply.
    emulate_batch_path : bool
        Reproduce the defect of the real engine at 10 000 or more candidates (SEMANTICS section 3b).
    max_stimulus : float
        Declared bound of the summed absolute stimulus of a neuron in a burst; the fixed-point scale depends on it.
    fractional_stimulus : bool
        Whether stimulus amounts may be fractional; the fixed-point scale depends on it.
    precision : Precision
        Storage format of potentials between bursts; all but fp32 change results (BE-11).

    Raises
    ------
    InputError
        A profile or a precision given as a string, a switch that is neither true nor false, or a stimulus bound that is
        not a finite number of at least 0.
    """

    profile: Profile = FEAGI_2_6
    emulate_batch_path: bool = False
    max_stimulus: float = 255.0
    fractional_stimulus: bool = False
    precision: Precision = Precision.FP32
    cpu: CpuOptions = field(default_factory=CpuOptions)
    cuda: CudaOptions = field(default_factory=CudaOptions)
    wgpu: WgpuOptions = field(default_factory=WgpuOptions)

    def __post_init__(self) -> None:
        _check_kind("profile", self.profile, Profile)
        _check_kind("precision", self.precision, Precision)
        for name in ("emulate_batch_path", "fractional_stimulus"):
            if not isinstance(getattr(self, name), bool):
                got = getattr(self, name)
                raise InputError("not a switch", where=name, got=got, allowed="True, False")
        bound = self.max_stimulus
        if isinstance(bound, bool) or not isinstance(bound, int | float) or not 0 <= bound <= sys.float_info.max:
            raise InputError(
                "not a bound of the stimulus",
                where="max_stimulus",
                got=bound,
                allowed="a finite number from 0 on",
            )

    def rules(self) -> dict[str, str | bool | float]:
        """The options on which results depend, as plain values; those of devices are not among them."""
        return {
            "profile": self.profile.name,
            "emulate_batch_path": self.emulate_batch_path,
            "max_stimulus": self.max_stimulus,
            "fractional_stimulus": self.fractional_stimulus,
            "precision": self.precision.value,
        }
