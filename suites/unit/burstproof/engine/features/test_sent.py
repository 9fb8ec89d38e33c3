"""Synapses that the host sends along: which they may be, and what they carry."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from burstproof.engine.features.sent import MOST_ROWS, SentRows, can_be_sent
from burstproof.network.features import AreaFeatures, Features
from burstproof.network.model import Area, Network, NeuronTable, SynapseTable

pytestmark = pytest.mark.requirement("BE-4")

ROWS = np.array([0, 2])


def network_of(areas: tuple[Area, ...] = (), features: Features | None = None, **columns: Any) -> Network:
    """Three synapses, of which the first and the last lead from area 7 to 8."""
    neurons = NeuronTable.build(4, cortical_areas=[7, 7, 8, 8])
    synapses = SynapseTable.build([0, 2, 1], [2, 0, 3], **columns)
    return Network(neurons, synapses, areas=areas, features=features or Features())


def test_contributions_are_weight_times_psp_of_what_fired() -> None:
    rows = SentRows(network_of(weights=[2, 9, 3], postsynaptic_potentials=[4, 9, 5], types=[0, 0, 1]), ROWS)
    places = rows.places([1, 3, 0])
    targets, products, signs = rows.contributions(places, np.array([2, 3], np.float32))
    assert [targets.tolist(), products.tolist(), signs.tolist()] == [[3, 2], [15, 8], [-1, 1]]
    assert rows.places([2]) == []


def test_few_plain_synapses_can_be_sent() -> None:
    uniform = tuple(Area(one, f"c{one}", psp_uniform_distribution=True) for one in (7, 8))
    assert can_be_sent(network_of(), ROWS)
    assert can_be_sent(network_of(uniform), ROWS)


@pytest.mark.parametrize(
    "network",
    [
        network_of(delay_bursts=[1, 1, 2]),
        network_of((Area(7, "c7", psp_uniform_distribution=False), Area(8, "c8"))),
        network_of((Area(7, "c7", psp_uniform_distribution=True, mp_driven_psp=True), Area(8, "c8"))),
        network_of(features=Features(areas={7: AreaFeatures(degeneration=0.5)})),
    ],
    ids=["delay", "divided", "driven by potentials", "degenerating"],
)
def test_others_stay_with_the_device(network: Network) -> None:
    assert not can_be_sent(network, ROWS)
    assert can_be_sent(network, ROWS[:0])


def test_many_stay_with_the_device() -> None:
    assert not can_be_sent(network_of(), np.zeros(MOST_ROWS + 1, np.int64))
