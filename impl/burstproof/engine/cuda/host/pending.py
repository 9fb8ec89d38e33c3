"""Pending contributions: conversion between the device's buffers and the rows of ``EngineState.pending``."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from burstproof.engine.cuda.host.buffers import DeviceBuffers
from burstproof.engine.cuda.plan.buffers import FIRST_SPARE, calendar_room, calendar_shift, ring_slots, slot_stride
from burstproof.engine.cuda.plan.entries import amounts_of
from burstproof.engine.cuda.plan.packed import Packed
from burstproof.engine.state import EngineState

_PIECE = 1 << 22
"""Calendar words per download."""

Pending = tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]
"""Sums, int64, and candidates, bool; both (rows, N), with a row for each coming burst."""


class PendingOnDevice:
    """Reads and writes the ring of slots and the calendar."""

    def __init__(self, buffers: DeviceBuffers, packed: Packed) -> None:
        self._buffers = buffers
        self._packed = packed
        self._variant = packed.variant
        self._layout = packed.layout
        self._shape = ring_slots(packed.sizes, packed.variant), slot_stride(packed.sizes.neurons, packed.variant)

    def _slots(self, burst: int, rows: int) -> npt.NDArray[np.int64]:
        """Slots of the first ``rows`` rows of ``EngineState.pending`` after ``burst``."""
        coming = burst + 1 + np.arange(rows)
        if self._variant.calendar_tiles:
            is_next = coming == burst + 1
            return np.where(is_next, coming % FIRST_SPARE, FIRST_SPARE + coming % self._variant.calendar)
        return coming % self._shape[0]

    def read_ring(self) -> Pending:
        """Sums and candidates of all slots."""
        shape, word, neurons = self._shape, self._variant.word, self._layout.neuron_count
        decoded = word.decode(self._buffers.read("sums")[: shape[0] * shape[1] * word.elements])
        return decoded[0].reshape(shape)[:, :neurons], decoded[1].reshape(shape)[:, :neurons]

    def read_slots(self, burst: int) -> Pending:
        """What arrives after ``burst``, if the slots hold all of it."""
        slots, ring = self._slots(burst, self._layout.max_delay), self.read_ring()
        return ring[0][slots], ring[1][slots]

    def read_coming(self, send_ahead: Callable[[int], None]) -> Pending:
        """What arrives in the coming bursts, computed from kept fired lists.

        ``send_ahead(ahead)`` adds to the slot what arrives ``ahead`` bursts after the next one.
        """
        cells = self._buffers.read("sums")
        rows = [] if self._variant.queues else [self.read_ring()]
        for ahead in range(len(rows), self._layout.max_delay):
            self._buffers.clear("sums")
            send_ahead(ahead)
            rows.append(self.read_ring())
        self._buffers.write("sums", cells)
        return np.concatenate([row[0] for row in rows]), np.concatenate([row[1] for row in rows])

    def read_waiting(self, burst: int) -> Pending:
        """What arrives after ``burst``: the next burst's share is in its slot, that of later ones in the calendar."""
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
        """Targets and amounts in the calendar for ``burst``, unordered; in pieces, as there may be gigabytes."""
        variant, sizes, counts = self._variant, self._packed.sizes, self._buffers.read("calendar_counts")
        shift, room = calendar_shift(sizes, variant), calendar_room(sizes, variant)
        tiles = max(1, variant.calendar_tiles)
        palette = self._buffers.read("palette") if variant.palette else None
        for tile in range(tiles):
            first = (burst % variant.calendar * tiles + tile) * room
            count = min(int(counts[burst % (2 * variant.calendar) * tiles + tile]), room)
            for start in range(0, count, _PIECE):
                words = self._buffers.read_from("calendar_words", first + start, min(_PIECE, count - start))
                targets = (tile << shift) + (words.astype(np.int64) & ((1 << shift) - 1))
                yield targets, amounts_of(words, shift, palette)

    def restore(self, state: EngineState) -> None:
        """Write the pending contributions of ``state``."""
        slots = self._slots(state.burst_count, len(state.pending))
        arriving = state.pending_candidate & self._packed.network.neurons.valid_mask
        neurons = slice(self._layout.neuron_count)
        sums, candidates = np.zeros(self._shape, np.int64), np.zeros(self._shape, np.bool_)
        sums[slots, neurons] = state.pending
        candidates[slots, neurons] = arriving
        if self._variant.calendar_tiles:
            self._restore_spares(state.burst_count, arriving)
        self._buffers.write("sums", self._variant.word.encode(sums, candidates))

    def _restore_spares(self, burst: int, arriving: npt.NDArray[np.bool_]) -> None:
        """Flag the spare slots that hold something, by burst."""
        spares = np.zeros(2 * self._variant.calendar, np.uint32)
        later = burst + 1 + np.arange(1, len(arriving))
        spares[later % len(spares)] = arriving[1:].any(axis=1)
        self._buffers.write("calendar_spares", spares)
