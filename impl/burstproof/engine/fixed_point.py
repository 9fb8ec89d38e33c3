"""The fixed-point scale of the sums: one for a network and its options, on all backends (SEMANTICS section 7)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from burstproof.engine.features.synapses import degeneration, transmitting
from burstproof.engine.spans import on_spans, spans
from burstproof.errors import NetworkError
from burstproof.network.fixed_point import UNBOUNDED, FixedPoint

if TYPE_CHECKING:
    from burstproof.engine.options import EngineOptions
    from burstproof.network.features import Features
    from burstproof.network.model import Network
    from burstproof.network.plasticity import PlasticMapping

_COUNTED = 1 << 22
"""Synapses per histogram over all neurons."""
_FRACTIONAL_STIMULUS_K = 30
_LEARNING_K = range(36, 19, -1)
"""Scales for networks whose contributions change or are computed, the finest first."""
_LEARNING_SUM, _LEARNING_INPUT = 2.0**49, 64.0
MOST_NEW_SYNAPSES = 1 << 16
"""Most synapses onto one neuron that may appear while a network runs; more are an error."""

_SUM_32, _SUM_64 = 2.0**31, 2.0**62


def outgoing_counts(network: Network) -> npt.NDArray[np.int64]:
    """Valid outgoing synapses of each neuron, all delays, (N,) int64: the divisor of SEMANTICS section 2."""
    synapses = network.synapses
    valid = synapses.valid_mask
    sources = synapses.source_neurons if valid.all() else synapses.source_neurons[valid]
    return np.bincount(sources, minlength=network.neuron_count)


def static_contributions(
    network: Network, rows: slice, divisors: npt.NDArray[np.float32] | None
) -> npt.NDArray[np.float32]:
    """Contributions weight x psp / divisor of the synapses in ``rows``, float32, without the sign; 0 where invalid.

    ``divisors`` (N,) float32 per source, or ``None`` when nothing is divided.

    Raises
    ------
    NetworkError
        A product that is not finite.
    """
    synapses = network.synapses
    weights = synapses.weights[rows]
    psps = synapses.postsynaptic_potentials[rows]
    valid = synapses.valid_mask[rows]
    with np.errstate(over="ignore", invalid="ignore"):
        products = weights * psps
    bad = valid & ~np.isfinite(products)
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise NetworkError(
            "weight x psp of a synapse is not finite",
            where=f"synapse {row + (rows.start or 0)}",
            got=(float(weights[row]), float(psps[row])),
            cure="Correct the weight or the postsynaptic potential of that synapse",
        )
    if divisors is not None:
        products = products / divisors[synapses.source_neurons[rows]]
    return np.where(valid, products, np.float32(0))


def division(network: Network) -> npt.NDArray[np.float32] | None:
    """Divisor of each source's contributions, (N,) float32 (1 where nothing is divided), or ``None``."""
    if not network.flags_registered:
        return None
    counts = np.maximum(outgoing_counts(network), 1)
    divisors = np.where(network.area_flag("psp_uniform_distribution"), 1, counts).astype(np.float32)
    return divisors if bool((divisors != 1).any()) else None


def fraction_digits(values: npt.NDArray[np.float32], known: int = 0) -> int:
    """The least k >= ``known`` for which all ``values``, finite float32, are multiples of 2^-k; at most 149."""
    scaled = values.astype(np.float64) * 2.0**known
    finer = values[np.rint(scaled) != scaled]
    if not len(finer):
        return known
    mantissa, exponent = np.frexp(finer)
    digits = (mantissa * np.float32(1 << 24)).astype(np.int32)
    trailing = np.frexp((digits & -digits).astype(np.float64))[1] - 1
    return int((24 - trailing - exponent).max())


@dataclass(frozen=True)
class ContributionSurvey:
    """The figures that determine the scale, over all valid synapses of a network.

    Attributes
    ----------
    largest_input : float
        Largest sum of |contribution| over one target, all delays together.
    digits : int
        Least k for which every contribution is a multiple of 2^-k.
    in_degree : int
        Largest number of synapses onto one neuron, including those that may appear while the network runs.
    """

    largest_input: float
    digits: int
    in_degree: int


