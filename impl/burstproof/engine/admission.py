"""Checks before an engine packs a network or takes a state: what no engine can run, and the limits of a profile."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.engine.feature_admission import (
    check_feature_state,
    check_features,
    check_form,
    refuse_nan,
    strange_ids,
    twin_count,
)
from burstproof.engine.options import EngineOptions
from burstproof.engine.state import EngineState
from burstproof.errors import NetworkError, refuse_first
from burstproof.network.fixed_point import FixedPoint
from burstproof.network.model import Network
from burstproof.network.plasticity import LARGEST_WINDOW
from burstproof.network.schema import check_tables

_BYTE_MAX = 255

_LARGEST_COUNT = 1 << 62
"""Largest burst number of a state; int64 has room for as many bursts after it."""

STATE_FORMS: dict[str, tuple[type[np.generic], str]] = {
    "membrane_potentials": (np.float32, "N"),
    "refractory_countdowns": (np.uint16, "N"),
    "consecutive_fire_counts": (np.uint16, "N"),
    "weights": (np.float32, "S"),
    "eligibility_traces": (np.float32, "S"),
    "was_candidate": (np.bool_, "N"),
    "pending": (np.int64, "DN"),
    "pending_candidate": (np.bool_, "DN"),
    "fired_ids": (np.uint32, "F"),
    "fired_potentials": (np.float32, "F"),
    "last_fired": (np.int64, "N"),
    "fire_streak": (np.uint16, "N"),
}
"""Columns of a state in file order: element type, and a letter for each dimension (``EngineState``)."""


def check_network(network: Network, options: EngineOptions) -> None:
    """Refuse what no engine can run, and what the profile of ``options`` excludes.

    Raises
    ------
    NetworkError
        A delay of 0; a power amount that is not finite; NaN in a column of the neurons; a plastic mapping whose window
        is no integer from 1 on, whose parameters are not finite, or whose synapses do not exist; a feature that names
        a modulator, rule or plastic mapping that does not exist; under a profile with
        byte synapses a weight or psp that is fractional, negative or above 255, or a delay above 1.
    """
    check_tables(network.neurons, network.synapses)
    with np.errstate(over="ignore"):
        power = np.float32(network.power_amount)
    if not np.isfinite(power):
        raise NetworkError("the power amount is not finite", where="power_amount", got=network.power_amount)
    _check_mappings(network)
    _check_features(network)
    check_features(network, options.profile)
    if options.profile.byte_synapses:
        _check_byte_synapses(network, options.profile.name)


def check_state(state: EngineState, network: Network, fixed_point: FixedPoint, slots: int | None = None) -> None:
    """Refuse a state from which an engine over ``network`` with this ``fixed_point`` cannot go on.

    ``slots`` is D, the number of rows under way; ``None``: it follows from the synapses of ``network``.

    Raises
    ------
    NetworkError
        A column of another element type or shape than the network's state has; NaN; a weight that is not finite; a
        count or a burst number out of range; a fired list that does not ascend within the network; sums under way that
        the accumulator cannot hold, or of no contribution; features that are not those of the network; another scale,
        width or clamp than ``fixed_point``.
    """
    check_feature_state(state.features, network)
    _check_counts(state, network)
    _check_columns(state, network, _slots(network) if slots is None else slots)
    _check_firings(state, network)
    _check_sums(state, network, fixed_point)


def _slots(network: Network) -> int:
    """D of ``network``."""
    synapses = network.synapses
    everything = True if synapses.valid_mask.all() else synapses.valid_mask
    return int(synapses.delay_bursts.max(initial=1, where=everything))


def _check_counts(state: EngineState, network: Network) -> None:
    """Refuse a burst number or a history out of range, and a clamp flag that is no truth value."""
    problem = "not a value of a state of this network"
    for name, most in (("burst_count", _LARGEST_COUNT), ("history_bursts", _longest_window(network) - 1)):
        value = getattr(state, name)
        if not isinstance(value, int | np.integer) or not 0 <= value <= most:
            raise NetworkError(problem, where=f"state.{name}", got=value, allowed=f"0...{most}")
    if not isinstance(state.clamped, bool | np.bool_):
        raise NetworkError(problem, where="state.clamped", got=state.clamped, allowed="true or false")


def _longest_window(network: Network) -> int:
    """Longest plasticity window in bursts; 1 without plastic mappings."""
    return max((mapping.window for mapping in network.plastic_mappings), default=1)


def _check_columns(state: EngineState, network: Network, slots: int) -> None:
    """Refuse columns of another element type or shape, and columns with NaN."""
    sizes = {"N": network.neuron_count + twin_count(state.features), "S": network.synapse_count, "D": slots}
    sizes["F"] = np.size(state.fired_ids)
    for name, (dtype, letters) in STATE_FORMS.items():
        column, shape = getattr(state, name), tuple(sizes[letter] for letter in letters)
        check_form(f"state.{name}", column, np.dtype(dtype), shape)
        if name != "weights":
            refuse_nan(f"state.{name}", column)
    weights, finite = state.weights, np.isfinite(state.weights)
    if not finite.all():
        refuse_first(NetworkError, ~finite, weights, "a weight is not finite", "state.weights")


def _check_firings(state: EngineState, network: Network) -> None:
    """Refuse fired ids that do not ascend within the network, and firings after the last burst."""
    ids, count = state.fired_ids, len(state.membrane_potentials)
    formed = 0 if state.features is None else state.features.memory.next_id
    where, wrong = "state.fired_ids", strange_ids(ids, count, formed)
    refuse_first(NetworkError, wrong, ids, "a neuron that the network does not have", where)
    wrong[1:] = ids[1:] <= ids[:-1]
    refuse_first(NetworkError, wrong, ids, "the fired list does not ascend", where, "each id once, in ascending order")
    last, streaks, longest = state.last_fired, state.fire_streak, _longest_window(network)
    outside, allowed = (last < 0) | (last > state.burst_count), f"0...{state.burst_count}"
    refuse_first(NetworkError, outside, last, "a firing in no burst so far", "state.last_fired", allowed)
    problem, allowed = "a run longer than any plasticity window", f"0...{longest}"
    refuse_first(NetworkError, streaks > longest, streaks, problem, "state.fire_streak", allowed)


def _check_sums(state: EngineState, network: Network, fixed_point: FixedPoint) -> None:
    """Refuse sums of another scale, sums beyond the accumulator, and sums without a contribution."""
    found = state.fixed_point
    named = operator.attrgetter("k", "bits", "clamp")
    if found is not None and not (isinstance(found, FixedPoint) and named(found) == named(fixed_point)):
        cure = "Create the engine over network.replace(fixed_point=state.fixed_point)"
        declared = operator.attrgetter("max_stimulus", "fractional_stimulus")
        if isinstance(found, FixedPoint) and declared(found) != declared(fixed_point):
            bounds = f"max_stimulus={found.max_stimulus:g} and fractional_stimulus={found.fractional_stimulus}"
            cure = f"Create the engine with the stimulus bounds of the state: {bounds}"
        raise NetworkError(
            "the state has sums of another scale than the engine",
            where="state.fixed_point",
            got=str(found),
            allowed=str(fixed_point),
            cure=cure,
        )
    outside = math.ceil((abs(float(np.float32(network.power_amount))) + fixed_point.max_stimulus) * fixed_point.scale)
    largest = (1 << 31) - 1 - outside if fixed_point.bits == 32 else 1 << 62
    for row, (sums, arriving) in enumerate(zip(state.pending, state.pending_candidate, strict=True)):
        where, beyond = f"state.pending[{row}]", (sums < -largest) | (sums > largest)
        allowed = f"-{largest}...{largest}"
        refuse_first(NetworkError, beyond, sums, "a sum that the accumulator cannot hold", where, allowed)
        refuse_first(NetworkError, ~arriving & (sums != 0), sums, "a sum without a contribution", where, "0")


def refuse_large_sums(
    sums: npt.NDArray[Any],
    network: Network,
    options: EngineOptions,
    fixed_point: FixedPoint,
    ids: npt.NDArray[np.uint32] | None = None,
) -> None:
    """Refuse restored weights whose constant contributions may exceed the accumulator.

    ``sums`` (n,) float64, n at least 1, are the summed magnitudes of the contributions onto each neuron, in units of
    2^-k. ``ids`` are the neurons' ids, if these are not 0 ... n - 1.

    Raises
    ------
    NetworkError
        The sum onto some neuron is too large.
    """
    largest = 2.0 ** (31 if fixed_point.bits == 32 else 62)
    outside = (abs(network.power_amount) + options.max_stimulus) * fixed_point.scale
    if sums.max() + outside >= largest:
        worst = int(np.argmax(sums))
        raise NetworkError(
            "the restored weights are too large for the fixed-point scale of this network",
            where=f"weights onto neuron {worst if ids is None else int(ids[worst])}",
            got=float(sums.max() / fixed_point.scale),
            allowed=f"a sum below {(largest - outside) / fixed_point.scale:.6g}",
            cure="Create an engine over a network that has these weights",
        )


def _refuse_first(
    network: Network,
    bad: npt.NDArray[np.bool_],
    column: str,
    problem: str,
    allowed: str,
    cure: str | None = None,
) -> None:
    """Raise for the first valid synapse that ``bad`` marks."""
    values, refused = getattr(network.synapses, column), bad & network.synapses.valid_mask
    refuse_first(NetworkError, refused, values, problem, f"synapses.{column}", allowed, cure)


def _check_mappings(network: Network) -> None:
    for number, mapping in enumerate(network.plastic_mappings):
        where = f"plastic_mappings[{number}]"
        if type(mapping.window) is not int or not 1 <= mapping.window <= LARGEST_WINDOW:
            allowed = f"an integer, 1...{LARGEST_WINDOW}"
            raise NetworkError("not a plasticity window", where=where, got=mapping.window, allowed=allowed)
        parameters = (mapping.constant, mapping.ltp_multiplier, mapping.ltd_multiplier)
        if not all(math.isfinite(value) for value in parameters):
            raise NetworkError("a plastic parameter is not finite", where=where, got=parameters)
        rows = mapping.synapses
        if len(rows) and (int(rows.min()) < 0 or int(rows.max()) >= network.synapse_count):
            raise NetworkError(
                "a plastic synapse outside the table",
                where=where,
                got=(int(rows.min()), int(rows.max())),
                allowed=f"0...{network.synapse_count - 1}",
            )


def _check_features(network: Network) -> None:
    """Refuse features that name a modulator, a rule or a plastic mapping that does not exist."""
    features, rules = network.features, network.synapses.rules
    plastic = network.plastic_mappings
    named = {
        "features.areas": [one for area in features.areas.values() for one in area.modulators],
        "features.rules": [one for rule in features.rules for one in (*rule.gains, *rule.gates)],
        "plastic_mappings": [one for mapping in plastic for one in (*mapping.rewards, *mapping.learning_rates)],
    }
    most = {"modulators": len(features.modulators), "plastic mappings": len(plastic), "rules": len(features.rules) + 1}
    checks = [(where, positions, "modulators") for where, positions in named.items()]
    checks.append(("features.associative", [one.plastic for one in features.associative], "plastic mappings"))
    checks.append(("features.associative", [one.rule for one in features.associative], "rules"))
    largest = rules if any(rules.strides) else rules[:1]
    checks.append(("synapses.rules", [int(largest.max(initial=0))], "rules"))
    for where, positions, what in checks:
        beyond = [one for one in positions if not 0 <= one < most[what]]
        if beyond:
            allowed = f"0...{most[what] - 1}" if most[what] else "none, since there are none"
            raise NetworkError(f"features name {what} that do not exist", where=where, got=beyond[0], allowed=allowed)


def _check_byte_synapses(network: Network, profile: str) -> None:
    synapses = network.synapses
    cure = f"The profile {profile} cannot run this network; use feagi-2.6"
    for column in ("weights", "postsynaptic_potentials"):
        values = getattr(synapses, column)
        not_byte = ~((np.rint(values) == values) & (values >= 0) & (values <= _BYTE_MAX))
        _refuse_first(network, not_byte, column, "not an unsigned 8-bit number", "integers 0...255", cure)
    _refuse_first(network, synapses.delay_bursts > 1, "delay_bursts", "a delay above 1", "1", cure)
