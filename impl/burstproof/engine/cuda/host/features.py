"""Device buffers of features: their initial contents, and their conversion from and to the canonical state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.engine.cuda.plan.features import IN_TRAIN, Contents, FeaturePlan, mode_columns
from burstproof.engine.cuda.plan.packed import Packed
from burstproof.engine.feature_state import FeatureState
from burstproof.engine.features.levels import clamped
from burstproof.engine.features.signals import factors_of, levels_in_force
from burstproof.engine.stimulus import FORCED_POTENTIAL

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float32]
Read = Callable[[str], Array]
"""Reads a whole device buffer by name."""

LEVELS = ("thresholds", "leak_coefficients", "excitabilities")
"""Parameters that features change, by column name."""
_ONE = np.float32(1)


def first_contents(packed: Packed) -> Contents:
    """Initial contents of the feature buffers; nothing without features."""
    plan, key, neurons = packed.feature_plan, packed.variant.extras, packed.network.neurons
    if plan is None:
        return
    yield from plan.constants()
    yield from plan.factors(np.zeros(plan.sizes.modulators, np.float32), since_load=False)
    first, loaded = packed.network.burst_count + 1, np.zeros(plan.sizes.classes, np.bool_)
    yield "class_phases", plan.phases(first, loaded)
    yield "class_states", plan.states(first, loaded)
    yield "kinds", plan.kinds(np.zeros(len(plan.trains), np.bool_))
    if key.replays:
        yield "given_potentials", np.full(packed.network.neuron_count, FORCED_POTENTIAL, np.float32)
    homeostatic = plan.tables.areas.homeostatic[plan.tables.classes]
    leaks = np.clip(neurons.leak_coefficients, np.float32(0), _ONE)
    yield "homeostat_leaks", np.where(homeostatic, leaks, np.float32(0))
    computed = packed.layout.computed
    if computed is not None:
        yield "synapse_rules", computed.rules
        yield "degeneration", computed.degeneration
    if key.modes and packed.layout.plastic is not None:
        yield from mode_columns(packed.layout)


def kept_potentials(packed: Packed, potentials: Floats) -> Floats:
    """``potentials`` as stored between bursts; precision ``feagi-int8`` clamps those of loaded neurons to 0...255."""
    if not packed.network.features.clamp_potentials:
        return potentials
    assert packed.feature_plan is not None
    stored, loaded = clamped(potentials), packed.feature_plan.loaded
    stored[loaded:] = potentials[loaded:]
    return stored


class FeatureRecord:
    """The features of a network on its device, with the part of their state that the host keeps."""

    def __init__(self, packed: Packed) -> None:
        self._packed = packed
        assert packed.feature_plan is not None
        self._loaded = self._base = packed.feature_plan.levels
        self._since_load, self._loaded_at = 0, packed.network.burst_count

    def adopt(self, place: int, model: int) -> None:
        """Give the neuron at ``place`` the base parameters that neuron ``model`` was loaded with."""
        columns = {name: np.array(getattr(self._base, name)) for name in LEVELS}
        for name, column in columns.items():
            column[place] = getattr(self._loaded, name)[model]
        self._base = replace(self._base, **columns)

    def capture(self, read: Read, burst: int, psps: Floats) -> FeatureState | None:
        """The feature state after ``burst``; ``psps`` belong to the synapse rows that ``StatePart`` names."""
        plan, key, count = self._packed.feature_plan, self._packed.variant.extras, self._packed.sizes.neurons
        if plan is None or not self._packed.network.features:
            return None
        since_load = int(self._since_load or burst > self._loaded_at)

        def column(name: str, used: bool, dtype: type[np.generic]) -> Array:
            return read(name)[:count] if used else np.zeros(count, dtype)

        signals = np.zeros(0, np.float32)
        if key.modulators:
            signals = read("signals").reshape(2, -1)[(burst + 1) & 1].copy()
        leaks = column("homeostat_leaks", key.homeostats, np.float32)
        in_train = (column("kinds", key.trains, np.uint32) & np.uint32(IN_TRAIN)) != 0
        held = column("held_potentials", key.trains, np.float32)
        levels = self._in_force(plan, read, burst, leaks, signals, bool(since_load))
        return FeatureState(
            *levels,
            column("firing_rates", key.homeostats, np.float32),
            leaks,
            in_train,
            np.where(in_train, held, np.float32(0)),
            signals,
            since_load,
            psps,
        )

    def _in_force(
        self, plan: FeaturePlan, read: Read, burst: int, leaks: Floats, signals: Floats, since_load: bool
    ) -> tuple[Floats, Floats, Floats]:
        """Thresholds, leaks and excitabilities in force in the burst after ``burst`` (rules: ``kernels.features``)."""
        key, tables, regulated = self._packed.variant.extras, plan.tables, np.zeros(plan.sizes.classes, np.bool_)
        if key.homeostats:
            phases = read("class_phases").reshape(2, -1)[(burst + 1) & 1]
            regulated = tables.areas.homeostatic & ((phases >> np.uint64(63)) != 0)
        factors = factors_of(tables.modulators, signals) if key.area_modulators and since_load else None
        return levels_in_force(
            self._base, tables, leaks, regulated, factors, clamps=self._packed.network.features.clamp_potentials
        )

    def restored(self, state: FeatureState, burst: int) -> Contents:
        """Buffer contents that continue from ``state`` after ``burst``."""
        packed, plan = self._packed, self._packed.feature_plan
        if plan is None:
            return
        self._since_load, self._loaded_at = state.bursts_since_load, burst
        yield from plan.factors(state.signals, bool(state.bursts_since_load))
        regulated = self._regulated(plan, state)
        yield "class_phases", plan.phases(burst + 1, regulated)
        yield "class_states", plan.states(burst + 1, regulated)
        yield "firing_rates", state.firing_rates
        yield "homeostat_leaks", state.homeostat_leaks
        yield "kinds", plan.kinds(state.trains)
        yield "held_potentials", state.held_potentials
        if packed.layout.computed is not None:
            yield "psps", state.postsynaptic_potentials[packed.layout.computed.rows]

    def _regulated(self, plan: FeaturePlan, state: FeatureState) -> npt.NDArray[np.bool_]:
        """Classes whose homeostats have replaced the leaks: all leaks in force are the homeostat's."""
        differs = state.leak_coefficients != state.homeostat_leaks
        own_leaks = np.zeros(plan.sizes.classes, np.bool_)
        own_leaks[plan.tables.classes[differs]] = True
        regulated: npt.NDArray[np.bool_] = plan.tables.areas.homeostatic & ~own_leaks
        return regulated
