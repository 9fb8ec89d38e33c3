"""The Engine protocol and the frozen values that go in and come out of it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Protocol

import numpy as np
import numpy.typing as npt

from burstproof.engine.precision import Precision
from burstproof.engine.profile import FEAGI_2_6, Profile
from burstproof.errors import InputError
from burstproof.network.fixed_point import FixedPoint
from burstproof.network.model import Network

_NO_IDS = np.empty(0, np.uint32)
_NO_AMOUNTS = np.empty(0, np.float32)


def _check_kind(where: str, value: object, kind: type) -> None:
    """Refuse what is no ``kind``: a name in its place would be taken for something else without a word."""
    if isinstance(value, kind):
        return
    names = ", ".join(str(one) for one in kind) if issubclass(kind, Enum) else f"a value of {kind.__module__}"
    raise InputError(f"not a {kind.__name__}", where=where, got=value, allowed=names)


@dataclass(frozen=True)
class CpuOptions:
    """Options of the numba CPU engine.

    Attributes
    ----------
    threads : int
        0 chooses one or all cores by size.
    specialise : bool or None
        Whether kernels are compiled for what the network uses, which takes seconds and makes bursts faster, or the
        general ones serve, compiled once for all networks of a profile. ``None`` chooses by size. Results are equal.
    """

    threads: int = 0
    specialise: bool | None = None


class SynapseMemory(Enum):
    """Where the CUDA engine keeps synapses: on the device, in page-locked host memory, or there only if they must."""

    AUTO = "auto"
    DEVICE = "device"
    HOST = "host"


@dataclass(frozen=True)
class CudaOptions:
    """Options of the CUDA engine.

    ``block_size`` 0 takes the default for the network's size class; ``train_length`` is the number of bursts
    captured in one graph (0 chooses); ``memory_limit_bytes`` 0 means what the device has free. ``synapse_memory``
    changes the speed and no result. ``sum_bits`` is the least width of a neuron's sum on the device: 8, 16 or 32, and
    0 chooses by size; sums that need more get it. ``autotune`` measures other launch configurations than these and
    takes the fastest (``cuda/tuner.py``).
    """

    device_id: int = 0
    graphs: bool = True
    block_size: int = 0
    train_length: int = 0
    stream_count: int = 4
    memory_limit_bytes: int = 0
    synapse_memory: SynapseMemory = SynapseMemory.AUTO
    sum_bits: int = 0
    autotune: bool = False

    def __post_init__(self) -> None:
        _check_kind("CudaOptions.synapse_memory", self.synapse_memory, SynapseMemory)


@dataclass(frozen=True)
class WgpuOptions:
    """Options of the WGPU engine.

    ``adapter`` is a number of ``burstproof info``; ``None`` takes a discrete GPU before an integrated one, and a
    software adapter last. ``train_length`` is the number of bursts in one submission, at most 64 (0 means 64).
    """

    adapter: int | None = None
    train_length: int = 0


@dataclass(frozen=True)
class EngineOptions:
    """What every backend is told besides the network.

    Attributes
    ----------
    profile : Profile
        Rules that apply.
    emulate_batch_path : bool
        Reproduce the defect of the real engine at 10 000 or more candidates (SEMANTICS section 3b).
    max_stimulus : float
        Declared bound of the summed absolute stimulus of one neuron in one burst; part of the fixed-point scale.
    fractional_stimulus : bool
        Whether stimulus amounts may be fractional; part of the fixed-point scale.
    precision : Precision
        In which format potentials are kept between bursts; anything but fp32 changes results (BE-11).

    Raises
    ------
    InputError
        A profile or a precision that is only a name, or a bound of the stimulus that is no finite number from 0 on.
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
        _check_kind("EngineOptions.profile", self.profile, Profile)
        _check_kind("EngineOptions.precision", self.precision, Precision)
        bound = self.max_stimulus
        if isinstance(bound, bool) or not isinstance(bound, int | float) or not 0 <= bound < math.inf:
            raise InputError(
                "not a bound of the stimulus",
                where="EngineOptions.max_stimulus",
                got=bound,
                allowed="a finite number from 0 on",
            )


