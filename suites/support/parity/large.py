"""Large networks for parity: a plain driven one, and rich ones in which every rule is at work and firing goes on."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from burstproof.engine.options import EngineOptions
from burstproof.engine.state import EngineState, Stimulus, StimulusPlan
from burstproof.network.model import Area, Network
from burstproof.network.schema import NO_LIMIT, UNLIMITED_FIRES
from burstproof.network.synthetic.build import driven_spec, initial_stimulus, synthesize

FIRING_RATE = 0.01
SYNAPSES_PER_NEURON = 100
OPTIONS = EngineOptions(max_stimulus=64.0)

_SEED = 7
_EXCITABLE = 2.0
"""Factor on the excitability of a driven network: what higher thresholds, limits and inhibition take away."""

_NO_WEIGHTS = np.empty(0, np.float32)


@dataclass(frozen=True)
class Large:
    """A large network by name; ``rich`` mixes the rules, ``computed`` adds mp-driven areas and delays."""

    name: str
    neurons: int
    bursts: int
    rich: bool = True
    computed: bool = False


def large_network(large: Large) -> Network:
    """The network; equal descriptions give equal networks."""
    spec = driven_spec(large.neurons, SYNAPSES_PER_NEURON, FIRING_RATE, _SEED)
    if not large.rich:
        return synthesize(spec)
    delays = (1, 3) if large.computed else 1
    spec = dataclasses.replace(spec, inhibitory_fraction=0.15, weights=(0, 3), delays=delays)
    return _enriched(synthesize(spec), spec.excitability, large.computed)


def _enriched(network: Network, excitability: float, computed: bool) -> Network:
    """Per-neuron parameters of every kind, and areas with different flags."""
    rng = np.random.default_rng(_SEED)
    count = network.neuron_count
    low = min(1.0, _EXCITABLE * excitability)
    neurons = dataclasses.replace(
        network.neurons,
        membrane_potentials=rng.integers(0, 3, count).astype(np.float32),
        thresholds=rng.choice(np.array([0.5, 1, 1.5, 3], np.float32), count),
        threshold_limits=np.where(rng.random(count) < 0.2, np.float32(6), NO_LIMIT),
        leak_coefficients=rng.choice(np.array([0, 0.1, 0.37], np.float32), count),
        refractory_periods=rng.choice(np.array([0, 1, 2, 5], np.uint16), count),
        refractory_countdowns=rng.choice(np.array([0, 0, 3], np.uint16), count),
        excitabilities=rng.choice(np.array([low, low, low, 0.5 * low, 1.0, 0.0], np.float32), count, p=_SHARES),
        cortical_areas=rng.integers(7, 10, count).astype(np.uint32),
        consecutive_fire_limits=rng.choice(np.array([UNLIMITED_FIRES, 1, 2, 0], np.uint16), count),
        snooze_periods=rng.choice(np.array([0, 4, 9], np.uint16), count),
        valid_mask=rng.random(count) > 0.01,
        mp_charge_accumulation=rng.random(count) < 0.7,
    )
    areas = (
        Area(7, "uniform", psp_uniform_distribution=True, mp_driven_psp=False),
        Area(8, "divided", psp_uniform_distribution=False, mp_driven_psp=False),
        Area(9, "third", psp_uniform_distribution=True, mp_driven_psp=computed),
    )
    return network.replace(neurons=neurons, areas=areas)


_SHARES = (0.25, 0.25, 0.25, 0.2, 0.003, 0.047)


def large_plan(large: Large, network: Network) -> StimulusPlan:
    """The start at the firing rate; rich networks get amounts, negative ones too, and forced firings on the way."""
    spec = driven_spec(large.neurons, SYNAPSES_PER_NEURON, FIRING_RATE, _SEED)
    start = initial_stimulus(spec)
    if not large.rich:
        return {1: Stimulus(forced=start)}
    rng = np.random.default_rng(_SEED + 1)
    valid = np.flatnonzero(network.neurons.valid_mask).astype(np.uint32)
    plan = {1: Stimulus(forced=np.intersect1d(start, valid))}
    for burst in range(2, large.bursts + 1, 3):
        ids = rng.choice(valid, large.neurons // 2000)
        amounts = rng.integers(-4, 17, len(ids)).astype(np.float32)
        plan[burst] = Stimulus(ids, amounts, rng.choice(valid, rng.integers(0, 20)))
    return plan


def slim(state: EngineState) -> EngineState:
    """The state without the columns of the synapses, which do not change without plasticity."""
    return dataclasses.replace(state, weights=_NO_WEIGHTS, eligibility_traces=_NO_WEIGHTS)
