"""Numerics of the reference (SEMANTICS section 7): scale of the sums, rounding, clamping, conversion, storage.

Nothing here is shared with the engines, and the methods differ: values are rounded as integers, mantissa and exponent
separately, while the engines round in float64. So a fault in code that the engines share shows against the reference.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.engine.options import EngineOptions
from burstproof.engine.precision import Precision
from burstproof.errors import NetworkError
from burstproof.network.features import Features
from burstproof.network.fixed_point import UNBOUNDED, FixedPoint
from burstproof.network.model import Network
from burstproof.network.plasticity import PlasticMapping

Floats = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_MANTISSA = 24
"""Bits of a float32's mantissa."""

_MOST_SHIFT = 38
"""A 24-bit mantissa shifted left further than this is 2^62 or more, beyond every clamp."""

_ROOM = 1 << 16
"""Synapses onto one neuron that may appear while the network runs."""

# Rounding ----------------------------------------------------------------------------------------------------------


def half_even(values: Integers, places: Integers) -> Integers:
    """``values`` / 2^``places`` (0...62), rounded to the nearest integer, half to even."""
    down = values >> places
    rest, half = values - (down << places), (1 << places) >> 1
    up = (rest > half) | ((rest == half) & (places > 0) & (down & 1 == 1))
    rounded: Integers = down + up
    return rounded


def quantised(contributions: Floats, scale: FixedPoint) -> tuple[Integers, bool]:
    """Contributions times 2^k as clamped integers, NaN as 0; and whether one was clamped."""
    number = np.where(np.isnan(contributions), np.float32(0), contributions)
    finite = np.where(np.isinf(number), np.float32(0), number)
    mantissa, exponent = np.frexp(finite)
    whole = np.ldexp(mantissa, _MANTISSA).astype(np.int64)
    shift = exponent.astype(np.int64) - _MANTISSA + scale.k
    up, down = np.clip(shift, 0, _MOST_SHIFT), np.clip(-shift, 0, _MANTISSA + 2)
    integers = half_even(whole << up, down)
    outside = np.isinf(number) | ((shift > _MOST_SHIFT) & (whole != 0)) | (np.abs(integers) > scale.clamp)
    clamped = np.where(number < 0, -scale.clamp, scale.clamp)
    return np.where(outside, clamped, integers), bool(outside.any())


def float_of_sums(sums: Integers, k: int) -> Floats:
    """Integer sums rounded once to the nearest float32, half to even, then times 2^-k."""
    size = np.abs(sums)
    bits = np.frexp(size.astype(np.float64))[1].astype(np.int64)
    bits -= (size >> np.maximum(bits - 1, 0)) == 0  # float64 may have rounded up to the next power of two
    lost = np.maximum(bits - _MANTISSA, 0)
    kept = half_even(size, lost).astype(np.float32)
    converted = np.ldexp(kept, lost.astype(np.int32))
    scaled: Floats = np.ldexp(np.where(sums < 0, -converted, converted), -k)
    return scaled


# Stored potentials ---------------------------------------------------------------------------------------------------

_FORMATS = {Precision.FP16: (11, -24, 65504.0), Precision.BF16: (8, -133, float(2**128 - 2**120))}
"""Significant bits, exponent of the smallest positive number, largest number."""


def level_exponent(thresholds: Floats) -> int:
    """Exponent of the step of int8: the least from -120 to 121 for which 127 steps reach every finite threshold."""
    finite = np.abs(thresholds[np.isfinite(thresholds)]).astype(np.float64)
    largest = float(finite.max(initial=0.0)) or 1.0
    exponent = 121
    while exponent > -120 and 127 * 2.0 ** (exponent - 1) >= largest:
        exponent -= 1
    return exponent


def stored(potentials: Floats, precision: Precision, thresholds: Floats) -> Floats:
    """Potentials rounded to the storage format: the nearest number, half to even; saturated beyond the largest."""
    if precision is Precision.FP32:
        return potentials.copy()
    wide = potentials.astype(np.float64)
    if precision is Precision.INT8:
        exponent, numbers = level_exponent(thresholds), np.where(np.isnan(wide), 0.0, wide)
        levels = np.clip(np.rint(np.ldexp(numbers, -exponent)), -127, 127)
        steps: Floats = (np.ldexp(levels, exponent) + 0.0).astype(np.float32)
        return steps
    digits, least, largest = _FORMATS[precision]
    unit = np.maximum(np.frexp(wide)[1] - digits, least)
    nearest = np.ldexp(np.rint(np.ldexp(wide, -unit)), unit)
    kept: Floats = np.clip(nearest, -largest, largest).astype(np.float32)
    return kept


