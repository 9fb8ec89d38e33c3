"""Which kernels a network needs: the key under which compiled kernels are kept."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from burstproof.burst.engine import EngineOptions
from burstproof.burst.fixed_point import FixedPoint
from burstproof.burst.layout import Layout
from burstproof.burst.profile import BATCH_PATH_CANDIDATES, LARGE_NETWORK_NEURONS
from burstproof.burst.rules import Features


class Restart(Enum):
    """Which non-accumulating neurons restart from 0 at the start of a burst (SEMANTICS section 6)."""

    NONE = "none"
    CANDIDATES = "candidates"
    ALL = "all"
    FIRED = "fired"


@dataclass(frozen=True)
class Variant:
    """What the kernels are specialised for.

    Attributes
    ----------
    features : Features
        What the rules of section 3 need.
    accumulator_bits : int
        Width of a sum, 32 or 64.
    contribution_bits : int
        Width of a stored static contribution: 16, 32 or 64.
    offset_bits : int
        Width of a row offset: 32, or 64 from 2^32 synapses on.
    flags : bool
        A candidate has a flag beside its sum, since the sum may be 0.
    delays : bool
        Some delay is above 1: every synapse carries one.
    clamps : bool
        Some static contribution was clamped.
    computed : bool
        Some contributions are computed when the source fires.
    round_mp_driven : bool
        The profile rounds and caps mp-driven psp.
    plastic : bool
        There are plastic mappings.
    plastic_all_window : bool
        The profile's rule of plasticity; weights then change before the propagation.
    restart : Restart
    count_ahead : bool
        Candidates are counted before the dynamics, since the batch path is emulated and can be reached.
    """

    features: Features
    accumulator_bits: int
    contribution_bits: int
    offset_bits: int
    flags: bool
    delays: bool
    clamps: bool
    computed: bool
    round_mp_driven: bool
    plastic: bool
    plastic_all_window: bool
    restart: Restart
    count_ahead: bool

    @property
    def accumulator(self) -> type[np.signedinteger]:
        """Scalar type of a sum."""
        return np.int32 if self.accumulator_bits == 32 else np.int64

    @property
    def contribution(self) -> type[np.signedinteger]:
        """Scalar type of a stored static contribution."""
        types: dict[int, type[np.signedinteger]] = {16: np.int16, 32: np.int32, 64: np.int64}
        return types[self.contribution_bits]

    @property
    def offset(self) -> type[np.unsignedinteger]:
        """Scalar type of a row offset."""
        return np.uint32 if self.offset_bits == 32 else np.uint64


def variant_of(layout: Layout, features: Features, options: EngineOptions, fixed_point: FixedPoint) -> Variant:
    """The variant for a packed network."""
    profile = options.profile
    entries = len(layout.static.targets) + (len(layout.computed.targets) if layout.computed else 0)
    return Variant(
        features=features,
        accumulator_bits=fixed_point.bits,
        contribution_bits=layout.static.contributions.dtype.itemsize * 8,
        offset_bits=offset_bits(entries),
        flags=layout.needs_flags,
        delays=layout.max_delay > 1,
        clamps=layout.static.clamped_sources is not None,
        computed=layout.computed is not None,
        round_mp_driven=profile.round_mp_driven,
        plastic=layout.plastic is not None,
        plastic_all_window=profile.plastic_all_window,
        restart=_restart(features, layout.neuron_count),
        count_ahead=options.emulate_batch_path and layout.neuron_count >= BATCH_PATH_CANDIDATES,
    )


def offset_bits(entries: int) -> int:
    """Width of a row offset; 32 bits must also hold the step beyond the last entry."""
    return 32 if entries < 2**32 - 32 else 64


def _restart(features: Features, neurons: int) -> Restart:
    if not features.restarts:
        return Restart.NONE
    if not features.restart_all:
        return Restart.CANDIDATES
    return Restart.ALL if neurons < LARGE_NETWORK_NEURONS else Restart.FIRED
