"""Which shard gets which neuron: every strategy, its balance, and what it costs (MG-1)."""

from __future__ import annotations

import numpy as np
import pytest

from burstproof.engine.sharded.partition import (
    STRATEGIES,
    balanced_ranges,
    make_partition,
    metis_available,
    neuron_cost,
    partition_of,
)
from burstproof.engine.sharded.quality import partition_quality
from burstproof.errors import EnvironmentInvalidError, InputError
from burstproof.network.model import Network, NeuronTable, SynapseTable

pytestmark = pytest.mark.requirement("MG-1", "ST-7")

NEURONS = 600
HERE = [
    pytest.param(
        name,
        marks=[] if name != "metis" or metis_available() else pytest.mark.skip(reason="pymetis is not installed"),
    )
    for name in STRATEGIES
]


@pytest.fixture(scope="module")
def network() -> Network:
    """Three areas of 100, 200 and 300 neurons in blocks; most synapses stay in a block of 100, more end in low ids."""
    rng = np.random.default_rng(5)
    sources = rng.integers(0, NEURONS, 12_000)
    near = sources // 100 * 100 + rng.integers(0, 100, 12_000)
    far = rng.integers(0, NEURONS, 12_000) ** 2 // NEURONS
    targets = np.where(rng.random(12_000) < 0.8, near, far)
    areas = np.repeat([7, 8, 9], [100, 200, 300])
    return Network(NeuronTable.build(NEURONS, cortical_areas=areas), SynapseTable.build(sources, targets))


@pytest.mark.parametrize("strategy", HERE)
@pytest.mark.parametrize("shards", [1, 2, 3, 7])
def test_every_neuron_has_one_owner_and_one_place(network: Network, strategy: str, shards: int) -> None:
    partition = make_partition(network, shards, strategy)
    members = [partition.members(shard) for shard in range(shards)]
    assert np.array_equal(np.sort(np.concatenate(members)), np.arange(NEURONS))
    assert all(len(ids) > 0 and bool((np.diff(ids.astype(np.int64)) > 0).all()) for ids in members)
    for shard, ids in enumerate(members):
        assert set(partition.owner[ids].tolist()) == {shard}
        assert np.array_equal(partition.local_ids[ids], np.arange(len(ids)))
    assert partition.sizes.tolist() == [len(ids) for ids in members]


def test_contiguous_and_round_robin_are_told_apart(network: Network) -> None:
    assert make_partition(network, 3, "contiguous").owner.tolist() == [0] * 200 + [1] * 200 + [2] * 200
    assert make_partition(network, 3, "round_robin").owner.tolist() == [0, 1, 2] * 200


def test_areas_stay_whole_unless_one_is_too_large(network: Network) -> None:
    """Two shards: the area of 300 is no more than half. Six: it has to be cut."""
    areas = network.neurons.cortical_areas
    owners = make_partition(network, 2, "by_cortical_area").owner
    assert all(len(set(owners[areas == area].tolist())) == 1 for area in (8, 9))
    assert len(set(make_partition(network, 6, "by_cortical_area").owner[areas == 9].tolist())) > 1


def test_dynamic_balances_synapses_first_and_activity_then(network: Network) -> None:
    """Cost is balanced better than by equal ranges; neurons whose sources fire more get fewer companions."""
    dynamic, equal = make_partition(network, 4, "dynamic"), make_partition(network, 4, "contiguous")
    assert partition_quality(network, dynamic).cost_imbalance < partition_quality(network, equal).cost_imbalance
    activity = np.where(np.arange(NEURONS) < 100, 1.0, 0.001)
    followed = make_partition(network, 4, "dynamic", activity)
    assert followed.sizes[0] < dynamic.sizes[0]
    measured = [partition_quality(network, one, activity).cost_imbalance for one in (followed, dynamic)]
    assert measured[0] < measured[1]


@pytest.mark.skipif(not metis_available(), reason="pymetis is not installed")
def test_metis_cuts_fewer_synapses(network: Network) -> None:
    found = {name: partition_quality(network, make_partition(network, 3, name)) for name in ("metis", "round_robin")}
    assert found["metis"].cut_synapses < found["round_robin"].cut_synapses / 2
    assert found["metis"].cost_imbalance < 1.1


def test_cost_counts_dynamics_and_arrivals() -> None:
    """1 for a neuron; 2 for each arrival, at 1 % without activity, else as often as the source fires."""
    synapses = SynapseTable.build([0, 0, 1, 2], [1, 2, 2, 2], valid_mask=[True, True, True, False])
    network = Network(NeuronTable.build(3), synapses)
    assert neuron_cost(network).tolist() == pytest.approx([1, 1.02, 1.04])
    assert neuron_cost(network, np.array([0.5, 0.25, 1])).tolist() == pytest.approx([1, 2, 2.5])
    assert neuron_cost(network, np.zeros(3)).tolist() == [1, 1, 1]


def test_ranges_are_never_empty_where_there_are_enough_items() -> None:
    assert balanced_ranges(np.array([100.0, 1, 1, 1]), 3).tolist() == [0, 1, 2, 2]
    assert balanced_ranges(np.array([1.0, 1, 1, 100]), 3).tolist() == [0, 0, 1, 2]
    assert balanced_ranges(np.ones(2), 2).tolist() == [0, 1]


def test_figures_of_a_partition_by_hand() -> None:
    """Neurons 0, 1 | 2: synapses 0-1, 1-2, 2-0 and an invalid one; two of three are cut."""
    synapses = SynapseTable.build([0, 1, 2, 0], [1, 2, 0, 2], valid_mask=[True, True, True, False])
    quality = partition_quality(Network(NeuronTable.build(3), synapses), partition_of(np.array([0, 0, 1]), 2, "hand"))
    assert (quality.neurons, quality.synapses, quality.cut_synapses) == ((2, 1), (2, 1), 2)
    assert quality.cut_share == pytest.approx(2 / 3)
    assert quality.neuron_imbalance == quality.synapse_imbalance == pytest.approx(4 / 3)
    assert quality.bytes_per_burst(10) == 80


@pytest.mark.parametrize(
    ("shards", "strategy", "activity", "where"),
    [
        (0, "contiguous", None, "shards"),
        (NEURONS + 1, "contiguous", None, "shards"),
        (2, "hash", None, "strategy"),
        (2, "dynamic", np.ones(3), "activity"),
        (2, "dynamic", np.full(NEURONS, -0.1), "activity"),
        (2, "dynamic", np.full(NEURONS, 7), "activity"),
        (2, "by_cortical_area", np.full(NEURONS, np.nan), "activity"),
    ],
)
def test_what_is_no_partition_is_refused(
    network: Network, shards: int, strategy: str, activity: np.ndarray | None, where: str
) -> None:
    with pytest.raises(InputError) as caught:
        make_partition(network, shards, strategy, activity)
    assert caught.value.where == where


def test_metis_without_its_package_names_the_extra(network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("burstproof.engine.sharded.partition.metis_available", lambda: False)
    with pytest.raises(EnvironmentInvalidError, match=r"pip install '\.\[metis\]'"):
        make_partition(network, 2, "metis")
