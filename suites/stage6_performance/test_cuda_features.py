"""What features cost on a GPU: beside the same network without them, in turns; every row checked first."""

from __future__ import annotations

from contextlib import ExitStack
from statistics import median

import pytest

from burstproof.engine.cpu.engine import CpuEngine
from burstproof.engine.options import EngineOptions
from burstproof.engine.state import Record
from burstproof.network.model import Network
from stages.measuring import Measure
from suites.support.bench.card_limits import Card
from suites.support.bench.cuda_bench import GENERAL
from suites.support.bench.feature_bench import Compared, compare
from suites.support.bench.feature_networks import mp_driven, with_every_feature, with_memories, with_rules
from suites.support.bench.rows import Row

pytestmark = [pytest.mark.requirement("BE-21", "ST-6", "BE-6"), pytest.mark.gate("gpu")]

NEURONS = Row(1_000_000, 0.01, checked_bursts=6, kind="parameters")
MEMORIES = Row(100_000, 0.01, checked_bursts=60)
RULES = Row(100_000, 0.01, checked_bursts=30)
LIVE, SETTLED = 1000, 200
RATE_TOLERANCE = 0.25
ON_GPU = {"backend": "cuda", "gpus": 1, "device": ...}
RECORDED: dict[Record, dict[str, str]] = {Record.NONE: {}, Record.COUNTS: {"recorded": "counts"}}
"""What timed runs record, and the conditions that say so."""
LIVING: dict[str, object] = {"live": LIVE, "associative": [False, True], **ON_GPU, **MEMORIES.conditions}


def _conditions(row: Row, card: Card) -> dict[str, object]:
    return {"backend": "cuda", "gpus": 1, "device": card.runtime.name, **row.conditions}


def _judges(stack: ExitStack, plain: Network, featured: Network) -> tuple[CpuEngine, CpuEngine]:
    """The CPU engine over both networks."""
    engines = CpuEngine.create(plain, GENERAL), CpuEngine.create(featured, GENERAL)
    for engine in engines:
        stack.enter_context(engine)
    return engines


def _held(result: Compared, row: Row) -> None:
    """Results equal the judge's, and both networks kept their rate."""
    assert result.problems == (), result.problems[0]
    for fired in (result.plain_fired, result.featured_fired):
        off = abs(fired / (row.neurons * row.firing_rate) - 1.0)
        assert off < RATE_TOLERANCE, f"{fired:.0f} of {row.neurons} neurons fired a burst"


@pytest.mark.thorough("builds and checks a network of 100 M synapses")
@pytest.mark.measures("burst.features_over", features="neurons", **ON_GPU, **NEURONS.conditions)
def test_features_of_neurons(card: Card, measure: Measure) -> None:
    """Homeostats, modulators and spike trains on every neuron, against parameters per neuron alone."""
    from burstproof.engine.cuda.engine import CudaEngine

    network = NEURONS.network()
    featured_network = with_every_feature(network)
    with ExitStack() as stack:
        plain = stack.enter_context(CudaEngine.create(network, EngineOptions()))
        featured = stack.enter_context(CudaEngine.create(featured_network, EngineOptions()))
        judges = _judges(stack, network, featured_network)
        result = compare(plain, featured, judges, NEURONS.start, NEURONS.checked_bursts, (SETTLED, SETTLED))
    _held(result, NEURONS)
    conditions = _conditions(NEURONS, card) | {"features": "neurons"}
    ratios = result.ratios
    measure("burst.features_over", median(ratios), "x", samples=ratios, conditions=conditions, note=result.note)


@pytest.mark.thorough("builds and checks networks of 10 M synapses")
@pytest.mark.parametrize("associative", [False, True], ids=["memories", "memories with associations"])
@pytest.mark.parametrize(
    "record",
    [
        pytest.param(record, marks=pytest.mark.measures("burst.memories", **recorded, **LIVING))
        for record, recorded in RECORDED.items()
    ],
    ids=lambda record: record.value,
)
def test_memories(record: Record, associative: bool, card: Card, measure: Measure) -> None:
    """A memory area in which one memory comes and one goes in every burst, beside the network's own time.

    The engine has run so many bursts before that its kernel stays on the device.
    """
    from burstproof.engine.cuda.engine import CudaEngine
    from burstproof.engine.cuda.host.ahead import PAYS

    network = MEMORIES.network()
    remembering = with_memories(network, LIVE, associative)
    with ExitStack() as stack:
        plain = stack.enter_context(CudaEngine.create(network, EngineOptions()))
        featured = stack.enter_context(CudaEngine.create(remembering, EngineOptions()))
        judges, first = _judges(stack, network, remembering), featured.state()
        featured.run(PAYS, record=Record.NONE)
        featured.restore(first)
        settled = SETTLED, LIVE + SETTLED
        result = compare(plain, featured, judges, MEMORIES.start, MEMORIES.checked_bursts, settled, record)
        state = featured.state().features
        assert state is not None
        live = len(state.memory.ids)
    _held(result, MEMORIES)
    assert live == LIVE
    conditions = _conditions(MEMORIES, card) | {"live": live, "associative": associative, **RECORDED[record]}
    added = result.added_us
    measure("burst.memories", median(added), "us", samples=added, conditions=conditions, note=result.note)


@pytest.mark.thorough("builds and checks networks of 10 M synapses")
@pytest.mark.measures("burst.features_over", features="transmission", **ON_GPU, **RULES.conditions)
def test_rules_with_factors(card: Card, measure: Measure) -> None:
    """Synapses of a rule with gains and a gate, against contributions that follow potentials."""
    from burstproof.engine.cuda.engine import CudaEngine

    without, network = mp_driven(RULES.spec), with_rules(RULES.spec)
    with ExitStack() as stack:
        plain = stack.enter_context(CudaEngine.create(without, EngineOptions()))
        featured = stack.enter_context(CudaEngine.create(network, EngineOptions()))
        judges = _judges(stack, without, network)
        result = compare(plain, featured, judges, RULES.start, RULES.checked_bursts, (SETTLED, SETTLED))
    _held(result, RULES)
    conditions = _conditions(RULES, card) | {"features": "transmission"}
    ratios = result.ratios
    measure("burst.features_over", median(ratios), "x", samples=ratios, conditions=conditions, note=result.note)
