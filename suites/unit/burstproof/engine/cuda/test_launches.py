"""What a launch gives to kernels: numbers of a packed network, and every value in the order of the signature."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from burstproof.engine.cuda import fields
from burstproof.engine.cuda.kernels.closed_loop import can_persist
from burstproof.engine.cuda.plan.block_size import FusedShape
from burstproof.engine.cuda.plan.buffers import largest_excitability
from suites.support.compile.launched import Numbers, kernels_of, taken, written
from suites.support.compile.variants import chosen_shards, chosen_variants, sized_variants

pytestmark = pytest.mark.requirement("BE-4")


@pytest.mark.parametrize(
    ("excitabilities", "expected"),
    [
        ([0.1, 0.9, -1.0], 0.9),
        ([0.5, 0.999], np.inf),  # from 0.999 on there is no draw, so none keeps the neuron from firing
        ([0.5, 100.0], np.inf),
        ([-1.0, -2.0], 0.0),
        ([], 0.0),
    ],
)
def test_no_neuron_fires_at_a_draw_above_the_largest_excitability(excitabilities: list[float], expected: float) -> None:
    assert largest_excitability(np.array(excitabilities, np.float32)) == np.float32(expected)


@pytest.fixture(scope="module")
def kernels():
    chosen = {**chosen_variants(), **sized_variants(), **chosen_shards()}
    return [(f"{name}: {spec.name}", spec, shard) for name in chosen for spec, shard in kernels_of(chosen[name])]


def _misplaced(kernels) -> list[str]:
    """Kernels that a launch gives other values than their signatures take, or in another order."""
    numbers, wrong = Numbers(), []
    for name, spec, shard in kernels:
        given, expected = written(spec, shard, numbers), taken(spec, shard, numbers)
        if given != expected or [type(value) for value in given] != [type(value) for value in expected]:
            wrong.append(name)
    return wrong


@pytest.mark.requirement("KL-4")
def test_a_launch_gives_every_value_in_its_place(kernels) -> None:
    """Tuples within tuples too; what the machine code takes of a signature is stage 1's to compare."""
    assert len(kernels) > 100
    assert _misplaced(kernels) == []


@pytest.mark.requirement("KL-4")
@pytest.mark.parametrize(("first", "second"), [("potentials", "countdowns"), ("state", "outside"), ("fcl", "neurons")])
def test_values_in_each_others_place_are_found(kernels, monkeypatch, first: str, second: str) -> None:
    fields_of = fields.fields_of

    def swapped(declared, variant=None):
        found = fields_of(declared, variant)
        other = {first: second, second: first}
        if not other.keys() <= found.keys():
            return found
        return {other.get(name, name): found[other.get(name, name)] for name in found}

    monkeypatch.setattr(fields, "fields_of", swapped)
    assert any(name.endswith(": burst") for name in _misplaced(kernels))


@pytest.mark.parametrize(
    ("threads", "per_thread", "buckets", "tiles", "stays"),
    [
        (512, 1, 64, 0, True),
        (512, 2, 32, 0, True),
        (512, 2, 64, 0, False),
        (512, 2, 64, 1, True),
        (1024, 1, 32, 0, False),
    ],
)
def test_a_closed_loop_stays_where_a_block_has_room_for_a_chunk_and_its_places_in_buckets(
    threads: int, per_thread: int, buckets: int, tiles: int, stays: bool
) -> None:
    shape = FusedShape(threads, per_thread)
    variant = replace(chosen_variants()["delays in a calendar"], fused=shape, calendar=buckets, calendar_tiles=tiles)
    assert can_persist(variant) is stays
