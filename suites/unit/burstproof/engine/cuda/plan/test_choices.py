"""What a record says that the engine chose, and why."""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np
import pytest

from burstproof.engine.cuda.plan.choices import choices_of
from burstproof.engine.cuda.plan.packed import pack_network
from burstproof.engine.options import CudaOptions, EngineOptions
from burstproof.engine.profile import FEAGI_2_6, FEAGI_BETA, Profile
from burstproof.network.model import Area, Network, NeuronTable, SynapseTable
from burstproof.network.plasticity import PlasticMapping

pytestmark = pytest.mark.requirement("BE-4", "BE-12")


SLOT = "contributions added to a slot of the FCL, which the cache holds"


def chosen(ring_bytes: int = 1 << 24, sum_bits: int = 0, areas: tuple[Area, ...] = (), **synapses: Any) -> str:
    ids = np.arange(8)
    network = Network(NeuronTable.build(8), SynapseTable.build(ids, np.roll(ids, 1), **synapses), areas=areas)
    with mock.patch("burstproof.engine.cuda.plan.sizing._RING_BYTES", ring_bytes):
        return choices_of(pack_network(network, EngineOptions(cuda=CudaOptions(sum_bits=sum_bits))))


@pytest.mark.parametrize(
    ("window", "more", "profile", "said"),
    [
        (3, {}, FEAGI_2_6, "learning deferred until a weight is needed, since windows reach back 3 bursts"),
        (49, {}, FEAGI_2_6, "learning burst by burst, since a window is too long for words of firings"),
        (3, {"frozen": True}, FEAGI_2_6, "learning burst by burst, since rules have more than steps"),
        (3, {}, FEAGI_BETA, "learning burst by burst, since the profile's rule looks at whole windows"),
    ],
)
def test_how_synapses_learn_is_said(window: int, more: dict[str, bool], profile: Profile, said: str) -> None:
    ids = np.arange(8)
    rule = PlasticMapping(np.array([0]), window, **more)
    network = Network(NeuronTable.build(8), SynapseTable.build(ids, np.roll(ids, 1)), plastic_mappings=(rule,))
    assert choices_of(pack_network(network, EngineOptions(profile=profile))).endswith(said)


def test_each_choice_comes_with_its_reason() -> None:
    assert chosen() == f"sums in words of 32 bits without a mark, since none can be 0; {SLOT}"
    assert chosen(sum_bits=8, weights=5.0) == f"sums of 8 bits, 4 a word, since none exceeds 5; {SLOT}"
    marked = "sums in words of 32 bits, 4 of them for a mark, since sums can be 0 and up to 1 synapses meet"
    assert chosen(types=1) == f"{marked}; {SLOT}"
    delayed = {"types": 1, "delay_bursts": 3}
    assert chosen(**delayed) == f"{marked}; delays to 3 in a ring of 4 slots, 0.0 MB, of which a burst reaches 2"
    sender = "delays on the sender's side, since a ring of 4 slots would take 0 MB"
    calendar = "later contributions in 4 buckets of words of 32 bits, since a ring of 4 slots would take 0 MB"
    assert chosen(0, **delayed) == f"{marked}; {calendar}"
    with mock.patch("burstproof.engine.cuda.plan.sizing._CALENDAR_BYTES", 0):
        assert chosen(0, **delayed) == f"{marked}; {sender}"
    driven = chosen(areas=(Area(7, "driven", mp_driven_psp=True),))
    assert driven.startswith("sums of 64 bits with a mark beside them, since nothing bounds them; a burst in several")


def test_what_an_entry_of_a_row_is_is_said() -> None:
    def said(largest: int) -> str:
        ids, weights = np.arange(8), np.arange(1, 9.0) * largest / 8
        synapses = SynapseTable.build(ids // 2, ids, weights=weights)
        return choices_of(pack_network(Network(NeuronTable.build(8), synapses), EngineOptions()))

    words, wide = "; entries of rows in words of 32 bits, since", 1 << 28
    assert said(8).endswith(f"{words} 8 fits beside a target; {SLOT}")
    assert "entries" not in said(wide)
    with mock.patch("burstproof.engine.cuda.plan.entries._FEW_NEURONS", 0):
        assert said(wide).endswith(f"{words} only 8 contributions differ; {SLOT}")
