"""What an engine refuses before it packs a network: delays of 0, faulty plastic mappings, a profile's limits."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from burstproof.engine.feature_admission import check_feature_state, check_features, twin_count
from burstproof.engine.options import EngineOptions
from burstproof.engine.state import EngineState
from burstproof.errors import NetworkError, refuse_first
from burstproof.network.fixed_point import FixedPoint
from burstproof.network.model import Network, NeuronTable
from burstproof.network.plasticity import LARGEST_WINDOW
from burstproof.network.schema import NEURONS

_BYTE_MAX = 255
_NUMBERS = tuple(c.name for c in NEURONS if c.dtype is np.float32 and c.name != "resting_potentials")
"""Columns that must not hold NaN; resting potentials are read by no rule."""


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
    synapses = network.synapses
    _refuse_first(network, synapses.delay_bursts == 0, "delay_bursts", "a delay of 0", "1...255")
    _check_numbers(network.neurons)
    with np.errstate(over="ignore"):
        power = np.float32(network.power_amount)
    if not np.isfinite(power):
        raise NetworkError("the power amount is not finite", where="power_amount", got=network.power_amount)
    _check_mappings(network)
    _check_features(network)
    check_features(network, options.profile)
    if options.profile.byte_synapses:
        _check_byte_synapses(network, options.profile.name)


def _check_numbers(neurons: NeuronTable) -> None:
    """Refuse NaN in what the rules of a neuron compute with."""
    for name in _NUMBERS:
        column = getattr(neurons, name)
        missing = np.isnan(column if any(column.strides) else column[:1])
        if missing.any():
            raise NetworkError(
                "a neuron has NaN",
                where=f"neurons.{name}[{int(np.argmax(missing))}]",
                got="nan",
                allowed="a number; potentials may be infinite",
                cure="Correct the column",
            )


def check_state(state: EngineState, network: Network, fixed_point: FixedPoint) -> None:
    """Refuse a state from which an engine over ``network`` with this ``fixed_point`` cannot go on.

    Raises
    ------
    NetworkError
        A column of another size than the network's; features that are not those of the network; a weight that is not
        finite; another scale, width or clamp than ``fixed_point``.
    """
    check_feature_state(state.features, network)
    sizes = network.neuron_count + twin_count(state.features), network.synapse_count
    for name, column in vars(state).items():
        if isinstance(column, np.ndarray) and name not in ("fired_ids", "fired_potentials"):
            size = sizes[name in ("weights", "eligibility_traces")]
            if column.shape[-1:] != (size,):
                got, where = column.shape, f"state.{name}"
                raise NetworkError("the state of another network", where=where, got=got, allowed=f"{size} in a row")
    refuse_first(NetworkError, ~np.isfinite(state.weights), state.weights, "a weight is not finite", "state.weights")
    found = state.fixed_point
    if found is None or (found.k, found.bits, found.clamp) == (fixed_point.k, fixed_point.bits, fixed_point.clamp):
        return
    raise NetworkError(
        "the state has sums of another scale than the engine",
        where="state.fixed_point",
        got=str(found),
        allowed=str(fixed_point),
        cure="Create the engine over network.replace(fixed_point=state.fixed_point)",
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
    """Refuse features that name a modulator, a rule or a plastic mapping beyond those that there are."""
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
