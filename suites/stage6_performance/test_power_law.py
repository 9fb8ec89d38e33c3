"""Power-law networks: their out-degrees, that they are the same everywhere, and that engines agree on them."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np
import pytest

from burstproof.engine.cpu.engine import CpuEngine
from burstproof.engine.reference import ReferenceEngine
from burstproof.engine.state import Stimulus
from burstproof.errors import NetworkError
from burstproof.network.synthetic.build import driven_spec, initial_stimulus
from burstproof.network.synthetic.power_law import power_law_network, share_of_short_rows
from burstproof.network.synthetic.spec import SyntheticSpec
from suites.support.parity.simulator_check import recordings_differ

pytestmark = pytest.mark.requirement("BE-3", "ST-6")

SPEC = driven_spec(20_000, 100, 0.01, seed=3)
LARGEST = 10_000


@pytest.mark.not_proof
def test_out_degrees_follow_the_law() -> None:
    """Mean 100; each decade of out-degrees has a like share of the synapses; a few sources reach half the neurons."""
    network = power_law_network(SPEC, LARGEST)
    degrees = np.diff(network.row_order.offsets)
    assert network.row_order.order is None
    assert degrees.mean() == pytest.approx(100, rel=0.05)
    assert 10 <= degrees.min() < 20
    assert 5000 < degrees.max() <= LARGEST
    for longest in (30, 100, 1000):
        short = degrees[degrees <= longest].sum() / degrees.sum()
        assert short == pytest.approx(share_of_short_rows(100, LARGEST, longest), abs=0.04)
    reached = np.bincount(network.synapses.target_neurons, minlength=SPEC.neurons)
    assert reached.std() == pytest.approx(np.sqrt(reached.mean()), rel=0.05)


@pytest.mark.not_proof
def test_it_is_the_same_on_every_machine() -> None:
    """Degrees and targets of a small network by their hash; another seed gives another network."""
    small = replace(SPEC, neurons=1000, synapses_per_neuron=20)
    synapses = power_law_network(small, 300).synapses
    digest = hashlib.sha256(synapses.source_neurons.tobytes() + synapses.target_neurons.tobytes()).hexdigest()
    assert digest[:16] == "1de08c702a119ef4"
    other = power_law_network(replace(small, seed=4), 300).synapses
    assert other.target_neurons.tobytes() != synapses.target_neurons.tobytes()


@pytest.mark.not_proof
def test_engines_agree_and_it_keeps_its_rate() -> None:
    network, plan = power_law_network(SPEC, LARGEST), {1: Stimulus(forced=initial_stimulus(SPEC))}
    reference, cpu = ReferenceEngine.create(network), CpuEngine.create(network)
    want = reference.run(30, plan)
    assert recordings_differ(want, cpu.run(30, plan)) == []
    assert reference.state().differences(cpu.state()) == ()
    assert want.fired_counts[10:].mean() / SPEC.neurons == pytest.approx(0.01, rel=0.2)


@pytest.mark.not_proof
@pytest.mark.parametrize(
    ("words", "spec", "largest"),
    [
        ("connectivity", replace(SPEC, connectivity="block", blocks=2), LARGEST),
        ("weights", replace(SPEC, weights=(1, 2)), LARGEST),
        ("delays", replace(SPEC, delays=(1, 2)), LARGEST),
        ("inhibitory_fraction", replace(SPEC, inhibitory_fraction=0.5), LARGEST),
        ("largest 100", SPEC, 100),
        ("synapses_per_neuron", replace(SPEC, synapses_per_neuron=2), LARGEST),
    ],
)
def test_what_it_cannot_be_is_refused(words: str, spec: SyntheticSpec, largest: int) -> None:
    with pytest.raises(NetworkError, match=words):
        power_law_network(spec, largest)
