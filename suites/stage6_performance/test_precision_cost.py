"""What reduced precision costs in accuracy: how far its spike trains part from those of fp32 (BE-11).

Measured on the reference, which every engine equals in every format (stage 5). In a network that drives itself any
rounding at all leads to another run in the end; what tells formats apart there is how soon. Where input decides, the
share of common firings does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from burstproof.engine.options import EngineOptions
from burstproof.engine.precision import Precision, storage_for
from burstproof.engine.reference import ReferenceEngine
from burstproof.engine.replay import trace_options
from burstproof.engine.state import Recording, Stimulus, StimulusPlan
from burstproof.engine.trace import read_trace
from burstproof.network.model import Network
from burstproof.network.synthetic.build import synthesize
from burstproof.network.synthetic.spec import SyntheticSpec
from stages.measuring import Measure
from suites.support.networks.small_networks import OPTIONS as GENOME_OPTIONS
from suites.support.networks.small_networks import seeded_plan, small_network
from suites.support.parity.reduced import REDUCED, Divergence, divergence

pytestmark = pytest.mark.requirement("BE-11")

COST = pytest.mark.measures(
    "precision.first_divergence",
    "precision.fired_jaccard",
    "precision.fired_coincidence",
    "precision.rate_difference",
    precision=[precision.value for precision in REDUCED],
    network=...,
)
TRACES = Path(__file__).parents[1] / "data" / "golden" / "traces"
TRACE_NAMES = sorted(path.stem for path in TRACES.glob("*.npz"))
SYNTHETIC_NEURONS, SYNTHETIC_BURSTS = 3000, 150
GENOME_BURSTS = 60
SELF_DRIVEN, INPUT_DRIVEN = "fractions, drives itself", "fractions, driven by input"
_THRESHOLDS = {SELF_DRIVEN: 5.0, INPUT_DRIVEN: 8.0}


@dataclass(frozen=True, eq=False)
class Scene:
    """A network with its input."""

    name: str
    network: Network
    options: EngineOptions
    plan: StimulusPlan
    bursts: int

    def run(self, precision: Precision) -> Recording:
        """The run of the reference in that precision."""
        return ReferenceEngine.create(self.network, replace(self.options, precision=precision)).run(
            self.bursts, self.plan
        )


def _synthetic(name: str) -> Scene:
    spec = SyntheticSpec(
        SYNTHETIC_NEURONS,
        40,
        seed=9,
        weights=(1, 5),
        delays=(1, 4),
        inhibitory_fraction=0.2,
        postsynaptic_potential=0.13,
        threshold=_THRESHOLDS[name],
        leak=0.1,
        refractory_period=2,
    )
    rng = np.random.default_rng(4)
    plan = {}
    for burst in range(1, SYNTHETIC_BURSTS + 1):
        ids = np.flatnonzero(rng.random(SYNTHETIC_NEURONS) < 0.05).astype(np.uint32)
        plan[burst] = Stimulus(ids, (3 * rng.random(len(ids))).astype(np.float32))
    options = EngineOptions(max_stimulus=8.0, fractional_stimulus=True)
    return Scene(name, synthesize(spec), options, plan, SYNTHETIC_BURSTS)


def _essential() -> Scene:
    network = small_network("essential")
    return Scene("essential genome", network, GENOME_OPTIONS, seeded_plan(network, GENOME_BURSTS), GENOME_BURSTS)


def _trace(name: str) -> Scene:
    """The network and input of a recording; what was under way at its start is left out."""
    trace = read_trace(TRACES / name)
    return Scene(f"trace {name}", trace.network, trace_options(trace), trace.plan, len(trace.bursts))


def _cost(scene: Scene, measure: Measure) -> dict[Precision, Divergence]:
    """Measure every format on ``scene``; fp32 against itself has to agree."""
    expected = scene.run(Precision.FP32)
    neurons = scene.network.neuron_count
    assert divergence(expected, scene.run(Precision.FP32), neurons) == Divergence(scene.bursts + 1, 1.0, 1.0, 0.0)
    assert expected.fired_counts.sum() > 0
    found = {}
    for precision in REDUCED:
        cost = found[precision] = divergence(expected, scene.run(precision), neurons)
        step = storage_for(precision, scene.network.neurons.thresholds).step
        conditions = {"network": scene.name, "precision": precision.value, "bursts": scene.bursts}
        note = f"of {scene.bursts} bursts with {expected.fired_counts.sum()} firings"
        note += f", steps of {step:g}" if precision is Precision.INT8 else ""
        measure("precision.first_divergence", cost.first_burst, "bursts", conditions=conditions, note=note)
        measure("precision.fired_jaccard", cost.jaccard, "1", conditions=conditions, note=note)
        measure("precision.fired_coincidence", cost.coincidence, "1", conditions=conditions, note=note)
        measure("precision.rate_difference", cost.rate_difference, "1", conditions=conditions, note=note)
    return found


@COST
@pytest.mark.thorough("measures for seconds")
@pytest.mark.parametrize("name", _THRESHOLDS)
def test_cost_on_fractional_contributions(name: str, measure: Measure) -> None:
    """Potentials that no reduced format holds exactly: every format parts from fp32, fewer bits sooner."""
    found = _cost(_synthetic(name), measure)
    first = [found[precision].first_burst for precision in (Precision.FP16, Precision.BF16, Precision.INT8)]
    assert first == sorted(first, reverse=True)
    assert first[0] <= SYNTHETIC_BURSTS


@COST
def test_cost_on_the_essential_genome(measure: Measure) -> None:
    found = _cost(_essential(), measure)
    assert all(0.0 <= cost.jaccard <= cost.coincidence <= 1.0 for cost in found.values())


@COST
@pytest.mark.thorough("measures for seconds")
@pytest.mark.parametrize("name", TRACE_NAMES)
def test_cost_on_recorded_networks(name: str, measure: Measure) -> None:
    found = _cost(_trace(name), measure)
    assert all(0.0 <= cost.jaccard <= cost.coincidence <= 1.0 for cost in found.values())


def _recording(*bursts: list[int]) -> Recording:
    counts = np.array([len(ids) for ids in bursts])
    ids = np.array([neuron for burst in bursts for neuron in burst], np.uint32)
    return Recording(np.arange(1, len(bursts) + 1), counts, counts, ids, np.zeros(len(ids), np.float32))


@pytest.mark.not_proof
@pytest.mark.parametrize(
    ("got", "expected"),
    [
        (([1, 2], [], [3]), Divergence(4, 1.0, 1.0, 0.0)),
        (([1, 2], [3], []), Divergence(2, 2 / 4, 1.0, 0.0)),  # neuron 3 one burst early: near, but not common
        (([1], [], [3]), Divergence(1, 2 / 3, 4 / 5, 2 / 3 - 1)),
        (([], [], []), Divergence(1, 0.0, 0.0, -1.0)),
        (([1, 2], [], [2, 3]), Divergence(3, 3 / 4, 6 / 7, 4 / 3 - 1)),  # neuron 2 two bursts apart: no partner
    ],
)
def test_divergence_by_hand(got: tuple[list[int], ...], expected: Divergence) -> None:
    """Against neurons 1 and 2 in the first burst and 3 in the third, of 4 neurons."""
    found = divergence(_recording([1, 2], [], [3]), _recording(*got), 4)
    assert (found.first_burst, found.rate_difference) == (expected.first_burst, expected.rate_difference)
    assert (found.jaccard, found.coincidence) == pytest.approx((expected.jaccard, expected.coincidence))


@pytest.mark.not_proof
def test_silence_against_silence() -> None:
    assert divergence(_recording([], []), _recording([], []), 4) == Divergence(3, 1.0, 1.0, 0.0)
