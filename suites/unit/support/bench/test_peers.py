"""What is handed to other programs is the network itself, and a wrong sum is seen."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from burstproof.network.synthetic.build import synthesize
from burstproof.network.synthetic.kinds import seeded_network
from suites.support.bench.peers import PEERS, Peer, Ready, delivery_of, disagreement

pytestmark = pytest.mark.requirement("ST-6", "BE-21")

FIRED = (np.arange(0, 2000, 7, dtype=np.uint32), np.arange(3, 2000, 11, dtype=np.uint32))


@pytest.mark.parametrize("kind", ["uniform", "weights", "inhibition"])
def test_it_is_the_network_itself(kind: str) -> None:
    """Targets and signed weights as the host builds them; sums as its synapses add up."""
    spec = seeded_network(kind, 2000, 30, 0.05, seed=3).spec
    delivery, synapses = delivery_of(spec, FIRED), synthesize(spec).synapses
    signed = np.where(synapses.types == 1, -synapses.weights, synapses.weights)
    assert np.array_equal(delivery.targets.ravel(), synapses.target_neurons)
    assert np.array_equal(delivery.weights.ravel(), signed)
    for burst, ids in enumerate(FIRED):
        sums = np.zeros(2000)
        chosen = np.isin(synapses.source_neurons, ids)
        np.add.at(sums, synapses.target_neurons[chosen], signed[chosen])
        assert np.array_equal(delivery.sums(burst), sums)
        assert np.array_equal(np.flatnonzero(delivery.spikes()[burst]), ids)
        assert np.array_equal(delivery.padded()[burst, : len(ids)], ids)
    assert set(delivery.padded()[1, len(FIRED[1]) :]) == {2000}


def test_a_wrong_sum_is_seen() -> None:
    delivery = delivery_of(seeded_network("weights", 2000, 30, 0.05).spec, FIRED)
    right = Ready(delivery.sums, lambda: 1.0)
    assert disagreement(delivery, right) == ""

    def off(burst: int) -> npt.NDArray[np.float32]:
        return delivery.sums(burst) + np.eye(1, 2000, 5, dtype=np.float32)[0] * burst

    assert disagreement(delivery, Ready(off, lambda: 1.0)) == "burst 1: 1 of 2000 sums differ"


@pytest.mark.parametrize("peer", PEERS.values(), ids=lambda peer: peer.name)
def test_a_program_that_is_not_installed_is_named(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert peer.missing == peer.packages


@pytest.mark.parametrize("name", ["brainevent", "JAX scatter"])
@pytest.mark.parametrize("kind", ["uniform", "inhibition"])
def test_jax_adds_exactly_where_it_is_installed(name: str, kind: str) -> None:
    peer = PEERS[name]
    if peer.missing:
        pytest.skip(f"not installed: {', '.join(peer.missing)}")
    delivery = delivery_of(seeded_network(kind, 2000, 30, 0.05).spec, FIRED)
    ready = peer.ready(delivery)
    assert disagreement(delivery, ready) == ""
    assert ready.sample() > 0
