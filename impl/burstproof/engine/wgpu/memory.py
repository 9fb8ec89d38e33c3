"""What the WGPU engine holds, on the device and beside it, and its exchange with the canonical EngineState."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from burstproof.engine.admission import check_state
from burstproof.engine.countdowns import running_countdowns, shown_countdowns
from burstproof.engine.feature_state import FeatureState
from burstproof.engine.features.levels import clamped
from burstproof.engine.features.support import MODELLED
from burstproof.engine.layout import Layout, build_layout, refuse_overflow
from burstproof.engine.options import EngineOptions
from burstproof.engine.state import EngineState
from burstproof.engine.wgpu.device import Device
from burstproof.engine.wgpu.host_rows import HostRows
from burstproof.engine.wgpu.modulation import Modulation
from burstproof.engine.wgpu.packed import joined, lower_and_upper, parameter_words, sizes_of, synapse_words
from burstproof.engine.wgpu.shaders import BATCH_WORDS, FIRED, IN_TRAIN, WAS_CANDIDATE, variant_of
from burstproof.network.fixed_point import FixedPoint
from burstproof.network.model import Network

if TYPE_CHECKING:
    from wgpu import GPUBuffer

_COUNT = np.uint32(16)
_LOW = np.uint32(0xFFFF)
_FIRST_STIMULI = 4096


class WgpuMemory:
    """Buffers of one engine.

    Attributes
    ----------
    layout : Layout
    variant : Variant
        What the shaders are compiled for now.
    host : HostRows or None
        Synapses that are computed between bursts.
    modulation : Modulation
        Signals and factors, and what area classes have in common.
    fired : tuple of uint32 (F,) and float32 (F,)
        The fired list of the last burst.
    clamped : bool
        The sticky flag.
    log_entries : int
        Firings that fit into the log.
    """

    def __init__(
        self, device: Device, network: Network, options: EngineOptions, fixed_point: FixedPoint, bursts: int
    ) -> None:
        self._device, self._network, self._options, self._fixed_point = device, network, options, fixed_point
        self._buffers: dict[str, GPUBuffer] = {}
        self._bursts = bursts
        self._weights = network.synapses.weights
        self._eligibility = network.synapses.eligibility_traces
        self.modulation = Modulation(network)
        self.fired = np.empty(0, np.uint32), np.empty(0, np.float32)
        self.clamped = False
        self._take_layout(self._packed(network))
        table, count = network.neurons, network.neuron_count
        self._put_states(
            table.membrane_potentials,
            table.refractory_countdowns,
            table.consecutive_fire_counts,
            np.zeros(count, np.uint32),
            leak=self.modulation.first_leaks,
        )
        self._put_factors()
        if self.host is not None:
            self.host.eligibility = self._eligibility[self.host.learning_rows]

    def _packed(self, network: Network) -> Layout:
        return build_layout(network, self._options, self._fixed_point, modelled=MODELLED["wgpu"])

    def _take_layout(self, layout: Layout, flagged: bool = False) -> None:
        """Put a packed network onto the device; what is under way is lost."""
        self.layout = layout
        self.variant = variant_of(
            self._network,
            self._options,
            flagged=flagged or layout.needs_flags,
            delayed=layout.max_delay > 1,
            wide=self._fixed_point.bits == 64,
        )
        self.host = (
            None
            if layout.computed is None
            else HostRows(layout, layout.computed, self._fixed_point, self._options.profile)
        )
        sizes = sizes_of(layout, self.variant, self._bursts, self._device.adapter)
        self.log_entries = sizes.log_entries
        for name in ("parameters", "states", "ring", "offsets", "synapses", "log"):
            self._replace(name, getattr(sizes, name))
        self._replace("batch", 4 * BATCH_WORDS + self.modulation.factor_words().nbytes * self.variant.modulated)
        self._replace("stimuli", 4 * _FIRST_STIMULI)
        self._device.write(self._buffers["parameters"], parameter_words(layout, self._network, self.variant))
        self._device.write(self._buffers["offsets"], layout.static.offsets.astype(np.uint32))
        self._device.write(self._buffers["synapses"], synapse_words(layout.static, self.variant))
        self._bind()

    def _replace(self, name: str, size: int) -> None:
        if name in self._buffers:
            self._buffers.pop(name).destroy()
        self._buffers[name] = self._device.storage(size)

    def _bind(self) -> None:
        names = ("parameters", "states", "ring", "offsets", "synapses", "log", "batch", "stimuli")
        self.group = self._device.data_group(tuple(self._buffers[name] for name in names))

    def close(self) -> None:
        """Give the buffers back."""
        for buffer in self._buffers.values():
            buffer.destroy()
        self._buffers.clear()

    def use_flags(self) -> None:
        """From now on candidates carry a flag, because a sum may be 0."""
        if self.variant.flagged:
            return
        planes = self._ring()
        self.variant = dataclasses.replace(self.variant, flagged=True)
        sizes_of(self.layout, self.variant, self._bursts, self._device.adapter)
        cells = self.layout.max_delay * self.layout.neuron_count
        arrived = (planes != 0).any(axis=0, keepdims=True).astype(np.uint32)
        self._replace("ring", 4 * self.variant.planes * cells)
        self._device.write(self._buffers["ring"], np.concatenate([planes, arrived]))
        self._bind()

    def begin_batch(self, stimuli: npt.NDArray[np.uint32]) -> None:
        """Empty the words of a batch and put its stimulus in place."""
        self._device.write(self._buffers["batch"], np.zeros(BATCH_WORDS, np.uint32))
        if stimuli.nbytes > self._buffers["stimuli"].size:
            self._replace("stimuli", 2 * stimuli.nbytes)
            self._bind()
        self._device.write(self._buffers["stimuli"], stimuli)

    def _put_factors(self) -> None:
        """Write the factors of areas that the next burst has; later ones are made on the device."""
        if self.variant.modulated:
            self._device.write(self._buffers["batch"], self.modulation.factor_words(), 4 * BATCH_WORDS)

    def batch_words(self) -> npt.NDArray[np.uint32]:
        """What the bursts of a batch counted."""
        return self._device.read(self._buffers["batch"], np.uint32, BATCH_WORDS)

    def logged(self, first: int, end: int) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.float32]]:
        """Ids and potentials of the log from entry ``first`` to ``end``, as the device left them."""
        words = self._device.read(self._buffers["log"], np.uint32, 2 * (end - first), 2 * first)
        return np.ascontiguousarray(words[::2]), np.ascontiguousarray(words[1::2]).view(np.float32)

    def _ring(self) -> npt.NDArray[np.uint32]:
        """The planes of the ring, (planes, slots x neurons)."""
        cells = self.layout.max_delay * self.layout.neuron_count
        words = self._device.read(self._buffers["ring"], np.uint32, self.variant.planes * cells)
        return words.reshape(self.variant.planes, cells)

    def _slots(self, burst_count: int) -> npt.NDArray[np.int64]:
        """Slot of each row of the canonical ``pending``."""
        return (burst_count + 1 + np.arange(self.layout.max_delay)) % self.layout.max_delay

    def _pending(self, burst_count: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        planes = self._ring().reshape(self.variant.planes, self.layout.max_delay, self.layout.neuron_count)
        planes = planes[:, self._slots(burst_count)]
        sums = joined(planes[0], planes[1]) if self.variant.wide else planes[0].view(np.int32).astype(np.int64)
        return sums, planes[-1] != 0 if self.variant.flagged else sums != 0

    def _put_states(
        self,
        potentials: npt.NDArray[np.float32],
        countdowns: npt.NDArray[np.uint16],
        counts: npt.NDArray[np.uint16],
        status: npt.NDArray[np.uint32],
        **featured: npt.NDArray[np.float32],
    ) -> None:
        """Write what neurons have between bursts; ``featured`` are words of features, by name."""
        countdowns = running_countdowns(countdowns, self._network.neurons.valid_mask)
        kept = clamped(potentials) if self.variant.clamps else potentials
        columns = {
            "v": np.ascontiguousarray(kept).view(np.uint32),
            "counts": countdowns.astype(np.uint32) | (counts.astype(np.uint32) << _COUNT),
            "status": status,
            **{name: np.ascontiguousarray(column).view(np.uint32) for name, column in featured.items()},
        }
        nothing = np.zeros(len(status), np.uint32)
        words = np.stack([columns.get(name, nothing) for name in self.variant.state_fields], axis=1)
        self._device.write(self._buffers["states"], words)

    def _state_words(self) -> dict[str, npt.NDArray[np.uint32]]:
        """What neurons have between bursts, (N,) for each of ``Variant.state_fields``."""
        names, count = self.variant.state_fields, self.layout.neuron_count
        words = self._device.read(self._buffers["states"], np.uint32, len(names) * count).reshape(count, len(names))
        return {name: np.ascontiguousarray(words[:, place]) for place, name in enumerate(names)}

    def state(self, burst_count: int) -> EngineState:
        """The canonical state after burst ``burst_count``."""
        count, words = self.layout.neuron_count, self._state_words()
        pending, pending_candidate = self._pending(burst_count)
        table, countdowns = self._network.neurons, (words["counts"] & _LOW).astype(np.uint16)
        weights, eligibility = self._weights.copy(), self._eligibility.copy()
        last_fired, streak = np.zeros(count, np.int64), np.zeros(count, np.uint16)
        if self.host is not None:
            weights[self.host.table_rows] = self.host.weights
            eligibility[self.host.learning_rows] = self.host.eligibility
            last_fired, streak = self.host.history_of(burst_count)
        return EngineState(
            burst_count=burst_count,
            membrane_potentials=words["v"].view(np.float32),
            refractory_countdowns=shown_countdowns(countdowns, table.refractory_countdowns, table.valid_mask),
            consecutive_fire_counts=(words["counts"] >> _COUNT).astype(np.uint16),
            weights=weights,
            eligibility_traces=eligibility,
            was_candidate=(words["status"] & np.uint32(WAS_CANDIDATE)) != 0,
            pending=pending,
            pending_candidate=pending_candidate,
            fired_ids=self.fired[0].copy(),
            fired_potentials=self.fired[1].copy(),
            last_fired=last_fired,
            fire_streak=streak,
            history_bursts=0 if self.host is None else self.host.history,
            clamped=self.clamped,
            fixed_point=self._fixed_point,
            features=self._feature_state(burst_count, words),
        )

    def _feature_state(self, burst_count: int, words: dict[str, npt.NDArray[np.uint32]]) -> FeatureState | None:
        if not self._network.features:
            return None
        count, modulation = self.layout.neuron_count, self.modulation
        nothing = np.zeros(count, np.uint32)
        rates, leaks, held = (words.get(name, nothing).view(np.float32) for name in ("rate", "leak", "held"))
        trains = (words["status"] & np.uint32(IN_TRAIN)) != 0
        psps = self._network.synapses.postsynaptic_potentials.copy()
        if self.host is not None:
            psps[self.host.table_rows] = self.host.psps
        return FeatureState(
            *modulation.levels(burst_count, leaks),
            rates,
            leaks,
            trains,
            np.where(trains, held, np.float32(0)),
            modulation.signals.copy(),
            modulation.bursts_since_load(burst_count),
            psps,
        )

    def restore(self, state: EngineState) -> None:
        """Take over ``state``; constant contributions follow its weights.

        Raises
        ------
        NetworkError
            Weights that the fixed-point scale does not admit.
        """
        check_state(state, self._network, self._fixed_point)
        self._restore_weights(state)
        status = np.where(state.was_candidate, np.uint32(WAS_CANDIDATE), np.uint32(0))
        status[state.fired_ids] |= np.uint32(FIRED)
        featured: dict[str, npt.NDArray[np.float32]] = {}
        if state.features is not None:
            found = state.features
            status |= np.where(found.trains, np.uint32(IN_TRAIN), np.uint32(0))
            featured = {"held": found.held_potentials, "rate": found.firing_rates, "leak": found.homeostat_leaks}
            self.modulation.restore(found, state.burst_count)
        self._put_states(
            state.membrane_potentials,
            state.refractory_countdowns,
            state.consecutive_fire_counts,
            status,
            **featured,
        )
        self._put_factors()
        self.fired = state.fired_ids.copy(), state.fired_potentials.copy()
        self.clamped = state.clamped
        if self.host is not None:
            self.host.restore(state)
        self._restore_pending(state)

    def _restore_pending(self, state: EngineState) -> None:
        arriving = state.pending_candidate & self._network.neurons.valid_mask
        sums = np.where(arriving, state.pending, 0)
        if bool((arriving & (sums <= 0)).any()):  # what arrives later may cancel a negative one
            self.use_flags()
        shape = self.layout.max_delay, self.layout.neuron_count
        columns = list(lower_and_upper(sums))[: 1 + self.variant.wide]
        if self.variant.flagged:
            columns.append(arriving.astype(np.uint32))
        planes = np.zeros((self.variant.planes, *shape), np.uint32)
        planes[:, self._slots(state.burst_count)] = np.stack(columns)
        self._device.write(self._buffers["ring"], planes)

    def _restore_weights(self, state: EngineState) -> None:
        """Pack again if a constant contribution is another one now."""
        static = np.ones(len(state.weights), np.bool_)
        if self.host is not None:
            static[self.host.table_rows] = False
        if bool((static & (state.weights != self._weights)).any()):
            weights = np.where(static, state.weights, self._network.synapses.weights)
            synapses = dataclasses.replace(self._network.synapses, weights=weights)
            network = self._network.replace(synapses=synapses)
            layout = self._packed(network)
            refuse_overflow(layout, network, self._options, self._fixed_point)
            self._take_layout(layout, self.variant.flagged)
        self._weights = state.weights.copy()
        self._eligibility = state.eligibility_traces.copy()
