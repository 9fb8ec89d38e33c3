"""Converts between the device's buffers and the canonical ``EngineState``."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.device.protocol import DeviceBuffer, DeviceRuntime, DeviceStream
from burstproof.engine.countdowns import running_countdowns, shown_countdowns
from burstproof.engine.cuda.host.buffers import DeviceBuffers
from burstproof.engine.cuda.host.devices import NOTHING
from burstproof.engine.cuda.host.features import FeatureRecord, kept_potentials
from burstproof.engine.cuda.host.pending import Pending, PendingOnDevice
from burstproof.engine.cuda.kernels.control import BURST, CLAMPED, CONTROL_LENGTH, HISTORY, SETTLED, SLOT
from burstproof.engine.cuda.kernels.marks import CANDIDATE_MARK, FIRED_MARK, marks_of
from burstproof.engine.cuda.plan.buffers import ring_slots
from burstproof.engine.cuda.plan.histories import firings_of, words_of
from burstproof.engine.cuda.plan.packed import Packed
from burstproof.engine.sharded.shard import StatePart
from burstproof.engine.state import EngineState

_COUNTERS = {"tallies", "span_counts", "progress", "recalled_counts", "calendar_counts", "calendar_spares"}
_COUNTERS |= {"queue_lengths", "queue_spills", "bucket_counts", "pieces"}
"""Counters of single bursts and the burst numbers beside them; cleared when a state is restored."""

Floats = npt.NDArray[np.float32]


class DeviceState(DeviceBuffers):
    """Reads and writes the state of a network or a shard.

    The firing history for plasticity covers all ``sources`` neurons of the network, even on a shard.
    """

    def __init__(
        self,
        runtime: DeviceRuntime,
        stream: DeviceStream,
        buffers: dict[str, DeviceBuffer],
        packed: Packed,
        sources: int | None = None,
    ) -> None:
        super().__init__(runtime, stream, buffers)
        self._variant = packed.variant
        self._layout = packed.layout
        self._sources = packed.sizes.neurons if sources is None else sources
        self._ring_length = ring_slots(packed.sizes, packed.variant)
        self._fixed_point = packed.fixed_point
        self._table = packed.network.neurons
        self._packed = packed
        self._features = FeatureRecord(packed) if packed.feature_plan is not None else None
        self.pending = PendingOnDevice(self, packed)

    @property
    def keeps_traces(self) -> bool:
        """Whether eligibility traces lie on the device."""
        return self._variant.plastic or self._variant.extras.degenerates

    def adopt(self, place: int, model: int) -> None:
        """Give the neuron at ``place`` the base parameters of neuron ``model``."""
        if self._features is not None:
            self._features.adopt(place, model)

    def _neurons(self, name: str, used: bool, dtype: type[np.generic]) -> npt.NDArray[Any]:
        if not used:
            return np.zeros(self._layout.neuron_count, dtype)
        return self.read(name)[: self._layout.neuron_count].astype(dtype, copy=False)

    def _potentials(self) -> npt.NDArray[np.float32]:
        storage = self._variant.features.storage
        return storage.decode(self._neurons("potentials", True, storage.precision.dtype.type))

    def capture(
        self, members: npt.NDArray[np.uint32] | slice, clamped: bool, pending: Pending | None = None
    ) -> StatePart:
        """The state of the neurons on the device, whose ids are ``members``.

        ``pending`` are the pending contributions; by default they are read from the slots.
        """
        variant = self._variant
        control = self.read("control")
        burst = int(control[BURST])
        if pending is None:
            pending = self.pending.read_slots(burst)
        table = self._table
        countdowns = self._neurons("countdowns", variant.features.refractory_periods, np.uint16)
        marks = self._neurons("marks", variant.features.restarts, np.uint8)
        last_fired, streaks = self._history(burst)
        rows, weights, eligibility, psps = self._learnt()
        features = self._features.capture(self.read, burst, psps) if self._features is not None else None
        state = EngineState(
            burst_count=burst,
            membrane_potentials=self._potentials(),
            refractory_countdowns=shown_countdowns(countdowns, table.refractory_countdowns, table.valid_mask),
            consecutive_fire_counts=self._neurons("counts", True, np.uint16),
            weights=weights,
            eligibility_traces=eligibility,
            was_candidate=(marks & CANDIDATE_MARK) != 0,
            pending=pending[0],
            pending_candidate=pending[1],
            fired_ids=NOTHING[0],
            fired_potentials=NOTHING[1],
            last_fired=last_fired[members],
            fire_streak=streaks[members],
            history_bursts=int(control[HISTORY]),
            clamped=clamped or bool(control[CLAMPED]),
            fixed_point=self._fixed_point,
            features=features,
        )
        return StatePart(members, rows, state)

    def _learnt(self) -> tuple[npt.NDArray[np.int64], Floats, Floats, Floats]:
        """Rows of the network's synapse table that can change, with their weights, eligibility traces and psps."""
        plastic, computed = self._layout.plastic, self._layout.computed
        places = np.empty(0, np.int64) if plastic is None else plastic.positions
        features = self._packed.network.features
        if computed is not None and (self._variant.extras.degenerates or features.associative):
            places = np.arange(len(computed.rows))
        if computed is None or not len(places):
            return np.empty(0, np.int64), np.empty(0, np.float32), np.empty(0, np.float32), np.empty(0, np.float32)
        weights, traces, psps = (self.read(name)[places] for name in ("weights", "eligibility", "psps"))
        return computed.rows[places], weights, traces, psps

    def _history(self, burst: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint16]]:
        """Last firings and streaks of all sources; 0 where no plasticity window reaches back to them."""
        if self._layout.plastic is None:
            return np.zeros(self._sources, np.int64), np.zeros(self._sources, np.uint16)
        longest = self._layout.plastic.longest_window
        if self._variant.defers_learning:
            last_fired, streaks = firings_of(self.read("histories")[: self._sources], burst, longest)
        else:
            last_fired, streaks = (self.read(name)[: self._sources] for name in ("last_fired", "streaks"))
        out_of_reach = last_fired <= max(0, burst - (longest - 1))
        last_fired[out_of_reach] = 0
        streaks[out_of_reach] = 0
        return last_fired, streaks

    def write_neurons(
        self,
        burst: int,
        potentials: Floats,
        counts: npt.NDArray[np.uint16],
        countdowns: npt.NDArray[np.uint16],
    ) -> None:
        """Write the neurons' state after ``burst`` except their marks, and a control array without history."""
        control, features = np.zeros(CONTROL_LENGTH, np.int64), self._variant.features
        control[[BURST, SLOT, SETTLED]] = burst, burst % self._ring_length, burst
        self.write("control", control)
        self.write("potentials", features.storage.encode(kept_potentials(self._packed, potentials)))
        self.write("counts", counts)
        if features.refractory_periods:
            self.write("countdowns", running_countdowns(countdowns, self._table.valid_mask))

    def restore(self, state: EngineState) -> None:
        """Write all of ``state``; the network must be packed for it (``packed_for``)."""
        self.write_neurons(
            state.burst_count,
            state.membrane_potentials,
            state.consecutive_fire_counts,
            state.refractory_countdowns,
        )
        if self._variant.features.restarts:
            self.write("marks", self._marks(state))
        self.write_control(HISTORY, state.history_bursts)
        self.write_control(CLAMPED, state.clamped)
        for name in _COUNTERS & self._buffers.keys():
            self.clear(name)
        self.pending.restore(state)
        self._restore_plastic(state)

    def _marks(self, state: EngineState) -> npt.NDArray[np.uint8]:
        accumulates = self._layout.neurons.mp_charge_accumulation
        marks = marks_of(accumulates) | np.where(state.was_candidate, np.uint8(CANDIDATE_MARK), np.uint8(0))
        restarting = state.fired_ids[~accumulates[state.fired_ids]]
        marks[restarting] |= np.uint8(FIRED_MARK)
        return marks

    def _restore_plastic(self, state: EngineState) -> None:
        computed = self._layout.computed
        if computed is not None and len(computed.rows):
            self.write("weights", state.weights[computed.rows])
            if self.keeps_traces:
                self.write("eligibility", state.eligibility_traces[computed.rows])
        plastic = self._layout.plastic
        if self._variant.defers_learning and plastic is not None:
            self.write("histories", words_of(state.last_fired, state.fire_streak, state.burst_count))
            missing = np.maximum(plastic.windows - 1 - state.history_bursts, 0)
            self.write("rule_begins", state.burst_count + 1 + missing)
        elif plastic is not None:
            self.write("last_fired", state.last_fired)
            self.write("streaks", state.fire_streak)
        if self._features is not None and state.features is not None:
            for name, values in self._features.restored(state.features, state.burst_count):
                if self.holds(name, values):
                    self.write(name, values)
