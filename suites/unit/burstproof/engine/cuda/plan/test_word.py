"""The words of the FCL: what they hold, where they end, and which one a network gets."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from burstproof.engine.cuda.plan.packed import Packed, pack_network, packed_for
from burstproof.engine.cuda.plan.word import Word
from burstproof.engine.options import EngineOptions
from burstproof.engine.reference import ReferenceEngine
from burstproof.network.model import Area, Network, NeuronTable, SynapseTable

pytestmark = pytest.mark.requirement("BE-4", "BE-5")

MARKED = (Word(32, 8), Word(32, 24), Word(64, 8), Word(64, 32), Word(128, 64))


@pytest.mark.parametrize("word", MARKED, ids=str)
def test_a_marked_word_keeps_sums_to_its_edges_and_candidates_of_sum_0(word: Word) -> None:
    room = 1 << (min(word.bits, 64) - 1 - word.shift)
    sums = np.array([0, 0, 1, -1, room - 1, -room], np.int64)
    candidates = np.array([False, True, True, True, True, True])
    cells = word.encode(sums.reshape(2, 3), candidates.reshape(2, 3))
    assert cells.dtype == word.cell
    assert len(cells) == 6 * word.elements
    decoded, present = word.decode(cells)
    assert decoded.tolist() == sums.tolist()
    assert present.tolist() == candidates.tolist()
    assert word.holds(-room, room - 1)
    assert not word.holds(0, room)
    assert not word.holds(-room - 1, 0)


@pytest.mark.parametrize("word", [w for w in MARKED if not w.beside], ids=str)
def test_arrivals_up_to_a_full_mark_leave_the_sum_alone(word: Word) -> None:
    """As a device adds: each contribution shifted, plus 1; the mark is full and the sum negative."""
    arrivals = (1 << min(word.mark_bits, 12)) - 1
    contributions = np.random.default_rng(3).integers(-90, 90, arrivals)
    contributions[-1] -= contributions.sum() + 5
    total = int(((contributions.astype(object) << word.shift) + 1).sum())
    sums, present = word.decode(np.array([total], word.cell))
    assert (sums[0], present[0]) == (-5, True)


def fan_in(synapses: int, weight: float, **columns: object) -> Network:
    """So many synapses of this weight onto neuron 0, from neurons of their own, the first of them inhibitory."""
    types = np.arange(synapses) == 0
    table = SynapseTable.build(np.arange(1, synapses + 1), np.zeros(synapses), weights=weight, types=types, **columns)
    return Network(NeuronTable.build(synapses + 1), table)


def packed_of(network: Network) -> Packed:
    return pack_network(network, EngineOptions(max_stimulus=0.0))


@pytest.mark.parametrize(
    ("synapses", "weight", "word"),
    [
        (13, 1.0, Word(32, 4)),  # 13 and 2 more arrivals: 15
        (14, 1.0, Word(32, 8)),
        (13, float((1 << 20) - 1), Word(32, 4)),
        (14, float(1 << 20), Word(32, 5)),  # 8 bits would leave 2^23 - 1 to a sum: as many bits as needed do
        (14, float(1 << 23), Word(64, 8)),  # below 2^31 without a mark
    ],
)
def test_the_mark_has_the_bits_that_the_in_degree_needs_else_the_word_is_wider(
    synapses: int, weight: float, word: Word
) -> None:
    packed = packed_of(fan_in(synapses, weight))
    assert packed.layout.in_degree == synapses
    assert packed.variant.word == word


def test_fractions_take_wide_words_and_sums_without_a_bound_a_word_for_the_mark() -> None:
    network = fan_in(13, 1.0, postsynaptic_potentials=np.float32(1 / 3))
    assert packed_of(network).variant.word == Word(64, 4)  # thirds have 25 digits, their sum 28 bits
    driven = replace(network, areas=(Area(7, "driven", mp_driven_psp=True),))
    assert packed_of(driven).variant.word == Word(128, 64)


def test_a_state_gets_a_word_that_holds_what_is_pending() -> None:
    network, options = fan_in(13, 1.0), EngineOptions(max_stimulus=0.0)
    packed = pack_network(network, options)
    state = ReferenceEngine.create(network, options).state()
    for pending, bits in ((1 << 20, 32), (1 << 27, 64), (-(1 << 27) - 1, 64)):
        sums = np.full_like(state.pending, pending)
        given = replace(state, pending=sums, pending_candidate=sums != 0)
        assert packed_for(packed, given).variant.word.bits == bits


@pytest.mark.parametrize("pending", [0, -1])
def test_a_network_without_marks_gets_them_with_a_candidate_whose_sum_is_or_may_become_0(pending: int) -> None:
    ids = np.arange(5)
    network = Network(NeuronTable.build(5), SynapseTable.build(ids, np.roll(ids, 1)))
    packed = pack_network(network, EngineOptions())
    assert packed.variant.word == Word(32)
    state = ReferenceEngine.create(network).state()
    given = replace(state, pending=state.pending + pending, pending_candidate=state.pending_candidate | True)
    assert packed_for(packed, given).variant.word == Word(32, 4)
