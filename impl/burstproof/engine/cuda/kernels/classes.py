"""What holds in a burst for classes of neurons: in device memory, or in tables in a block's shared memory.

Few classes fit into such tables, close to the neurons. Within a batch each block then works out signals and factors
itself, from the drivers that fired in the burst before, so no kernel is needed between two bursts. The first burst of a
batch reads them from where the last batch's ``modulate`` wrote them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from burstproof.device.numba_cuda import cuda
from burstproof.engine.cuda.args import Bytes, Extras, Floats, Modulation, Turn
from burstproof.engine.cuda.kernels.modulators import make_first_drive, make_scale_classes, make_signal_of
from burstproof.engine.cuda.plan.features import HOMEOSTAT_NUMBERS, MOST_CLASSES, MOST_MODULATORS
from burstproof.engine.cuda.plan.shard_variant import ShardVariant


class Classes(NamedTuple):
    """Rows of ``args.Extras`` that hold in a burst: factors, sleep bounds, states; class 0 is at index ``first``.

    ``numbers`` are those of the homeostats, which have one row for all bursts.
    """

    factors: Floats
    bounds: Floats
    states: Bytes
    numbers: Floats
    first: np.uint32


def make_classes(shard: ShardVariant) -> Callable[..., Any]:
    """``classes_of(burst, turn, extras, modulation)`` -> ``Classes``.

    All threads of a block call it. Tables in shared memory are complete after the block's next barrier.
    """
    if not shard.extras.adapts:
        return _make_none()
    return _make_own_tables(shard) if shard.tables else _make_kept_tables()


def _make_own_tables(shard: ShardVariant) -> Callable[..., Any]:
    homeostats, scaled = shard.extras.homeostats, shard.makes_factors
    take_states, take_factors, work_out = _make_take_states(), _make_take_factors(scaled), _make_work_out()
    classes, factors_room = MOST_CLASSES, 3 * MOST_CLASSES if scaled else 1
    numbers_room = HOMEOSTAT_NUMBERS * MOST_CLASSES if homeostats else 1
    one, zero = np.uint32(1), np.uint32(0)

    def classes_of(burst: np.uint32, turn: Turn, extras: Extras, modulation: Modulation) -> Any:
        factors = cuda.shared.array(factors_room, np.float32)
        bounds = cuda.shared.array(classes, np.float32)
        states = cuda.shared.array(classes, np.uint8)
        numbers = cuda.shared.array(numbers_room, np.float32)
        row = np.uint32(burst & one)
        if homeostats:
            take_states(row, extras, states, numbers)
        if scaled and turn.place != zero:
            work_out(np.uint32(burst - one), modulation, factors, bounds)
        else:
            take_factors(row, extras, factors, bounds)
        return Classes(factors, bounds, states, numbers, zero)

    return cuda.jit(device=True)(classes_of)  # type: ignore[no-any-return]


def _make_take_states() -> Callable[..., Any]:
    size, one = np.uint32(HOMEOSTAT_NUMBERS), np.uint32(1)

    def take_states(row: np.uint32, extras: Extras, states: Bytes, numbers: Floats) -> None:
        """Begins with the block's last thread, because the first ones work out factors."""
        item = np.uint32(np.uint32(cuda.blockDim.x) - one - np.uint32(cuda.threadIdx.x))
        while item < np.uint32(size * extras.class_count):
            numbers[item] = extras.homeostats[item]
            if item < extras.class_count:
                states[item] = extras.class_states[np.uint32(row * extras.class_count + item)]
            item = np.uint32(item + np.uint32(cuda.blockDim.x))

    return cuda.jit(device=True)(take_states)  # type: ignore[no-any-return]


def _make_take_factors(scaled: bool) -> Callable[..., Any]:
    three = np.uint32(3)

    def take_factors(row: np.uint32, extras: Extras, factors: Floats, bounds: Floats) -> None:
        item, count = np.uint32(cuda.threadIdx.x), np.uint32(three * extras.class_count)
        while item < count:
            if scaled:
                factors[item] = extras.area_factors[np.uint32(row * count + item)]
            if item < extras.class_count:
                bounds[item] = extras.sleep_bounds[np.uint32(row * extras.class_count + item)]
            item = np.uint32(item + np.uint32(cuda.blockDim.x))

    return cuda.jit(device=True)(take_factors)  # type: ignore[no-any-return]


def _make_work_out() -> Callable[..., Any]:
    first_drive, signal_of, scale_classes = make_first_drive(True), make_signal_of(), make_scale_classes()
    zero = np.uint32(0)

    def work_out(last: np.uint32, modulation: Modulation, factors: Floats, bounds: Floats) -> None:
        """Signals, factors and bounds that follow from the drives of burst ``last``."""
        signals = cuda.shared.array(MOST_MODULATORS, np.float32)
        first, item = first_drive(last, modulation.drives), np.uint32(cuda.threadIdx.x)
        while item < modulation.modulator_count:
            signals[item] = signal_of(first, item, modulation)
            item = np.uint32(item + np.uint32(cuda.blockDim.x))
        cuda.syncthreads()
        scale_classes(signals, zero, modulation, factors, bounds, zero)

    return cuda.jit(device=True)(work_out)  # type: ignore[no-any-return]


def _make_kept_tables() -> Callable[..., Any]:
    one = np.uint32(1)

    def classes_of(burst: np.uint32, turn: Turn, extras: Extras, modulation: Any) -> Any:
        first = np.uint32((burst & one) * extras.class_count)
        return Classes(extras.area_factors, extras.sleep_bounds, extras.class_states, extras.homeostats, first)

    return cuda.jit(device=True)(classes_of)  # type: ignore[no-any-return]


def _make_none() -> Callable[..., Any]:
    def classes_of(burst: np.uint32, turn: Turn, extras: Any, modulation: Any) -> Any:
        return ()

    return cuda.jit(device=True)(classes_of)  # type: ignore[no-any-return]
