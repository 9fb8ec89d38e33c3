"""The small networks of stage 4 and 5: 1 K neurons with 10 K synapses, and the shipped genomes as they grow."""

from __future__ import annotations

import numpy as np

from burstproof.engine.options import EngineOptions
from burstproof.engine.state import Stimulus, StimulusPlan
from burstproof.network.grow.genome import read_genome
from burstproof.network.grow.growth import grow
from burstproof.network.model import Network
from burstproof.network.synthetic.build import synthesize
from burstproof.network.synthetic.spec import SyntheticSpec
from suites.support.networks.growth_golden import GENOMES, SHIPPED

SYNTHETIC = "1 K neurons, 10 K synapses"
NAMES = (SYNTHETIC, *SHIPPED)
OPTIONS = EngineOptions(max_stimulus=64.0)

_MOST_STIMULATED = 400
_MOST_FORCED = 40


def small_network(name: str) -> Network:
    """The network of that name, one of ``NAMES``."""
    if name != SYNTHETIC:
        return grow(read_genome(GENOMES / f"{name}_genome.json"), seed=1)
    spec = SyntheticSpec(
        neurons=1000,
        synapses_per_neuron=10,
        seed=4,
        weights=(1, 4),
        delays=(1, 3),
        inhibitory_fraction=0.2,
        threshold=3.0,
        leak=0.25,
        refractory_period=1,
        consecutive_fire_limit=3,
        snooze_period=2,
        excitability=0.9,
    )
    return synthesize(spec)


def seeded_plan(network: Network, bursts: int, seed: int = 11) -> StimulusPlan:
    """Whole amounts for up to 400 valid neurons and up to 40 forced firings in each of the coming bursts.

    A genome alone hardly fires: without input only the power neuron is a candidate.
    """
    rng = np.random.default_rng(seed)
    valid = np.flatnonzero(network.neurons.valid_mask).astype(np.uint32)
    stimulated, forced = min(len(valid), _MOST_STIMULATED), min(len(valid), _MOST_FORCED)
    plan = {}
    for burst in range(network.burst_count + 1, network.burst_count + bursts + 1):
        ids = rng.choice(valid, rng.integers(1, stimulated + 1), replace=False)
        amounts = rng.integers(1, 33, len(ids)).astype(np.float32)
        plan[burst] = Stimulus(ids, amounts, rng.choice(valid, rng.integers(0, forced + 1)))
    return plan
