"""Between the device's buffers and the canonical EngineState."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.device.protocol import DeviceBuffer, DeviceRuntime, DeviceStream
from burstproof.engine.countdowns import running_countdowns, shown_countdowns
from burstproof.engine.cuda.host.changes import Changes
from burstproof.engine.cuda.host.devices import NOTHING
from burstproof.engine.cuda.host.features import FeatureRecord, kept_potentials
from burstproof.engine.cuda.kernels.control import BURST, CLAMPED, CONTROL_LENGTH, HISTORY, SETTLED, SLOT
from burstproof.engine.cuda.kernels.marks import CANDIDATE_MARK, FIRED_MARK, marks_of
from burstproof.engine.cuda.plan.buffers import FIRST_SPARE, calendar_room, calendar_shift, ring_slots, slot_stride
from burstproof.engine.cuda.plan.entries import amounts_of
from burstproof.engine.cuda.plan.histories import firings_of, words_of
from burstproof.engine.cuda.plan.packed import Packed
from burstproof.engine.sharded.shard import StatePart
from burstproof.engine.state import EngineState

_COUNTERS = {"tallies", "span_counts", "piece_counts", "recalled_counts", "calendar_counts", "calendar_spares"}
_COUNTERS |= {"queue_lengths", "queue_spills", "bucket_counts"}
"""Buffers that count within a burst; they start at 0."""


_PIECE = 1 << 22
"""Words of a calendar that the host reads at a time."""

Floats = npt.NDArray[np.float32]
Pending = tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]
"""Sums and candidates by row and neuron."""


class DeviceState:
    """Reads and writes the state of a network or a shard; the stream must be idle apart from these copies.

    The history that plasticity needs is that of all ``sources`` neurons of the network.
    """

    def __init__(
        self,
        runtime: DeviceRuntime,
        stream: DeviceStream,
        buffers: dict[str, DeviceBuffer],
        packed: Packed,
        sources: int | None = None,
    ) -> None:
        self._runtime = runtime
        self._stream = stream
        self._buffers = buffers
        self._variant = packed.variant
        self._layout = packed.layout
        self._sources = packed.sizes.neurons if sources is None else sources
        self._ring_length = ring_slots(packed.sizes, packed.variant)
        self._stride = slot_stride(packed.sizes.neurons, packed.variant)
        self._fixed_point = packed.fixed_point
        self._table = packed.network.neurons
        self._packed = packed
        self._features = FeatureRecord(packed) if packed.feature_plan is not None else None
        self._changes: Changes | None = None

    @property
    def keeps_traces(self) -> bool:
        """Whether eligibility traces lie on the device."""
        return self._variant.plastic or self._variant.extras.degenerates

    def holds(self, name: str, values: npt.NDArray[Any]) -> bool:
        """Whether there is a buffer ``name`` with room for ``values``: what a variant does not use has none."""
        return name in self._buffers and len(values) <= self._buffers[name].spec.count

    def buffer(self, name: str) -> DeviceBuffer:
        """The buffer called ``name``."""
        return self._buffers[name]

    def read(self, name: str) -> npt.NDArray[Any]:
        """The whole buffer ``name``."""
        buffer = self._buffers[name]
        host = np.empty(buffer.spec.count, buffer.spec.dtype)
        self._runtime.download(host, buffer, self._stream)
        self._stream.synchronize()
        return host

    def read_at(self, name: str, place: int) -> Any:
        """One element of buffer ``name``."""
        buffer = self._buffers[name]
        host = np.empty(1, buffer.spec.dtype)
        self._runtime.download(host, buffer, self._stream, place)
        self._stream.synchronize()
        return host[0]

    def write(self, name: str, values: npt.NDArray[Any]) -> None:
        """Fill buffer ``name`` from its start."""
        buffer = self._buffers[name]
        host = np.ascontiguousarray(values, buffer.spec.dtype)
        self._runtime.upload(buffer, host, self._stream)
        self._stream.synchronize()

    def clear(self, name: str) -> None:
        """Set buffer ``name`` to zeros."""
        self._runtime.fill(self._buffers[name], 0, self._stream)
        self._stream.synchronize()

    def write_control(self, place: int, value: int) -> None:
        """Set one element of the control array."""
        self._runtime.upload(self._buffers["control"], np.array([value], np.int64), self._stream, place)
        self._stream.synchronize()

    def write_at(self, name: str, place: int, value: Any) -> None:
        """Set one element of buffer ``name``."""
        buffer = self._buffers[name]
        self._runtime.upload(buffer, np.array([value], buffer.spec.dtype), self._stream, place)
        self._stream.synchronize()

    def change(self, name: str, places: npt.NDArray[Any], values: npt.NDArray[np.float32]) -> None:
        """Queue changes of single elements of the float32 buffer ``name``, before the bursts that come."""
        self._changes = self._changes or Changes(self._runtime, self._stream)
        self._changes.queue(self._buffers[name], places, values)

    def page_locked(self, name: str) -> npt.NDArray[Any]:
        """Host memory that ``bring`` can fill with buffer ``name``."""
        spec = self._buffers[name].spec
        return self._runtime.pinned(spec.count, spec.dtype)

    def bring(self, name: str, host: npt.NDArray[Any]) -> None:
        """Queue a copy of buffer ``name`` into page-locked ``host``, behind the bursts that are under way."""
        self._runtime.download(host, self._buffers[name], self._stream)

    def wait(self) -> None:
        """Block the host until all that is queued is done."""
        self._stream.synchronize()

    def adopt(self, place: int, model: int) -> None:
        """The neuron at ``place`` has the base parameters of ``model`` from now on."""
        if self._features is not None:
            self._features.adopt(place, model)

    def _neurons(self, name: str, used: bool, dtype: type[np.generic]) -> npt.NDArray[Any]:
        if not used:
            return np.zeros(self._layout.neuron_count, dtype)
        return self.read(name)[: self._layout.neuron_count].astype(dtype, copy=False)

    def _potentials(self) -> npt.NDArray[np.float32]:
        storage = self._variant.features.storage
        return storage.decode(self._neurons("potentials", True, storage.precision.dtype.type))

    def _slots(self, burst: int, rows: int) -> npt.NDArray[np.int64]:
        """Slot of each of the first rows of ``EngineState.pending`` after ``burst``."""
        coming = burst + 1 + np.arange(rows)
        if self._variant.calendar_tiles:
            return np.where(coming == burst + 1, coming % FIRST_SPARE, FIRST_SPARE + coming % self._variant.calendar)
        return coming % self._ring_length

    def read_ring(self) -> Pending:
        """Sums and candidates of all slots."""
        shape, word, neurons = (self._ring_length, self._stride), self._variant.word, self._layout.neuron_count
        decoded = word.decode(self.read("sums")[: shape[0] * shape[1] * word.elements])
        return decoded[0].reshape(shape)[:, :neurons], decoded[1].reshape(shape)[:, :neurons]

    def read_slots(self, burst: int) -> Pending:
        """What arrives in the bursts after ``burst``, where slots say it."""
        slots, ring = self._slots(burst, self._layout.max_delay), self.read_ring()
        return ring[0][slots], ring[1][slots]

    def read_coming(self, send_ahead: Callable[[int], None]) -> Pending:
        """What arrives in the coming bursts, where fired lists say it: ``send_ahead`` adds that of one to the slot."""
        cells, rows = self.read("sums"), [] if self._variant.queues else [self.read_ring()]
        for ahead in range(len(rows), self._layout.max_delay):
            self.clear("sums")
            send_ahead(ahead)
            rows.append(self.read_ring())
        self.write("sums", cells)
        return np.concatenate([row[0] for row in rows]), np.concatenate([row[1] for row in rows])

    def read_waiting(self, burst: int) -> Pending:
        """What arrives in the bursts after ``burst``, where a calendar says it of those after the next."""
        rows, ring = self._layout.max_delay, self.read_ring()
        slots = self._slots(burst, rows if self._variant.calendar_tiles else 1)
        shape = (rows, ring[0].shape[1])
        sums, candidates = np.zeros(shape, np.int64), np.zeros(shape, np.bool_)
        sums[: len(slots)], candidates[: len(slots)] = ring[0][slots], ring[1][slots]
        for row in range(1, rows):
            for targets, amounts in self._read_calendar(burst + 1 + row):
                np.add.at(sums[row], targets, amounts)
                candidates[row, targets] = True
        return sums, candidates

    def _read_calendar(self, burst: int) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
        """Targets and amounts of what waits for ``burst``, in any order; piece by piece, for there may be gigabytes."""
        variant, sizes, counts = self._variant, self._packed.sizes, self.read("calendar_counts")
        shift, room = calendar_shift(sizes, variant), calendar_room(sizes, variant)
        tiles = max(1, variant.calendar_tiles)
        buffer, palette = self._buffers["calendar_words"], self.read("palette") if variant.palette else None
        for tile in range(tiles):
            first = (burst % variant.calendar * tiles + tile) * room
            count = min(int(counts[burst % (2 * variant.calendar) * tiles + tile]), room)
            for start in range(0, count, _PIECE):
                words = np.empty(min(_PIECE, count - start), buffer.spec.dtype)
                self._runtime.download(words, buffer, self._stream, first + start)
                self._stream.synchronize()
                targets = (tile << shift) + (words.astype(np.int64) & ((1 << shift) - 1))
                yield targets, amounts_of(words, shift, palette)

    def capture(
        self, members: npt.NDArray[np.uint32] | slice, clamped: bool, pending: Pending | None = None
    ) -> StatePart:
        """The state of what is on the device; ``members`` are the ids of its neurons.

        ``pending`` is what arrives in the coming bursts, where the slots do not say it.
        """
        variant = self._variant
        control = self.read("control")
        burst = int(control[BURST])
        if pending is None:
            pending = self.read_slots(burst)
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
        """Rows of the network's synapse table that change, their weights, eligibility traces and psps."""
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
        """Last firings and streaks, as far as a window still reaches them."""
        if self._layout.plastic is None:
            return np.zeros(self._sources, np.int64), np.zeros(self._sources, np.uint16)
        longest = self._layout.plastic.longest_window
        if self._variant.defers_learning:
            last_fired, streaks = firings_of(self.read("histories")[: self._sources], burst, longest)
        else:
            last_fired, streaks = (self.read(name)[: self._sources] for name in ("last_fired", "streaks"))
        lost = last_fired <= max(0, burst - (longest - 1))
        last_fired[lost] = 0
        streaks[lost] = 0
        return last_fired, streaks

    def restore(self, state: EngineState) -> None:
        """Write ``state`` over everything; the kernels must be those for it (``packed_for``)."""
        variant = self._variant
        control = np.zeros(CONTROL_LENGTH, np.int64)
        control[[BURST, HISTORY, CLAMPED]] = state.burst_count, state.history_bursts, state.clamped
        control[SLOT] = state.burst_count % self._ring_length
        control[SETTLED] = state.burst_count
        self.write("control", control)
        self.write(
            "potentials", variant.features.storage.encode(kept_potentials(self._packed, state.membrane_potentials))
        )
        self.write("counts", state.consecutive_fire_counts)
        if variant.features.refractory_periods:
            self.write("countdowns", running_countdowns(state.refractory_countdowns, self._table.valid_mask))
        if variant.features.restarts:
            self.write("marks", self._marks(state))
        for name in _COUNTERS & self._buffers.keys():
            self.clear(name)
        self._restore_ring(state)
        self._restore_plastic(state)

    def _marks(self, state: EngineState) -> npt.NDArray[np.uint8]:
        accumulates = self._layout.neurons.mp_charge_accumulation
        marks = marks_of(accumulates) | np.where(state.was_candidate, np.uint8(CANDIDATE_MARK), np.uint8(0))
        restarting = state.fired_ids[~accumulates[state.fired_ids]]
        marks[restarting] |= np.uint8(FIRED_MARK)
        return marks

    def _restore_ring(self, state: EngineState) -> None:
        slots = self._slots(state.burst_count, len(state.pending))
        arriving = state.pending_candidate & self._table.valid_mask
        shape = (self._ring_length, self._stride)
        neurons = slice(self._layout.neuron_count)
        sums, candidates = np.zeros(shape, np.int64), np.zeros(shape, np.bool_)
        sums[slots, neurons] = state.pending
        candidates[slots, neurons] = arriving
        if self._variant.calendar_tiles:
            self._restore_spares(state.burst_count, arriving)
        self.write("sums", self._variant.word.encode(sums, candidates))

    def _restore_spares(self, burst: int, arriving: npt.NDArray[np.bool_]) -> None:
        """Note the later bursts whose slots hold something."""
        spares = np.zeros(2 * self._variant.calendar, np.uint32)
        later = burst + 1 + np.arange(1, len(arriving))
        spares[later % len(spares)] = arriving[1:].any(axis=1)
        self.write("calendar_spares", spares)

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
