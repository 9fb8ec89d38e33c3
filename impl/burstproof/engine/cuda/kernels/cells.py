"""Device functions on the cells of the FCL (``plan.word``): add to a cell, read it, clear it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from burstproof.device.numba_cuda import cuda
from burstproof.engine.cuda.args import Amount, Fcl
from burstproof.engine.cuda.kernels.places import make_add
from burstproof.engine.cuda.plan.variant import Variant


def make_deliver(variant: Variant) -> Callable[..., Any]:
    """``deliver(place, amount, fcl)``: add a contribution, and its mark, to cell ``place`` of the ring.

    Packed cells share a 32-bit word; no sum overflows, so there is no carry into a neighbour.
    """
    word = variant.word
    per_word = max(1, 32 // word.bits)
    shift, low, bits = np.uint64(per_word.bit_length() - 1), np.uint64(per_word - 1), np.uint32(word.bits)
    added, mark_bits, one, two = word.added, np.uint32(word.mark_bits), np.uint64(1), np.uint64(2)
    add = make_add()

    def plain(place: np.uint64, amount: Amount, fcl: Fcl) -> None:
        add(fcl.sums, place, added(amount))

    def packed(place: np.uint64, amount: Amount, fcl: Fcl) -> None:
        amount = np.int32(np.uint32(amount) << np.uint32(np.uint32(place & low) * bits))
        add(fcl.sums, np.uint64(place >> shift), amount)

    def counted(place: np.uint64, amount: Amount, fcl: Fcl) -> None:
        add(fcl.sums, place, added((added(amount) << mark_bits) + added(1)))

    def beside(place: np.uint64, amount: Amount, fcl: Fcl) -> None:
        add(fcl.sums, np.uint64(place * two), added(amount))
        fcl.sums[np.uint64(place * two + one)] = added(1)

    if word.beside:
        return cuda.jit(device=True)(beside)  # type: ignore[no-any-return]
    return cuda.jit(device=True)(counted if word.marked else packed if word.packed else plain)  # type: ignore[no-any-return]


def make_place(variant: Variant) -> Callable[..., Any]:
    """``place_of(cell)`` -> uint64 index in ``Fcl.cells`` of the sum of a cell of the ring."""
    elements = np.uint64(variant.word.elements)

    def place_of(cell: np.uint64) -> Any:
        return np.uint64(cell * elements)

    return cuda.jit(device=True)(place_of)  # type: ignore[no-any-return]


def make_load(variant: Variant) -> Callable[..., Any]:
    """``load(cell, fcl)`` -> word of a cell of the ring, as ``Word.added``."""
    added, place_of = variant.word.added, make_place(variant)

    def load(cell: np.uint64, fcl: Fcl) -> Any:
        return added(fcl.cells[place_of(cell)])

    return cuda.jit(device=True)(load)  # type: ignore[no-any-return]


def make_is_candidate(variant: Variant) -> Callable[..., Any]:
    """``is_candidate(word, cell, fcl)``: whether anything arrived in a cell, which holds ``word``."""
    zero, place_of, one = variant.word.added(0), make_place(variant), np.uint64(1)

    def by_word(word: Any, cell: np.uint64, fcl: Fcl) -> Any:
        return word != zero

    def by_mark(word: Any, cell: np.uint64, fcl: Fcl) -> Any:
        return fcl.cells[np.uint64(place_of(cell) + one)] != zero

    return cuda.jit(device=True)(by_mark if variant.word.beside else by_word)  # type: ignore[no-any-return]


def make_sum_of(variant: Variant) -> Callable[..., Any]:
    """``sum_of(word)``: the sum in a word, in the accumulator's type."""
    number, shift = variant.accumulator, np.uint32(variant.word.shift)

    def plain(word: Any) -> Any:
        return number(word)

    def shifted(word: Any) -> Any:
        return number(word >> shift)

    return cuda.jit(device=True)(shifted if variant.word.shift else plain)  # type: ignore[no-any-return]


def make_clear(variant: Variant) -> Callable[..., Any]:
    """``clear(cell, fcl)``: reset a cell of the ring."""
    zero, place_of, one, beside = variant.word.cell(0), make_place(variant), np.uint64(1), variant.word.beside

    def elsewhere(cell: np.uint64, fcl: Fcl) -> None:
        """Owners keep and clear their sums in shared memory (``kernels.owners``)."""

    if variant.queues is not None:
        return cuda.jit(device=True)(elsewhere)  # type: ignore[no-any-return]

    def clear(cell: np.uint64, fcl: Fcl) -> None:
        fcl.cells[place_of(cell)] = zero
        if beside:
            fcl.cells[np.uint64(place_of(cell) + one)] = zero

    return cuda.jit(device=True)(clear)  # type: ignore[no-any-return]
