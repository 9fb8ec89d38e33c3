"""Kinds of seeded networks: what each adds, that it holds its rate, and that it is the same everywhere."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from burstproof.engine.cpu.engine import CpuEngine
from burstproof.engine.options import CpuOptions, EngineOptions
from burstproof.engine.reference import ReferenceEngine
from burstproof.engine.state import Record, Stimulus
from burstproof.errors import NetworkError
from burstproof.network.model import Network
from burstproof.network.synthetic import microcircuit
from burstproof.network.synthetic.kinds import KINDS, MICROCIRCUIT, SeededNetwork, seeded_network
from suites.support.parity.simulator_check import recordings_differ
from suites.support.plans import every, thinned

pytestmark = pytest.mark.requirement("BE-3", "BE-21")

SIZED = [kind for kind in KINDS if kind != MICROCIRCUIT]
OPTIONS = EngineOptions(cpu=CpuOptions(threads=1, specialise=False))


def started(made: SeededNetwork) -> dict[int, Stimulus]:
    return {burst: Stimulus(forced=ids) for burst, ids in made.start().items()}


@pytest.fixture
def small_circuit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The microcircuit with a sixteenth of its neurons: the probabilities stay, and the firings."""
    sizes = {name: size // 16 for name, size in microcircuit.POPULATIONS.items()}
    monkeypatch.setattr(microcircuit, "POPULATIONS", sizes)


@pytest.mark.parametrize("kind", thinned(SIZED, "a kind of many", keep=every(3)))
def test_a_kind_holds_its_rate(kind: str) -> None:
    """20 K neurons, 300 bursts: the mean of each third within 15 % of 1 %, of all within 10 %."""
    made = seeded_network(kind, 20_000, seed=3)
    with CpuEngine.create(made.network(), OPTIONS) as engine:
        engine.run(40, started(made), Record.COUNTS)
        counts = engine.run(300, record=Record.COUNTS).fired_counts
    rates = counts.reshape(3, 100).mean(axis=1) / 20_000
    assert np.abs(rates / 0.01 - 1).max() < 0.15
    assert abs(rates.mean() / 0.01 - 1) < 0.1


@pytest.mark.parametrize(("rate", "held"), [(0.05, 0.0475), (0.1, 0.0832)])
def test_drawn_parameters_fire_less_than_asked_at_high_rates(rate: float, held: float) -> None:
    """As the help says; up to 5 % they are within 10 %."""
    made = seeded_network("parameters", 20_000, firing_rate=rate)
    with CpuEngine.create(made.network(), OPTIONS) as engine:
        engine.run(40, started(made), Record.COUNTS)
        assert engine.run(200, record=Record.COUNTS).fired_counts.mean() / 20_000 == pytest.approx(held, rel=0.02)


PAIRS = (("uniform", "weights"), ("uniform", "plastic"), ("parameters", "fractions"))


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_fired_lists_alone_do_not_tell_these_kinds_apart(one: str, other: str) -> None:
    """Every contribution reaches a threshold of 1 or 0; fractions divide contributions and thresholds alike."""
    fired = []
    for kind in (one, other):
        made = seeded_network(kind, 20_000)
        with CpuEngine.create(made.network(), OPTIONS) as engine:
            fired.append(engine.run(50, started(made), Record.FIRED))
    assert fired[0].fired_counts.min() > 100
    np.testing.assert_array_equal(fired[0].fired_counts, fired[1].fired_counts)
    np.testing.assert_array_equal(fired[0].fired_ids, fired[1].fired_ids)


def added(network: Network) -> set[str]:
    """What the network has that a uniform one has not."""
    neurons, synapses = network.neurons, network.synapses
    products = synapses.weights * synapses.postsynaptic_potentials
    drawn = (
        neurons.thresholds,
        neurons.threshold_limits,
        neurons.leak_coefficients,
        neurons.refractory_periods,
        neurons.excitabilities,
        neurons.consecutive_fire_limits,
        neurons.snooze_periods,
        neurons.mp_charge_accumulation,
    )
    local = synapses.source_neurons // 1000 == synapses.target_neurons // 1000
    found = {
        "weights": len(np.unique(synapses.weights)) == 255,
        "inhibition": 0.15 < synapses.types.mean() < 0.25,
        "parameters": all(len(np.unique(column)) > 1 for column in drawn),
        "fractions": bool(np.any(products != np.rint(products))),
        "delays": np.array_equal(np.unique(synapses.delay_bursts), np.arange(1, 17)),
        "plastic": [rule.window for rule in network.plastic_mappings] == [3],
        "out-degrees": len(np.unique(np.bincount(synapses.source_neurons))) > 100,
        "areas": len(network.areas) == 20 and 0.78 < local.mean() < 0.85,
    }
    return {name for name, there in found.items() if there}


INHIBITION = {"weights", "inhibition"}
ADDED = {
    "uniform": set(),
    "weights": {"weights"},
    "inhibition": INHIBITION,
    "parameters": INHIBITION | {"parameters"},
    "fractions": INHIBITION | {"parameters", "fractions"},
    "delays": INHIBITION | {"delays"},
    "everything": INHIBITION | {"parameters", "fractions", "delays"},
    "plastic": {"weights", "plastic"},
    "power-law": {"out-degrees"},
    "areas": {"areas"},
}


@pytest.mark.parametrize("kind", SIZED)
def test_what_a_kind_adds(kind: str) -> None:
    made = seeded_network(kind, 20_000, seed=3)
    network = made.network()
    assert added(network) == ADDED[kind]
    assert len(network.synapses) == pytest.approx(2_000_000, rel=0.05)
    assert made.plain == (kind not in ("plastic", "power-law"))


def test_it_is_the_same_on_every_machine() -> None:
    """Everything at once, by its hash; another seed gives another network."""

    def digest(seed: int) -> str:
        network = seeded_network("everything", 2000, 20, 0.05, seed).network()
        columns = [
            network.synapses.target_neurons,
            network.synapses.weights,
            network.synapses.delay_bursts,
            network.synapses.types,
            network.neurons.thresholds,
            network.neurons.excitabilities,
            network.neurons.snooze_periods,
            network.neurons.mp_charge_accumulation,
        ]
        return hashlib.sha256(b"".join(column.tobytes() for column in columns)).hexdigest()[:16]

    assert digest(3) == "4b4b851a4eb8432d"
    assert digest(4) != digest(3)


def test_the_published_sizes_of_the_microcircuit() -> None:
    """77 169 neurons, 298.9 million synapses, mean out-degrees of the populations from 2700 to 6500."""
    counts = microcircuit.synapse_counts()
    sizes = np.array(list(microcircuit.POPULATIONS.values()))
    assert sizes.sum() == microcircuit.microcircuit_spec().neurons == 77_169
    assert counts.sum() == pytest.approx(298.88e6, rel=1e-4)
    out_degrees = counts.sum(axis=0) / sizes
    assert 2700 < out_degrees.min() < 2720
    assert 6470 < out_degrees.max() < 6500
    connected = 1 - (1 - 1 / np.outer(sizes, sizes)) ** counts.astype(np.float64)
    assert np.allclose(connected, microcircuit.PROBABILITIES, atol=1e-6)


@pytest.mark.usefixtures("small_circuit")
def test_a_small_microcircuit() -> None:
    """Synapses by population, weights and delays by type; it fires 25 neurons a burst, and engines agree."""
    made = seeded_network(MICROCIRCUIT, sum(microcircuit.POPULATIONS.values()), seed=2)
    network = made.network()
    synapses, areas = network.synapses, network.neurons.cortical_areas.astype(np.int64) - 7
    pairs = np.zeros((8, 8), np.int64)
    np.add.at(pairs, (areas[synapses.target_neurons], areas[synapses.source_neurons]), 1)
    assert np.array_equal(pairs, microcircuit.synapse_counts())
    inhibitory = np.isin(areas[synapses.source_neurons], [1, 3, 5, 7])
    assert np.array_equal(synapses.types == 1, inhibitory)
    assert set(synapses.weights[inhibitory]) == {4.0}
    assert set(synapses.weights[~inhibitory]) == {1.0}
    for chosen, mean in ((inhibitory, 8.0), (~inhibitory, 15.0)):
        delays = synapses.delay_bursts[chosen]
        assert delays.min() == 1
        assert delays.max() <= 64
        assert delays.mean() == pytest.approx(mean, rel=0.03)
        assert delays.std() == pytest.approx(mean / 2, rel=0.05)
    with CpuEngine.create(network, OPTIONS) as cpu:
        want = ReferenceEngine.create(network).run(80, started(made))
        assert recordings_differ(want, cpu.run(80, started(made))) == []
        fired = cpu.run(1500, record=Record.COUNTS).fired_counts
    assert fired.mean() == pytest.approx(microcircuit.FIRINGS, rel=0.25)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("plastics", 1000), "plastic"),
        ((MICROCIRCUIT, 1000), "77169"),
        ((MICROCIRCUIT, 77_169, 100), "not given"),
        ((MICROCIRCUIT, 77_169, None, 0.01), "not given"),
    ],
)
def test_what_cannot_be_is_refused(arguments: tuple[str, int], words: str) -> None:
    with pytest.raises(NetworkError, match=words):
        seeded_network(*arguments)


def test_another_microcircuit_is_refused_with_what_was_given() -> None:
    with pytest.raises(NetworkError, match=r"got '2000 neurons'; .*Ask for 77169 neurons and nothing else"):
        seeded_network("microcircuit", 2000)
    with pytest.raises(NetworkError, match=r"got '2000 neurons, 10 synapses each, the rate 0\.02'"):
        seeded_network("microcircuit", 2000, 10, 0.02)
