"""What the numba CPU engine holds in memory, and its exchange with the canonical EngineState."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.engine.admission import check_state
from burstproof.engine.buffers import PlannedBuffer
from burstproof.engine.countdowns import running_countdowns, shown_countdowns
from burstproof.engine.cpu.arrays import (
    Neurons,
    Parameters,
    Ring,
    computed_of,
    parameters_of,
    plastic_of,
    scalars_of,
    static_of,
)
from burstproof.engine.cpu.compile import CLAMPED, HISTORY, KernelKey
from burstproof.engine.cpu.kernels import Kernels, kernels_for
from burstproof.engine.fixed_point import plan_fixed_point
from burstproof.engine.layout import Layout, build_layout, refuse_overflow
from burstproof.engine.options import EngineOptions
from burstproof.engine.precision import Storage, storage_for
from burstproof.engine.profile import LARGE_NETWORK_NEURONS
from burstproof.engine.rules import features_of
from burstproof.engine.state import EngineState
from burstproof.network.fixed_point import FixedPoint
from burstproof.network.model import Network

SPECIALISED_NEURONS = 1 << 16
"""Neurons from which kernels are compiled for the network: there the seconds that it takes are won back within about
10 000 bursts. Bursts on the general kernels take 2 to 3 times as long."""


def specialises(network: Network, options: EngineOptions) -> bool:
    """Whether ``network`` gets kernels of its own."""
    asked = options.cpu.specialise
    return network.neuron_count >= SPECIALISED_NEURONS if asked is None else asked


class CpuMemory:
    """Arrays of one engine, laid out for its kernels.

    Attributes
    ----------
    layout : Layout
    kernels : Kernels
    ring, parameters, neurons, static, computed, plastic, scalars
        Named tuples of ``arrays``.
    counters : int64 (2,)
        Sticky clamp flag and bursts of known history.
    fired : tuple of uint32 (F,) and float32 (F,)
        The fired list of the last burst.
    """

    def __init__(self, network: Network, options: EngineOptions, fixed_point: FixedPoint) -> None:
        self._general = not specialises(network, options)
        self._network = network
        self._options = options
        self._fixed_point = fixed_point
        self._weights = network.synapses.weights
        self._eligibility = network.synapses.eligibility_traces
        self.layout: Layout = build_layout(network, options, fixed_point)
        self._take_rows()
        self.parameters: Parameters = parameters_of(self.layout)
        storage = storage_for(options.precision, network.neurons.thresholds)
        self.neurons = _initial_neurons(network, storage, self._general or self.layout.plastic is not None)
        self.scalars = scalars_of(self.layout, options, fixed_point)
        self.counters = np.zeros(2, np.int64)
        self.fired = np.empty(0, np.uint32), np.empty(0, np.float32)
        self._key = self._kernel_key(self.layout.needs_flags)
        self.kernels: Kernels = kernels_for(self._key)
        cells = self.layout.max_delay * network.neuron_count
        flags = np.zeros(cells if self._key.flagged else 0, np.bool_)
        self.ring = Ring(np.zeros(cells, np.int64 if self._general else fixed_point.dtype), flags)
        self.plastic.eligibility[:] = self._eligibility[self._plastic_rows()]

    def _take_rows(self) -> None:
        self.static = static_of(self.layout, self._general)
        self.computed = computed_of(self.layout, self._general)
        self.plastic = plastic_of(self.layout)

    def _kernel_key(self, flagged: bool) -> KernelKey:
        layout, profile = self.layout, self._options.profile
        features = features_of(self._network, self._options)
        large = layout.neuron_count >= LARGE_NETWORK_NEURONS
        key = KernelKey(
            features,
            flagged,
            layout.max_delay > 1,
            layout.static.clamped_sources is not None,
            layout.computed is not None,
            layout.plastic is not None,
            profile.round_mp_driven,
            profile.plastic_all_window,
            features.restarts and profile.restart_all and large,
        )
        return key.general() if self._general else key

    def _plastic_rows(self) -> npt.NDArray[np.int64]:
        """Rows of the network's table that belong to the entries of ``plastic``."""
        computed = self.layout.computed
        return np.empty(0, np.int64) if computed is None else computed.rows[self.plastic.positions]

    @property
    def general(self) -> bool:
        """Whether the kernels are those that serve every network."""
        return self._general

    @property
    def restarts_fired(self) -> bool:
        """Whether a burst needs the fired list of the last one before its own."""
        return self._key.restart_fired

    def use_flags(self) -> None:
        """From now on candidates carry a flag, because a sum may be 0."""
        if not self._key.flagged:
            self.ring = Ring(self.ring.sums, self.ring.sums != 0)
            self._compile(flagged=True)

    def set_clamped(self) -> None:
        """Set the sticky flag."""
        self.counters[CLAMPED] = 1

    def _compile(self, **changes: Any) -> None:
        self._key = dataclasses.replace(self._key, **changes)
        self.kernels = kernels_for(self._key)

    def state(self, burst_count: int) -> EngineState:
        """The canonical state after burst ``burst_count``."""
        pending, pending_candidate = self._pending(burst_count)
        last_fired, streak = self._history(burst_count)
        table = self._network.neurons
        return EngineState(
            burst_count=burst_count,
            membrane_potentials=self.neurons.v.copy(),
            refractory_countdowns=shown_countdowns(self.neurons.rc, table.refractory_countdowns, table.valid_mask),
            consecutive_fire_counts=self.neurons.cc.copy(),
            weights=self._table(self._weights, self._computed_rows(), self.computed.weights),
            eligibility_traces=self._table(self._eligibility, self._plastic_rows(), self.plastic.eligibility),
            was_candidate=self.neurons.was_candidate.copy(),
            pending=pending,
            pending_candidate=pending_candidate,
            fired_ids=self.fired[0].copy(),
            fired_potentials=self.fired[1].copy(),
            last_fired=last_fired,
            fire_streak=streak,
            history_bursts=int(self.counters[HISTORY]),
            clamped=bool(self.counters[CLAMPED]),
            fixed_point=self._fixed_point,
        )

    def _computed_rows(self) -> npt.NDArray[np.int64]:
        return np.empty(0, np.int64) if self.layout.computed is None else self.layout.computed.rows

    @staticmethod
    def _table(
        base: npt.NDArray[np.float32], rows: npt.NDArray[np.int64], values: npt.NDArray[np.float32]
    ) -> npt.NDArray[np.float32]:
        """A copy of ``base`` with ``values`` in ``rows``."""
        table = base.copy()
        table[rows] = values
        return table

    def _slots(self, burst_count: int) -> npt.NDArray[np.int64]:
        """Slot of each row of the canonical ``pending``."""
        return (burst_count + 1 + np.arange(self.layout.max_delay)) % self.layout.max_delay

    def _pending(self, burst_count: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        shape = self.layout.max_delay, self.layout.neuron_count
        slots = self._slots(burst_count)
        sums = self.ring.sums.reshape(shape)[slots].astype(np.int64)
        return sums, self.ring.flags.reshape(shape)[slots] if self._key.flagged else sums != 0

    def _history(self, burst_count: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint16]]:
        if self.layout.plastic is None:
            return np.zeros(self.layout.neuron_count, np.int64), np.zeros(self.layout.neuron_count, np.uint16)
        oldest = burst_count - (self.layout.plastic.longest_window - 1)
        last = np.where(self.neurons.last_fired > max(0, oldest), self.neurons.last_fired, 0)
        return last, np.where(last > 0, self.neurons.streak, 0).astype(np.uint16)

    def restore(self, state: EngineState) -> None:
        """Take over ``state``.

        Raises
        ------
        NetworkError
            Sums of another scale, or weights that the scale does not admit.
        """
        check_state(state, self._fixed_point)
        self._restore_weights(state)
        neurons = self.neurons
        neurons.v[:] = self._key.features.storage.rounded(state.membrane_potentials)
        neurons.rc[:] = running_countdowns(state.refractory_countdowns, self._network.neurons.valid_mask)
        neurons.cc[:] = state.consecutive_fire_counts
        neurons.was_candidate[:] = state.was_candidate
        if self.layout.plastic is not None:
            neurons.last_fired[:] = state.last_fired
            neurons.streak[:] = state.fire_streak
        self.counters[HISTORY] = state.history_bursts
        self.counters[CLAMPED] = state.clamped
        self.fired = state.fired_ids.copy(), state.fired_potentials.copy()
        if not self._key.features.refractory_periods and state.refractory_countdowns.any():
            self._compile(features=dataclasses.replace(self._key.features, refractory_periods=True))
        self._restore_pending(state)

    def _restore_pending(self, state: EngineState) -> None:
        arriving = state.pending_candidate & self._network.neurons.valid_mask
        sums = np.where(arriving, state.pending, 0)
        if bool((arriving & (sums == 0)).any()):
            self.use_flags()
        shape = self.layout.max_delay, self.layout.neuron_count
        slots = self._slots(state.burst_count)
        self.ring.sums.reshape(shape)[slots] = sums
        if self._key.flagged:
            self.ring.flags.reshape(shape)[slots] = arriving

    def _restore_weights(self, state: EngineState) -> None:
        """Take over weights and eligibility; pack again if a constant contribution is another one now."""
        rows = self._computed_rows()
        different = state.weights != self._weights
        different[rows] = False
        changed = bool(different.any())
        if changed:
            self._repack(np.where(different, state.weights, self._network.synapses.weights))
        if changed or len(rows):
            self._weights = state.weights.copy()
        self.computed.weights[:] = state.weights[rows]
        self._eligibility = state.eligibility_traces.copy()
        self.plastic.eligibility[:] = self._eligibility[self._plastic_rows()]

    def _repack(self, weights: npt.NDArray[np.float32]) -> None:
        synapses = dataclasses.replace(self._network.synapses, weights=weights)
        network = self._network.replace(synapses=synapses)
        layout = build_layout(network, self._options, self._fixed_point)
        refuse_overflow(layout, network, self._options, self._fixed_point)
        self.layout = layout
        self._take_rows()
        self._compile(static_clamps=self._general or layout.static.clamped_sources is not None)
        if layout.needs_flags:
            self.use_flags()


def _initial_neurons(network: Network, storage: Storage, remembers: bool) -> Neurons:
    table = network.neurons
    count = network.neuron_count
    remembered = count if remembers else 0
    return Neurons(
        storage.rounded(table.membrane_potentials),
        running_countdowns(table.refractory_countdowns, table.valid_mask),
        table.consecutive_fire_counts.copy(),
        np.zeros(count, np.bool_),
        np.zeros(remembered, np.int64),
        np.zeros(remembered, np.int64),
    )


def planned_buffers(network: Network, options: EngineOptions) -> tuple[PlannedBuffer, ...]:
    """The arrays of an engine over ``network``, which are all in host memory; a column of one value takes one."""
    memory = CpuMemory(network, options, plan_fixed_point(network, options))
    found = []
    for group in ("parameters", "neurons", "ring", "static", "computed", "plastic"):
        for name, array in getattr(memory, group)._asdict().items():
            held = array.nbytes if any(array.strides) else array.itemsize
            found.append(PlannedBuffer(f"{group}.{name}", array.size, array.dtype.name, held, "host"))
    return tuple(buffer for buffer in found if buffer.count)