# Scale ---------------------------------------------------------------------------------------------------------------


def scale_of(network: Network, options: EngineOptions, *, learning: Sequence[PlasticMapping]) -> FixedPoint:
    """Scale, width and clamp of the sums of a network; ``learning``: plastic mappings that valid synapses learn by.

    Raises
    ------
    NetworkError
        weight x psp of a valid synapse is not finite; or the network has a stored scale that its sums do not fit.
    """
    synapses = network.synapses
    valid = synapses.valid_mask
    contributions = _static(network)
    targets = synapses.target_neurons[valid]
    sums = np.bincount(targets, np.abs(contributions.astype(np.float64)), minlength=network.neuron_count)
    in_degree = int(np.bincount(targets, minlength=1).max(initial=0)) + _ROOM * synapses_appear(network.features)
    synaptic = float(sums.max(initial=0.0))
    largest = synaptic + (abs(float(np.float32(network.power_amount))) + options.max_stimulus)
    from_outside = max(_digits(np.array([network.power_amount], np.float32)), 30 * options.fractional_stimulus)
    declared = options.max_stimulus, options.fractional_stimulus
    clamp = 2**62 // (in_degree + 2)
    computed = _mp_driven(network) or _factors_act(network) or synapses_appear(network.features)
    if computed or learning:
        whole = from_outside == 0 and _integers_stay(network) and all(map(_steps_are_integers, learning))
        if not computed and whole:
            planned = FixedPoint(0, 64, clamp, True, UNBOUNDED, *declared)
        else:
            fits = [k for k in range(20, 37) if 2.0**49 / (in_degree + 2) >= 2.0**k * max(largest, 64.0)]
            planned = FixedPoint(max(fits, default=20), 64, clamp, False, UNBOUNDED, *declared)
    else:
        planned = _static_scale(largest, synaptic, max(_digits(contributions), from_outside), clamp, options)
    if network.fixed_point is None:
        return planned
    kept = network.fixed_point
    if (kept.max_stimulus, kept.fractional_stimulus) != declared:
        return planned
    return _kept_scale(kept, planned, computed or bool(learning), largest, synaptic, clamp)


def _static_scale(largest: float, synaptic: float, digits: int, clamp: int, options: EngineOptions) -> FixedPoint:
    """The scale without computed contributions: sums are exact if 62 bits hold them."""
    declared = options.max_stimulus, options.fractional_stimulus
    exact = not options.fractional_stimulus
    bound = int(np.ceil(synaptic * 2.0**digits))
    if largest * 2.0**digits < 2.0**31:
        return FixedPoint(digits, 32, 2**31 - 1, exact, bound, *declared)
    if largest * 2.0**digits < 2.0**62:
        return FixedPoint(digits, 64, 2**62 - 1, exact, bound, *declared)
    fits = [k for k in range(digits) if largest * 2.0**k < 2.0**62]
    if fits:
        return FixedPoint(max(fits), 64, 2**62 - 1, False, UNBOUNDED, *declared)
    return FixedPoint(0, 64, clamp, exact and digits == 0, UNBOUNDED, *declared)


def _kept_scale(
    kept: FixedPoint, planned: FixedPoint, computed: bool, largest: float, synaptic: float, clamp: int
) -> FixedPoint:
    """The scale stored in the network, if its sums fit."""
    room = 2 ** (31 if kept.bits == 32 else 62)
    bounded = not computed and largest * 2.0**kept.k < room
    fits = bounded or (kept.bits == 64 and (computed or kept.k == 0))
    if not fits or kept.clamp != (room - 1 if bounded else clamp):
        raise NetworkError(
            "the network brings along a scale that does not hold its sums",
            where="network.fixed_point",
            got=str(kept),
            allowed=str(planned),
            cure="Plan the scale anew: network.replace(fixed_point=None)",
        )
    exact = planned.exact and kept.k >= planned.k
    bound = int(np.ceil(synaptic * 2.0**kept.k)) if bounded else UNBOUNDED
    return FixedPoint(kept.k, kept.bits, kept.clamp, exact, bound, planned.max_stimulus, planned.fractional_stimulus)


