"""Arrays of what features add to the numba CPU engine (FEATURES sections 1 to 3), and their exchange with the state."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from burstproof.engine.feature_state import FeatureState
from burstproof.engine.features.levels import clamped_levels
from burstproof.engine.features.tables import AreaTable, FeatureTables, ModulatorTable, can_train, feature_tables
from burstproof.network.model import Network, NeuronTable, SynapseTable
from burstproof.network.schema import Parameters

Array = npt.NDArray[Any]
Members = npt.NDArray[np.uint32] | slice


class Extras(NamedTuple):
    """Features of n neurons here, N in the network.

    Attributes
    ----------
    can_train, trains : bool (n,)
        Neurons whose firings start a spike train, and those that have one.
    held : float32 (n,)
        Potentials of the trains.
    starts, ends, classes : int64 (G,)
        Runs of neurons of one area class, those of class 0 left out.
    areas : AreaTable
    fired : bool (n,)
        Room for the fired list of a burst, false between bursts.
    rates, leaks : float32 (n,)
        The homeostat's r and g.
    base_thresholds, base_leaks, base_excitabilities, leaks_in_force : float32 (n,)
    driver_of : uint16 (N,)
    first_fired : int64 (D + 1,)
        Room for the place in the fired list of the first firing of each driver area.
    memory_fired, memory_potentials : bool, float32 (D + 1,)
        Whether a memory neuron of the driver area with this number fires in the burst, and the first one's potential.
    modulators : ModulatorTable
    signals : float32 (2, M)
        Those in force in burst b are in row b mod 2; so with all factors.
    area_factors : float32 (2, C, 3)
        NaN before the first.
    transmission : float32 (2, R + 1)
    learning : float32 (2, P)
        Reward and learning factor of each plastic pair.
    """

    can_train: Array
    trains: Array
    held: Array
    starts: Array
    ends: Array
    classes: Array
    areas: AreaTable
    fired: Array
    rates: Array
    leaks: Array
    base_thresholds: Array
    base_leaks: Array
    base_excitabilities: Array
    leaks_in_force: Array
    driver_of: Array
    first_fired: Array
    memory_fired: Array
    memory_potentials: Array
    modulators: ModulatorTable
    signals: Array
    area_factors: Array
    transmission: Array
    learning: Array


def make_extras(network: Network, members: Members, used: bool) -> Extras:
    """The arrays of the neurons ``members`` at the start; those of no neuron where nothing is ``used``."""
    if not used:
        network, members = Network(NeuronTable.build(0), SynapseTable.build([], [])), slice(None)
    own, tables = clamped_levels(network), feature_tables(network)
    starts, ends, classes = _segments(tables.classes[members])
    leaks = own.leak_coefficients[members]
    count = len(leaks)
    homeostatic = tables.areas.homeostatic[tables.classes[members]]
    return Extras(
        can_train(network)[members],
        np.zeros(count, np.bool_),
        np.zeros(count, np.float32),
        starts,
        ends,
        classes,
        tables.areas,
        np.zeros(count, np.bool_),
        np.zeros(count, np.float32),
        np.where(homeostatic, np.clip(leaks, np.float32(0), np.float32(1)), np.float32(0)),
        np.array(own.thresholds[members]),
        np.array(leaks),
        np.array(own.excitabilities[members]),
        np.array(leaks),
        tables.driver_of,
        np.zeros(tables.modulators.driver_count + 1, np.int64),
        np.zeros(tables.modulators.driver_count + 1, np.bool_),
        np.zeros(tables.modulators.driver_count + 1, np.float32),
        tables.modulators,
        *_factors(tables, network),
    )


def _factors(tables: FeatureTables, network: Network) -> tuple[Array, Array, Array, Array]:
    """Signals and factors before the first burst, in force in both rows until ``derive`` fills them."""
    modulators = tables.modulators
    return (
        np.zeros((2, len(modulators.magnitudes)), np.float32),
        np.full((2, len(tables.areas.alphas), 3), np.nan, np.float32),
        np.ones((2, len(network.features.rules) + 1), np.float32),
        np.ones((2, len(modulators.rewarded)), np.float32),
    )


def _segments(classes: npt.NDArray[np.uint16]) -> tuple[Array, Array, Array]:
    cuts = np.flatnonzero(np.diff(classes)) + 1
    starts = np.concatenate([np.zeros(min(len(classes), 1), np.int64), cuts]).astype(np.int64)
    ends = np.append(cuts, len(classes)).astype(np.int64)[: len(starts)]
    chosen = classes[starts] != 0
    return starts[chosen], ends[chosen], classes[starts][chosen].astype(np.int64)


def state_of(extras: Extras, parameters: Parameters, burst_count: int, since_load: int, psps: Array) -> FeatureState:
    """The features' part of the state after burst ``burst_count``; copies."""
    return FeatureState(
        parameters.thresholds.copy(),
        extras.leaks_in_force.copy(),
        parameters.excitabilities.copy(),
        extras.rates.copy(),
        extras.leaks.copy(),
        extras.trains.copy(),
        np.where(extras.trains, extras.held, np.float32(0)),
        extras.signals[(burst_count + 1) & 1].copy(),
        since_load,
        psps,
    )


def take_state(extras: Extras, parameters: Parameters, members: Members, state: FeatureState) -> None:
    """Take over the part of ``state`` that belongs to ``members``; factors follow from the signals (``derive``)."""
    if len(extras.leaks_in_force):
        parameters.thresholds[:] = state.thresholds[members]
        parameters.excitabilities[:] = state.excitabilities[members]
        extras.leaks_in_force[:] = state.leak_coefficients[members]
        parameters.decays[:] = np.float32(1) - extras.leaks_in_force
    extras.rates[:] = state.firing_rates[members]
    extras.leaks[:] = state.homeostat_leaks[members]
    extras.trains[:] = state.trains[members]
    extras.held[:] = state.held_potentials[members]
    extras.signals[:] = state.signals
