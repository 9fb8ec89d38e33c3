"""What modulators make of a burst's parameters: factors from the device's memory, or worked out by every block.

In a batch the drivers that fired in the burst before lie there when a burst begins, so that no kernel need come between
the two: each block makes the signals and the factors of all classes in shared memory, which are few. The first burst of
a batch takes them from where the last batch's ``modulate`` left them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from burstproof.device.numba_cuda import cuda
from burstproof.engine.cuda.args import Extras, Floats, Modulation, Turn
from burstproof.engine.cuda.kernels.features import make_bound_of, make_product, rules_of_features
from burstproof.engine.cuda.plan.features import DRIVE_ROWS, MOST_CLASSES, MOST_MODULATORS, NOT_FIRED
from burstproof.engine.cuda.plan.shard_variant import ShardVariant
from burstproof.engine.features.tables import EXCITABILITY


class Factors(NamedTuple):
    """``factors`` (three a class) and ``bounds`` of sleep that hold in a burst, from class ``first`` on."""

    factors: Floats
    bounds: Floats
    first: np.uint32


def make_factors(shard: ShardVariant) -> Callable[..., Any]:
    """``factors_of(burst, turn, extras, modulation)`` -> ``Factors``; all threads of a block call it."""
    if not shard.extras.adapts:
        return _make_none()
    if not shard.makes_factors:
        return make_kept_factors()
    product, bound_of, strength = make_product(), make_bound_of(), rules_of_features().strength
    one, three, none, silence = np.uint32(1), np.uint32(3), np.uint32(0), np.float32(np.nan)
    most_factors = 3 * MOST_CLASSES
    last_row, silent, low = np.uint32(DRIVE_ROWS - 1), np.uint64(NOT_FIRED), np.uint64(0xFFFFFFFF)

    def take(row: np.uint32, extras: Extras, factors: Floats, bounds: Floats) -> None:
        item, count = np.uint32(cuda.threadIdx.x), np.uint32(three * extras.class_count)
        while item < count:
            factors[item] = extras.area_factors[np.uint32(row * count + item)]
            if item < extras.class_count:
                bounds[item] = extras.sleep_bounds[np.uint32(row * extras.class_count + item)]
            item = np.uint32(item + np.uint32(cuda.blockDim.x))

    def work_out(last: np.uint32, m: Modulation, signals: Floats, factors: Floats, bounds: Floats) -> None:
        first = np.uint32(np.uint32(last & last_row) * (np.uint32(m.drives.size) // np.uint32(DRIVE_ROWS)))
        item, step = np.uint32(cuda.threadIdx.x), np.uint32(cuda.blockDim.x)
        while item < m.modulator_count:
            word, share = m.drives[np.uint32(first + m.modulator_drivers[item])], np.float32(0)
            if word != silent:
                share = strength(np.uint32(word & low).view(np.float32), m.full_scales[item])
            signals[item] = m.magnitudes[item] * share
            item = np.uint32(item + step)
        cuda.syncthreads()
        item, count = np.uint32(cuda.threadIdx.x), np.uint32(three * m.class_count)
        while item < count:
            factor = silence
            if m.list_starts[item] < m.list_starts[np.uint32(item + one)]:
                factor = product(signals, none, m, item)
            factors[item] = factor
            if item % three == np.uint32(EXCITABILITY):
                area = np.uint32(item // three)
                bounds[area] = bound_of(m.largest_excitabilities[area], factor)
            item = np.uint32(item + step)

    take, work_out = cuda.jit(device=True)(take), cuda.jit(device=True)(work_out)

    def factors_of(burst: np.uint32, turn: Turn, extras: Extras, modulation: Modulation) -> Any:
        signals = cuda.shared.array(MOST_MODULATORS, np.float32)
        factors = cuda.shared.array(most_factors, np.float32)
        bounds = cuda.shared.array(MOST_CLASSES, np.float32)
        if turn.place == none:
            take(np.uint32(burst & one), extras, factors, bounds)
        else:
            work_out(np.uint32(burst - one), modulation, signals, factors, bounds)
        cuda.syncthreads()
        return Factors(factors, bounds, none)

    return cuda.jit(device=True)(factors_of)  # type: ignore[no-any-return]


def make_kept_factors() -> Callable[..., Any]:
    """``factors_of(burst, turn, extras, modulation)``: those in the device's memory."""
    one = np.uint32(1)

    def factors_of(burst: np.uint32, turn: Turn, extras: Extras, modulation: Any) -> Any:
        return Factors(extras.area_factors, extras.sleep_bounds, np.uint32((burst & one) * extras.class_count))

    return cuda.jit(device=True)(factors_of)  # type: ignore[no-any-return]


def _make_none() -> Callable[..., Any]:
    def factors_of(burst: np.uint32, turn: Turn, extras: Any, modulation: Any) -> Any:
        return ()

    return cuda.jit(device=True)(factors_of)  # type: ignore[no-any-return]


def make_clear_drives(shard: ShardVariant) -> Callable[..., Any]:
    """``clear_drives(burst, modulation)``, one block: nothing of the burst after ``burst`` has fired yet."""
    makes, one, silent = shard.makes_factors, np.uint32(1), np.uint64(NOT_FIRED)

    def clear_drives(burst: np.uint32, modulation: Modulation) -> None:
        if makes:
            count = np.uint32(np.uint32(modulation.drives.size) // np.uint32(DRIVE_ROWS))
            first = np.uint32(np.uint32(np.uint32(burst + one) & np.uint32(DRIVE_ROWS - 1)) * count)
            item = np.uint32(cuda.threadIdx.x)
            while item < count:
                modulation.drives[np.uint32(first + item)] = silent
                item = np.uint32(item + np.uint32(cuda.blockDim.x))

    return cuda.jit(device=True)(clear_drives)  # type: ignore[no-any-return]