def _static(network: Network) -> Floats:
    """weight x psp of every valid synapse, divided if its source's area demands it (section 2)."""
    synapses = network.synapses
    valid = synapses.valid_mask
    sources = synapses.source_neurons[valid]
    weights, psps = synapses.weights[valid], synapses.postsynaptic_potentials[valid]
    with np.errstate(over="ignore", invalid="ignore"):
        products = weights * psps
    wrong = np.flatnonzero(~np.isfinite(products))
    if len(wrong):
        raise NetworkError(
            "weight x psp of a synapse is not finite",
            where=f"synapse {int(np.flatnonzero(valid)[wrong[0]])}",
            got=(float(weights[wrong[0]]), float(psps[wrong[0]])),
            cure="Correct the weight or the postsynaptic potential of that synapse",
        )
    if not network.flags_registered:
        return products
    uniform = network.area_flag("psp_uniform_distribution")[sources]
    outgoing = np.bincount(sources, minlength=network.neuron_count)[sources]
    return np.where(uniform, products, products / outgoing.astype(np.float32))


def _digits(values: Floats) -> int:
    """The least k >= 0 for which all values are multiples of 2^-k."""
    k, left = 0, values.astype(np.float64)
    while len(left := left[np.rint(left) != left]):
        k, left = k + 1, left * 2.0
    return k


def _mp_driven(network: Network) -> bool:
    """Whether the psp of a valid synapse is its source's potential."""
    synapses = network.synapses
    driven = network.area_flag("mp_driven_psp")[synapses.source_neurons[synapses.valid_mask]]
    return network.flags_registered and bool(driven.any())


def synapses_appear(features: Features) -> bool:
    """Whether synapses or neurons can be added while the network runs."""
    return bool(features.associative) or any(area.memory is not None for area in features.areas.values())


def _factors_act(network: Network) -> bool:
    """Whether a valid synapse has transmission factors, or loses psp by degeneration."""
    return bool((_varied(network) & network.synapses.valid_mask).any())


def _varied(network: Network) -> Bools:
    """Synapses with transmission factors, and those that lose psp by degeneration."""
    synapses, features = network.synapses, network.features
    areas = network.neurons.cortical_areas[synapses.source_neurons]
    acting = [number for number, rule in enumerate(features.rules, start=1) if rule.gains or rule.gates]
    wearing = [index for index, area in features.areas.items() if area.degeneration > 0]
    varied: Bools = np.isin(synapses.rules, acting) | np.isin(areas, wearing)
    return varied


def constant_synapses(network: Network, learning: Integers) -> Bools:
    """Mask of synapses with constant contributions; ``learning`` are the rows that learn."""
    synapses, areas, features = network.synapses, network.neurons.cortical_areas, network.features
    sources, targets = synapses.source_neurons, synapses.target_neurons
    changing = _varied(network)
    changing[learning] = True
    for one in features.associative:
        counted = network.flags_registered & ~network.area_flag("psp_uniform_distribution")[sources]
        changing |= (areas[sources] == one.source) & (counted | (areas[targets] == one.target))
    if network.flags_registered:
        changing |= network.area_flag("mp_driven_psp")[sources]
    return ~changing


def sums_of(network: Network, chosen: Bools, scale: FixedPoint) -> npt.NDArray[Any]:
    """Summed magnitudes of the contributions of the ``chosen`` synapses onto each neuron, in units of 2^-k.

    Raises
    ------
    NetworkError
        weight x psp of a valid synapse is not finite.
    """
    valid = network.synapses.valid_mask
    targets, sizes = network.synapses.target_neurons[valid], np.abs(quantised(_static(network), scale)[0])
    counted = chosen[valid] & network.neurons.valid_mask[targets]
    return np.bincount(targets, np.where(counted, sizes, 0).astype(np.float64), minlength=network.neuron_count)


def _steps_are_integers(mapping: PlasticMapping) -> bool:
    """Whether a plastic rule changes weights by integers, and bounds them by an integer."""
    plain = mapping.eta == 1 and not mapping.rewarded and not mapping.learning_rates
    return plain and (mapping.max_weight is None or float(mapping.max_weight).is_integer())


def _integers_stay(network: Network) -> bool:
    """Whether weights and psps are integers and nothing is divided, so that contributions stay integers."""
    synapses = network.synapses
    valid = synapses.valid_mask
    if network.flags_registered:
        sources = synapses.source_neurons[valid]
        divided = ~network.area_flag("psp_uniform_distribution")[sources]
        if (divided & (np.bincount(sources, minlength=network.neuron_count)[sources] > 1)).any():
            return False
    return _digits(synapses.weights[valid]) == 0 and _digits(synapses.postsynaptic_potentials[valid]) == 0
