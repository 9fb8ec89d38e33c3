"""A network most of whose potentials, thresholds and limits are subnormal, and which goes on firing all the same."""

from __future__ import annotations

import numpy as np

from burstproof.engine.options import EngineOptions
from burstproof.engine.reference import ReferenceEngine
from burstproof.engine.state import EngineState, Recording, Stimulus, StimulusPlan
from burstproof.network.model import Network, NeuronTable, SynapseTable
from burstproof.network.schema import NO_LIMIT
from suites.support.parity.batch_checks import recordings_differ
from suites.support.parity.builder import CreateEngine

NEURONS, SYNAPSES, BURSTS = 400, 3000, 60
_LEAKS = (0.0, 0.1, 0.37, 0.5, 0.75, 0.9, 1.0, 1.25, 1.9, -1.0, 10.0)
"""Factors below 1 lead into the subnormals; -0.9, 2 and -9 lead out of them again."""


def subnormal_network() -> Network:
    """The network; most synapses have weight 0, so that their targets are candidates and nothing else."""
    rng = np.random.default_rng(149)
    negative = np.where(rng.random(NEURONS) < 0.2, -1.0, 1.0)
    neurons = NeuronTable.build(
        NEURONS,
        membrane_potentials=np.ldexp(rng.random(NEURONS) * negative, rng.integers(-149, -115, NEURONS)),
        thresholds=np.where(rng.random(NEURONS) < 0.5, _subnormals(rng), rng.choice([0, 2.0**-120, 1], NEURONS)),
        threshold_limits=np.where(rng.random(NEURONS) < 0.7, 2.0**-127, NO_LIMIT),
        leak_coefficients=rng.choice(_LEAKS, NEURONS),
        refractory_periods=rng.choice([0, 1, 2], NEURONS),
        excitabilities=rng.choice([1, 1, 0.5, 1e-40], NEURONS),
        mp_charge_accumulation=rng.random(NEURONS) < 0.8,
    )
    synapses = SynapseTable.build(
        rng.integers(0, NEURONS, SYNAPSES),
        rng.integers(0, NEURONS, SYNAPSES),
        weights=rng.random(SYNAPSES) < 0.03,
        postsynaptic_potentials=np.ones(SYNAPSES),
        types=rng.random(SYNAPSES) < 0.3,
    )
    return Network(neurons, synapses)


def _subnormals(rng: np.random.Generator) -> np.ndarray:
    return np.ldexp(rng.integers(-50, 1 << 20, NEURONS).astype(np.float64), -149 + rng.integers(0, 4, NEURONS))


def subnormal_plan() -> StimulusPlan:
    """A quarter of the neurons become candidates in every burst, with a sum of 0."""
    rng = np.random.default_rng(150)
    nothing = np.zeros(NEURONS // 4, np.float32)
    return {b: Stimulus(rng.permutation(NEURONS)[: len(nothing)].astype(np.uint32), nothing) for b in range(1, BURSTS)}


def run_subnormal(create: CreateEngine) -> tuple[Recording, EngineState]:
    """What an engine does with the network."""
    engine = create(subnormal_network(), EngineOptions())
    try:
        return engine.run(BURSTS, subnormal_plan()), engine.state()
    finally:
        engine.close()


def subnormal_problems(create: CreateEngine) -> list[str]:
    """What an engine does otherwise than the reference."""
    (expected, after), (got, state) = run_subnormal(ReferenceEngine.create), run_subnormal(create)
    return [*recordings_differ(expected, got), *after.differences(state)]