_SURVEYS: WeakKeyDictionary[Network, ContributionSurvey] = WeakKeyDictionary()


def _survey(network: Network) -> ContributionSurvey:
    """The survey of ``network``, cached, since every engine over it needs it."""
    if network not in _SURVEYS:
        _SURVEYS[network] = _survey_of(network)
    return _SURVEYS[network]


def _magnitudes(
    network: Network, block: slice, divisors: npt.NDArray[np.float32] | None, known: int
) -> tuple[npt.NDArray[np.float32], int]:
    """Magnitudes of the contributions of the synapses in ``block``, and ``fraction_digits`` of them."""
    magnitudes = np.empty(block.stop - block.start, np.float32)

    def survey(part: slice) -> int:
        values = static_contributions(network, part, divisors)
        np.abs(values, out=magnitudes[part.start - block.start : part.stop - block.start])
        return fraction_digits(values, known)

    return magnitudes, max(on_spans(block.start, block.stop, survey))


def _survey_of(network: Network) -> ContributionSurvey:
    divisors = division(network)
    totals = np.zeros(network.neuron_count, np.float64)
    degrees = np.zeros(network.neuron_count, np.int64)
    synapses, digits = network.synapses, 0
    for block in spans(0, network.synapse_count, _COUNTED):
        magnitudes, digits = _magnitudes(network, block, divisors, digits)
        targets = synapses.target_neurons[block]
        totals += np.bincount(targets, weights=magnitudes, minlength=network.neuron_count)
        degrees += np.bincount(targets[synapses.valid_mask[block]], minlength=network.neuron_count)
    room = MOST_NEW_SYNAPSES if synapses_appear(network.features) else 0
    return ContributionSurvey(float(totals.max(initial=0.0)), digits, int(degrees.max(initial=0)) + room)


def plan_fixed_point(network: Network, options: EngineOptions) -> FixedPoint:
    """The scale and width for ``network`` under ``options``; it depends on nothing else.

    A scale stored in the network is kept if it was planned for the same stimulus bounds.

    Raises
    ------
    NetworkError
        A contribution that is not finite, or a stored scale that does not hold the network's sums.
    """
    survey = _survey(network)
    computed = _mp_driven_synapses(network) or _factors_act(network) or synapses_appear(network.features)
    learns = computed or any(len(mapping.synapses) for mapping in network.plastic_pairs)
    if learns:
        planned = _learning_fixed_point(network, options, survey, computed)
    else:
        planned = static_fixed_point(survey, network.power_amount, options)
    kept = network.fixed_point
    if kept is None or (kept.max_stimulus, kept.fractional_stimulus) != _declared(options):
        return planned
    limit = _SUM_32 if kept.bits == 32 else _SUM_64
    bounded = not learns and _largest_sum(survey, network.power_amount, options) * 2.0**kept.k < limit
    clamp = int(limit) - 1 if bounded else _clamp(survey.in_degree)
    fits = bounded or (kept.bits == 64 and (learns or kept.k == 0))
    if kept.clamp != clamp or not fits:
        raise NetworkError(
            "the network brings along a scale that does not hold its sums",
            where="network.fixed_point",
            got=str(kept),
            allowed=str(planned),
            cure="Plan the scale anew: network.replace(fixed_point=None)",
        )
    bound = int(np.ceil(survey.largest_input * 2.0**kept.k)) if bounded else UNBOUNDED
    return replace(kept, exact=planned.exact and kept.k >= planned.k, largest_sum=bound)


