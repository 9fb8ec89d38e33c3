"""Arrays that features add to the CPU engine (FEATURES sections 1 to 3), and their conversion from and to the state."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from burstproof.engine.feature_state import FeatureState
from burstproof.engine.features.levels import clamped_levels
from burstproof.engine.features.tables import AreaTable, ModulatorTable, can_train, feature_tables
from burstproof.network.model import Network, NeuronTable, SynapseTable
from burstproof.network.schema import Parameters

Array = npt.NDArray[Any]
Members = npt.NDArray[np.uint32] | slice


class Extras(NamedTuple):
    """Feature arrays of the n neurons held here; the network has N.

    Attributes
    ----------
    can_train, trains : bool (n,)
        Neurons whose firings start a spike train, and neurons in a train.
    held : float32 (n,)
        Potentials that the trains carry.
    starts, ends, classes : int64 (G,)
        Runs of consecutive neurons of one area class, without class 0.
    areas : AreaTable
    fired : bool (n,)
        Scratch: flags of the fired neurons; all false between bursts.
    rates, leaks : float32 (n,)
        Average rate r and leak g of the homeostat.
    base_thresholds, base_leaks, base_excitabilities, leaks_in_force : float32 (n,)
    driver_of : uint16 (N,)
    first_fired : int64 (D + 1,)
        Scratch: index in the fired list of the first firing of each driver area.
    memory_fired, memory_potentials : bool, float32 (D + 1,)
        Whether a memory neuron of driver area d fires in the burst, and the potential of the first one, at d + 1.
    modulators : ModulatorTable
    signals : float32 (2, M)
        Row b mod 2 holds those in force in burst b; likewise for all factors.
    area_factors : float32 (2, C, 3)
        NaN before the first burst.
    transmission : float32 (2, R + 1)
    learning : float32 (2, P)
        Learning factor of each plastic pair, times its reward if it has rewards.
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
    """The arrays of the neurons ``members`` at the start; empty ones if no feature is ``used``."""
    if not used:
        network, members = Network(NeuronTable.build(0), SynapseTable.build([], [])), slice(None)
    own, tables = clamped_levels(network), feature_tables(network)
    starts, ends, classes = _segments(tables.classes[members])
    leaks = own.leak_coefficients[members]
    count = len(leaks)
    homeostatic = tables.areas.homeostatic[tables.classes[members]]
    modulators = tables.modulators
    drivers = modulators.driver_count + 1
    return Extras(
        can_train=can_train(network)[members],
        trains=np.zeros(count, np.bool_),
        held=np.zeros(count, np.float32),
        starts=starts,
        ends=ends,
        classes=classes,
        areas=tables.areas,
        fired=np.zeros(count, np.bool_),
        rates=np.zeros(count, np.float32),
        leaks=np.where(homeostatic, np.clip(leaks, np.float32(0), np.float32(1)), np.float32(0)),
        base_thresholds=np.array(own.thresholds[members]),
        base_leaks=np.array(leaks),
        base_excitabilities=np.array(own.excitabilities[members]),
        leaks_in_force=np.array(leaks),
        driver_of=tables.driver_of,
        first_fired=np.zeros(drivers, np.int64),
        memory_fired=np.zeros(drivers, np.bool_),
        memory_potentials=np.zeros(drivers, np.float32),
        modulators=modulators,
        signals=np.zeros((2, len(modulators.magnitudes)), np.float32),
        area_factors=np.full((2, len(tables.areas.alphas), 3), np.nan, np.float32),
        transmission=np.ones((2, len(network.features.rules) + 1), np.float32),
        learning=np.ones((2, len(modulators.rewarded)), np.float32),
    )


def _segments(classes: npt.NDArray[np.uint16]) -> tuple[Array, Array, Array]:
    """Starts, ends and class of each run of equal ``classes``, without class 0."""
    cuts = np.flatnonzero(np.diff(classes)) + 1
    starts = np.concatenate([np.zeros(min(len(classes), 1), np.int64), cuts]).astype(np.int64)
    ends = np.append(cuts, len(classes)).astype(np.int64)[: len(starts)]
    chosen = classes[starts] != 0
    return starts[chosen], ends[chosen], classes[starts][chosen].astype(np.int64)


def state_of(extras: Extras, parameters: Parameters, burst_count: int, since_load: int, psps: Array) -> FeatureState:
    """The features' part of the state after burst ``burst_count``; copies."""
    return FeatureState(
        thresholds=parameters.thresholds.copy(),
        leak_coefficients=extras.leaks_in_force.copy(),
        excitabilities=parameters.excitabilities.copy(),
        firing_rates=extras.rates.copy(),
        homeostat_leaks=extras.leaks.copy(),
        trains=extras.trains.copy(),
        held_potentials=np.where(extras.trains, extras.held, np.float32(0)),
        signals=extras.signals[(burst_count + 1) & 1].copy(),
        bursts_since_load=since_load,
        postsynaptic_potentials=psps,
    )


def take_state(extras: Extras, parameters: Parameters, members: Members, state: FeatureState) -> None:
    """Restore the part of ``state`` of the neurons ``members``; ``derive`` computes the factors from the signals."""
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
