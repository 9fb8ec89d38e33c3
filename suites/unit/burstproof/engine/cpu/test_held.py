"""What kernels keep unpacked between calls: the arrays that the memory has now, and no others (BE-5)."""

from __future__ import annotations

import copy
import gc
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest

from burstproof.engine.compiler import compiler
from burstproof.engine.cpu.engine import CpuEngine
from burstproof.engine.cpu.held import Held, content_of
from burstproof.engine.cpu.intrinsics import on_stack
from burstproof.engine.reference import ReferenceEngine
from burstproof.engine.state import Stimulus
from burstproof.network.synthetic.build import driven_spec, synthesize

pytestmark = pytest.mark.requirement("BE-5")


class Table(NamedTuple):
    rows: Any
    factor: int


@compiler
def weighted(held: Any, at: int) -> float:
    tables, extra = content_of(held)
    return tables.factor * tables.rows[at, 1] + extra[0]


@compiler
def counted(places: Any) -> int:
    seen = on_stack(8, np.bool_)
    for i in range(8):
        seen[i] = False
    for place in places:
        seen[place] = True
    count = 0
    for one in seen:
        count += one
    return count


def test_a_kernel_reads_what_is_held_and_sees_it_change() -> None:
    rows, extra = np.arange(6.0).reshape(3, 2), np.array([10.0])
    held = Held((Table(rows, 3), extra))
    assert weighted(held, 2) == 3 * 5.0 + 10.0
    rows[2, 1], extra[0] = 7.0, 1.0
    assert weighted(held, 2) == 3 * 7.0 + 1.0


def test_arrays_live_as_long_as_what_holds_them() -> None:
    held = [Held((Table(np.full((100, 2), float(k)), 1), np.zeros(1))) for k in range(200)]
    gc.collect()
    other = [np.full((100, 2), -1.0) for _ in range(400)]
    assert [weighted(one, 99) for one in held] == [float(k) for k in range(200)]
    assert len(other) == 400


def test_a_copy_has_arrays_of_its_own() -> None:
    held = Held((Table(np.zeros((1, 2)), 1), np.zeros(1)))
    other = copy.deepcopy(held)
    held.content[1][0], other.content[1][0] = 1.0, 2.0
    assert [weighted(one, 0) for one in (held, other)] == [1.0, 2.0]
    assert weighted(copy.copy(held), 0) == 1.0


def test_scratch_memory_is_that_of_one_call() -> None:
    assert [counted(np.array(places)) for places in ([1, 1, 7], [0], [5, 4, 3])] == [2, 1, 3]


def test_an_engine_goes_on_with_what_its_memory_has_replaced() -> None:
    network = synthesize(driven_spec(2000, 20, 0.05, 11))
    engines = CpuEngine.create(network), ReferenceEngine.create(network)
    many = np.arange(0, 1900, dtype=np.uint32)
    for number in range(12):
        stimulus = {2: Stimulus(forced=many[:40]), 8: Stimulus(forced=many)}.get(number, Stimulus())
        bursts = [engine.step(stimulus) for engine in engines]
        assert np.array_equal(bursts[0].fired_ids, bursts[1].fired_ids), number
        if number == 6:
            state = replace(engines[1].state(), weights=2 * network.synapses.weights)
            for engine in engines:
                engine.restore(state)
    assert not engines[0].state().differences(engines[1].state())