def _learning_fixed_point(
    network: Network, options: EngineOptions, survey: ContributionSurvey, computed: bool
) -> FixedPoint:
    """The scale if contributions change or are computed."""
    if not computed and _outside_digits(network.power_amount, options) == 0 and _learns_integers(network):
        return FixedPoint(0, 64, _clamp(survey.in_degree), True, UNBOUNDED, *_declared(options))
    largest = max(_largest_sum(survey, network.power_amount, options), _LEARNING_INPUT)
    room = _LEARNING_SUM / (survey.in_degree + 2)
    k = next((k for k in _LEARNING_K if room >= 2.0**k * largest), _LEARNING_K[-1])
    return FixedPoint(k, 64, _clamp(survey.in_degree), False, UNBOUNDED, *_declared(options))


def static_fixed_point(survey: ContributionSurvey, power_amount: float, options: EngineOptions) -> FixedPoint:
    """The scale and width without mp-driven and plastic synapses: exact if 64 bits hold the sums."""
    digits = max(survey.digits, _outside_digits(power_amount, options))
    exact = not options.fractional_stimulus
    largest = _largest_sum(survey, power_amount, options)
    for bits, limit in ((32, _SUM_32), (64, _SUM_64)):
        if largest * 2.0**digits < limit:
            bound = int(np.ceil(survey.largest_input * 2.0**digits))
            return FixedPoint(digits, bits, int(limit) - 1, exact, bound, *_declared(options))
    k = next((k for k in range(digits - 1, -1, -1) if largest * 2.0**k < _SUM_64), None)
    if k is not None:
        return FixedPoint(k, 64, int(_SUM_64) - 1, False, UNBOUNDED, *_declared(options))
    return FixedPoint(0, 64, _clamp(survey.in_degree), digits == 0 and exact, UNBOUNDED, *_declared(options))


def _declared(options: EngineOptions) -> tuple[float, bool]:
    """The declared bounds of the stimulus, which the scale depends on."""
    return options.max_stimulus, options.fractional_stimulus


def _mp_driven_synapses(network: Network) -> bool:
    """Whether the psp of any valid synapse is its source's potential."""
    if not network.flags_registered:
        return False
    driven = network.area_flag("mp_driven_psp")
    return bool(driven.any() and driven[network.synapses.source_neurons[network.synapses.valid_mask]].any())


def synapses_appear(features: Features) -> bool:
    """Whether synapses or neurons can be added while the network runs: associative mappings, memory areas."""
    return bool(features.associative) or any(area.memory is not None for area in features.areas.values())


def _factors_act(network: Network) -> bool:
    """Whether transmission factors or degeneration change a contribution (FEATURES sections 2.3 and 5)."""
    return transmitting(network) is not None or degeneration(network) is not None


def _integer_steps(mapping: PlasticMapping) -> bool:
    """Whether the rule changes weights by integers and bounds them by an integer."""
    bound = 0.0 if mapping.max_weight is None else mapping.max_weight
    return mapping.eta == 1.0 and not mapping.rewarded and not mapping.learning_rates and float(bound).is_integer()


def _learns_integers(network: Network) -> bool:
    """Whether contributions remain integers under the plastic rules."""
    if not all(_integer_steps(mapping) for mapping in network.plastic_pairs if len(mapping.synapses)):
        return False
    synapses = network.synapses
    columns = (synapses.weights, synapses.postsynaptic_potentials)
    return division(network) is None and all(fraction_digits(c[synapses.valid_mask]) == 0 for c in columns)


def _largest_sum(survey: ContributionSurvey, power_amount: float, options: EngineOptions) -> float:
    """Bound of the magnitude of a neuron's sum, including power and declared stimulus."""
    return survey.largest_input + (abs(float(_single(power_amount)[0])) + options.max_stimulus)


def _outside_digits(power_amount: float, options: EngineOptions) -> int:
    """The least k for power and declared stimulus."""
    return fraction_digits(_single(power_amount), _FRACTIONAL_STIMULUS_K * options.fractional_stimulus)


def _single(amount: float) -> npt.NDArray[np.float32]:
    """``amount`` as float32, (1,); an infinite one is refused later (``check_network``)."""
    with np.errstate(over="ignore"):
        return np.array([amount], np.float32)


def _clamp(in_degree: int) -> int:
    return (1 << 62) // (in_degree + 2)