@dataclass(frozen=True, eq=False)
class Stimulus:
    """What is put into one burst from outside.

    ``ids`` (Q,) uint32 and ``amounts`` (Q,) float32 are added to the FCL, several to one neuron add up; ``forced``
    (R,) uint32 join the fired list with potential 100 (SEMANTICS section 4); an id named twice counts once.
    """

    ids: npt.NDArray[np.uint32] = field(default_factory=lambda: _NO_IDS)
    amounts: npt.NDArray[np.float32] = field(default_factory=lambda: _NO_AMOUNTS)
    forced: npt.NDArray[np.uint32] = field(default_factory=lambda: _NO_IDS)


StimulusPlan = Mapping[int, Stimulus]
"""Stimulus by absolute burst number; bursts not named get none."""

NO_STIMULUS = Stimulus()
NO_PLAN: StimulusPlan = MappingProxyType({})


@dataclass(frozen=True, eq=False)
class Burst:
    """What one burst did: ``fired_ids`` (F,) uint32 ascending, ``fired_potentials`` (F,) float32 before the reset.

    ``candidates`` counts the neurons in the FCL, blocked ones included.
    """

    number: int
    fired_ids: npt.NDArray[np.uint32]
    fired_potentials: npt.NDArray[np.float32]
    candidates: int


@dataclass(frozen=True, eq=False)
class EngineState:
    """Everything that the next burst depends on (SEMANTICS section 1b), canonical: equal on every backend.

    N neurons, S synapses in the order of the network's table, D = largest delay of a valid synapse (at least 1).

    Attributes
    ----------
    burst_count : int
        Number of the burst just done.
    membrane_potentials : float32 (N,)
    refractory_countdowns, consecutive_fire_counts : uint16 (N,)
    weights, eligibility_traces : float32 (S,)
    was_candidate : bool (N,)
        Non-accumulating neurons that were candidates in the burst just done and did not fire in it, forced or not: they
        restart from 0 unless they are refractory then. False for all others.
    pending : int64 (D, N)
        Contributions under way in units of 2^-k; row j arrives in burst ``burst_count + 1 + j``.
    pending_candidate : bool (D, N)
        Whether any contribution (also one of 0) is under way to that neuron.
    fired_ids, fired_potentials : uint32, float32 (F,)
        The fired list of the burst just done, ascending; its contributions are in ``pending`` already.
    last_fired : int64 (N,)
        Number of the last burst in which the neuron fired, if it lies within the longest plasticity window that
        still matters (the last W - 1 bursts), else 0. All 0 without plastic mappings.
    fire_streak : uint16 (N,)
        Length of the unbroken run of firings that ends at ``last_fired``, at most W; 0 where ``last_fired`` is 0.
    history_bursts : int
        Number of past bursts that ``last_fired`` covers, at most W - 1 (0 without plastic mappings).
    clamped : bool
        Whether a contribution was ever clamped (SEMANTICS section 7).
    fixed_point : FixedPoint or None
        Scale, width and clamp of the sums, which a restored run keeps; ``None`` in files of before 2026-11-22.
    """

    burst_count: int
    membrane_potentials: npt.NDArray[np.float32]
    refractory_countdowns: npt.NDArray[np.uint16]
    consecutive_fire_counts: npt.NDArray[np.uint16]
    weights: npt.NDArray[np.float32]
    eligibility_traces: npt.NDArray[np.float32]
    was_candidate: npt.NDArray[np.bool_]
    pending: npt.NDArray[np.int64]
    pending_candidate: npt.NDArray[np.bool_]
    fired_ids: npt.NDArray[np.uint32]
    fired_potentials: npt.NDArray[np.float32]
    last_fired: npt.NDArray[np.int64]
    fire_streak: npt.NDArray[np.uint16]
    history_bursts: int
    clamped: bool
    fixed_point: FixedPoint | None = None

    def differences(self, other: EngineState) -> tuple[str, ...]:
        """Names of the fields that are not equal bit for bit (NaN equals NaN; traces may be +0 or -0)."""
        found = []
        for item in dataclasses.fields(self):
            mine, theirs = getattr(self, item.name), getattr(other, item.name)
            if isinstance(mine, np.ndarray):
                if item.name == "eligibility_traces":
                    same = bool(np.array_equal(mine, theirs, equal_nan=True))
                elif mine.dtype.kind == "f":
                    nan = np.isnan(mine)
                    same = mine.shape == theirs.shape and bool(
                        np.array_equal(nan, np.isnan(theirs))
                        and np.array_equal(mine.view(np.uint32)[~nan], theirs.view(np.uint32)[~nan])
                    )
                else:
                    same = bool(np.array_equal(mine, theirs))
            else:
                same = bool(mine == theirs)
            if not same:
                found.append(item.name)
        return tuple(found)


