"""Other programs on the same networks in the same run: checked first, then how many times as long they take (BE-21)."""

from __future__ import annotations

from contextlib import closing
from functools import lru_cache

import numpy as np
import pytest
from _pytest.mark.structures import ParameterSet

from burstproof.engine.state import Record
from stages.measuring import Measure
from suites.stage6_performance.conftest import Bench
from suites.support.bench.card import Card
from suites.support.bench.cuda_bench import RESIDENT
from suites.support.bench.peers import PEERS, Delivery, Peer, delivery_of, disagreement
from suites.support.bench.rows import CUDA_ROWS, KIND_ROWS, Row
from suites.support.bench.steady import Rule, Timed, time_steadily, to_us

pytestmark = [pytest.mark.requirement("BE-21", "ST-6"), pytest.mark.gate("gpu")]

SIZES = (100_000, 1_000_000, 5_000_000)
KINDS = ("uniform", "weights", "inhibition")
"""What whole float32 sums can express without a ring of delays."""

RULE = Rule(warmup=2, min_samples=8, max_samples=30, max_seconds=0.5, relative_noise=0.01)
_BURSTS, _BEFORE = 8, 20

ROWS = [row for row in (*CUDA_ROWS, *KIND_ROWS) if (row.neurons, row.firing_rate) in {(n, 0.01) for n in SIZES}]


def _declared(row: Row, peer: Peer) -> ParameterSet:
    where = {"against": peer.name, "device": ..., **row.conditions}
    marks = [
        pytest.mark.measures("peer.latency", "peer.ahead", **where),
        pytest.mark.thorough("compares with other programs for minutes"),
    ]
    return pytest.param((row, peer), id=f"{row.slug}-{peer.name.replace(' ', '')}", marks=marks)


@lru_cache(maxsize=1)
def _delivery(row: Row) -> Delivery:
    """The network of ``row`` with fired lists of its steady state; the last one is kept."""
    from burstproof.engine.cuda.engine import CudaEngine

    with closing(CudaEngine.from_spec(row.spec)) as engine:
        engine.run(_BEFORE, row.start, Record.NONE)
        lists = engine.run(_BURSTS, record=Record.FIRED)
    ends = np.cumsum(lists.fired_counts)[:-1]
    return delivery_of(row.spec, tuple(np.split(lists.fired_ids, ends)))


@pytest.fixture(params=[_declared(row, peer) for row in ROWS if row.kind in KINDS for peer in PEERS.values()])
def timed(request: pytest.FixtureRequest, card: Card) -> tuple[Row, Peer, str, Timed | None]:
    """What a program takes for a burst of a row; a throttled card is an ERROR."""
    row, peer = request.param
    if peer.missing:
        pytest.skip(f"not installed: {', '.join(peer.missing)}; python -m pip install '.[peers]'")
    delivery = _delivery(row)
    ready = peer.ready(delivery)
    wrong = disagreement(delivery, ready)
    return row, peer, wrong, None if wrong else time_steadily(ready.sample, RULE, card.watch)


def test_ahead(timed: tuple[Row, Peer, str, Timed | None], bench: Bench, card: Card, measure: Measure) -> None:
    """Their delivery of the same fired lists, with exact sums, against our whole burst."""
    row, peer, wrong, latency = timed
    assert latency is not None, f"{peer.name} {peer.version}: {wrong}"
    ours = bench(row)
    assert ours.problems == (), ours.problems[0]
    conditions = {"against": peer.name, "version": peer.version, "device": card.runtime.name, **row.conditions}
    note = f"{peer.how}; delivery alone, sums of two of {_BURSTS} fired lists exact"
    theirs_us = latency.put(measure, "peer.latency", "us", conditions, note, to_us)
    ours_us = to_us(ours.timings[RESIDENT].samples.estimate)
    note = f"{theirs_us:.2f} us for their delivery, {ours_us:.2f} us for our burst"
    measure("peer.ahead", theirs_us / ours_us, "x", conditions=conditions, note=note)