class Record(Enum):
    """What a run brings back: nothing, counts per burst, or the fired lists too."""

    NONE = "none"
    COUNTS = "counts"
    FIRED = "fired"


@dataclass(frozen=True, eq=False)
class Recording:
    """The result of a run of B bursts with K firings.

    ``bursts`` (B,) int64 numbers; ``fired_counts``, ``candidate_counts`` (B,) int64; ``fired_ids`` (K,) uint32 and
    ``fired_potentials`` (K,) float32 in burst order, ascending ids within a burst (empty unless recorded).
    """

    bursts: npt.NDArray[np.int64]
    fired_counts: npt.NDArray[np.int64]
    candidate_counts: npt.NDArray[np.int64]
    fired_ids: npt.NDArray[np.uint32]
    fired_potentials: npt.NDArray[np.float32]

    def spikes(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint32]]:
        """One row per firing: burst numbers (K,) int64 and neuron ids (K,) uint32, by burst, then id.

        Raises
        ------
        InputError
            The run did not record fired lists.
        """
        if len(self.fired_ids) != int(self.fired_counts.sum()):
            raise InputError(
                "the recording holds no fired lists", got="record=counts", cure="Run with record='fired', the default"
            )
        return np.repeat(self.bursts, self.fired_counts), self.fired_ids

    def __repr__(self) -> str:
        if not len(self.bursts):
            return f"{type(self).__name__}(no bursts)"
        firings = int(self.fired_counts.sum())
        return f"{type(self).__name__}(bursts {self.bursts[0]} to {self.bursts[-1]}, {firings} firings)"


Progress = Callable[[int], None]
"""Called with the number of bursts just done; ``Engine.run`` says what becomes of what it raises."""


class Engine(Protocol):
    """One network being stepped on one backend; ``burst_count`` is the number of the last burst done."""

    backend: str
    burst_count: int
    network: Network
    options: EngineOptions
    fixed_point: FixedPoint

    def step(self, stimulus: Stimulus = NO_STIMULUS) -> Burst:
        """Run one burst and return what it did.

        Raises
        ------
        StimulusError
            An id outside the network or not valid, an amount that is not finite, fractional or larger than declared.
        """
        ...

    def run(
        self,
        bursts: int,
        plan: StimulusPlan = NO_PLAN,
        record: Record = Record.FIRED,
        progress: Progress | None = None,
    ) -> Recording:
        """Run ``bursts`` bursts with the stimulus planned for their numbers.

        Fewer than 0 are an ``InputError``.

        ``progress`` is called between bursts. What it raises ends the run and is passed on; the recording is lost. The
        engine then stands at the end of burst ``burst_count``, which may lie beyond those told: what is under way is
        taken in first. Its state is that of that burst, to the bit, and the next run goes on from there. Where several
        processes share an engine, the callback has to raise in all of them after the same burst, or in none.
        """
        ...

    def state(self) -> EngineState:
        """A copy of everything that the next burst depends on."""
        ...

    def restore(self, state: EngineState) -> None:
        """Continue from ``state``, taken from any backend over the same network and options.

        Raises
        ------
        NetworkError
            Sums of another scale.
        """
        ...

    def close(self) -> None:
        """Give back memory and devices; the engine cannot be used afterwards. Closing twice is allowed."""
        ...
