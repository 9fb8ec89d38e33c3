"""Columns in pieces: every item once and in order, by several threads, and packed as if they were one."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from itertools import chain
from unittest.mock import Mock

import numpy as np
import pytest

from burstproof.engine import fixed_point, spans
from burstproof.engine.fixed_point import plan_fixed_point
from burstproof.engine.layout import build_layout
from burstproof.engine.options import EngineOptions
from burstproof.network.model import Network
from suites.support.parity.builder import network, synapse

pytestmark = pytest.mark.requirement("BE-1", "BE-4")

WEIGHTS = (0.5, 3.0, 0.0, 255.0, 2.0**-20, 7.0)


def uneven(seed: int, largest: float = 2.0**40) -> Network:
    """Synapses in no order, of both types, some of them invalid, with weights up to ``largest``."""
    rng, weights = np.random.default_rng(seed), (*WEIGHTS, largest)
    ends = rng.integers(0, 20, (300, 2)).tolist()
    of = [
        {"weight": weights[rng.integers(len(weights))], "type": int(rng.integers(2)), "valid": bool(rng.random() < 0.9)}
        for _ in ends
    ]
    return network(20, [synapse(*pair, **values) for pair, values in zip(ends, of, strict=True)])


def test_every_item_is_in_one_span() -> None:
    found = [list(range(50))[part] for part in spans.spans(3, 50, 10)]
    assert list(chain(*found)) == list(range(3, 50))
    assert [len(part) for part in found] == [10, 10, 10, 10, 7]
    assert list(spans.spans(3, 3, 10)) == []


def test_results_come_in_order_and_from_several_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spans, "_CACHED", 10)
    monkeypatch.setattr(spans, "usable_cores", lambda: 2)
    both = threading.Barrier(2, timeout=30)
    assert spans.on_spans(0, 20, lambda part: (both.wait(), part.start)[1]) == [0, 10]


def test_the_error_of_the_first_span_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spans, "_CACHED", 10)

    def fail(part: slice) -> None:
        raise ValueError(part.start)

    with pytest.raises(ValueError, match=r"^0$"):
        spans.on_spans(0, 100, fail)


def test_an_interruption_waits_for_the_spans_under_way_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spans, "_CACHED", 1)
    monkeypatch.setattr(spans, "usable_cores", lambda: 3)
    begun: list[int] = []
    before = set(threading.enumerate())

    def interrupted(part: slice) -> None:
        begun.append(part.start)
        if threading.current_thread() is threading.main_thread():
            raise KeyboardInterrupt
        time.sleep(0.01)

    with pytest.raises(KeyboardInterrupt):
        spans.on_spans(0, 10_000, interrupted)
    assert len(begun) < 10_000
    assert set(threading.enumerate()) <= before


def test_one_thread_does_it_where_no_other_can_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the end of the interpreter, or where the system allows no more."""
    monkeypatch.setattr(spans, "_CACHED", 10)
    monkeypatch.setattr(spans, "usable_cores", lambda: 3)
    monkeypatch.setattr(threading.Thread, "start", Mock(side_effect=RuntimeError("can't start new thread")))
    assert spans.on_spans(0, 50, lambda part: part.start) == [0, 10, 20, 30, 40]


@pytest.mark.parametrize("largest", [7.0, 2.0**40, 2.0**70], ids=["32 bit", "64 bit", "clamped"])
def test_pieces_are_packed_as_if_they_were_one(largest: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scale and rows; the widest piece decides the type of all, and what was clamped is known of each."""
    options, made = EngineOptions(), []
    for cached, counted in ((1 << 20, 1 << 20), (7, 30)):
        monkeypatch.setattr(spans, "_CACHED", cached)
        monkeypatch.setattr(fixed_point, "_COUNTED", counted)
        given = uneven(1, largest)
        point = plan_fixed_point(given, options)
        made.append((point, build_layout(given, options, point)))
    (point, whole), (pointed, pieces) = made
    assert pointed == point
    assert pieces.needs_flags == whole.needs_flags
    assert (whole.static.clamped_sources is not None) is (largest > 2.0**62)
    for name in ("offsets", "targets", "contributions", "clamped_sources"):
        want, got = getattr(whole.static, name), getattr(pieces.static, name)
        assert (want is None) is (got is None), name
        assert want is None or (want.dtype == got.dtype and np.array_equal(want, got)), name


def test_every_piece_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The finest contribution is in the first piece, the only one that lets a sum be 0 in the last."""
    monkeypatch.setattr(spans, "_CACHED", 2)
    monkeypatch.setattr(fixed_point, "_COUNTED", 4)
    weights = [2.0**-9, *[1.0] * 18, 3.0]
    given = network(5, [synapse(at % 5, 1, weight=weight, type=int(weight == 3)) for at, weight in enumerate(weights)])
    point = plan_fixed_point(given, EngineOptions())
    assert (point.k, point.exact) == (9, True)
    assert build_layout(given, EngineOptions(), point).needs_flags


def test_a_network_is_surveyed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    surveyed = Mock(side_effect=fixed_point._survey_of)
    monkeypatch.setattr(fixed_point, "_survey_of", surveyed)
    given = uneven(2)
    for options in (EngineOptions(), EngineOptions(max_stimulus=3.0)):
        plan_fixed_point(given, options)
    assert surveyed.call_count == 1


@pytest.mark.parametrize("ordered", [True, False])
def test_rows_of_sources(ordered: bool) -> None:
    """Neurons at either end and between have no synapses."""
    sources = np.array([1, 1, 3, 3, 3, 6] if ordered else [3, 1, 6, 3, 1, 3])
    order = network(9, [synapse(int(source), 0) for source in sources]).row_order
    assert order.offsets.tolist() == [0, 0, 2, 2, 5, 5, 5, 6, 6, 6]
    assert (order.order is None) is ordered
    assert order.order is None or order.order.tolist() == [1, 4, 0, 3, 5, 2]


def test_another_network_gets_a_scale_of_its_own() -> None:
    """What is known of a network is kept with it, and not taken over by one that was made from it."""
    first = uneven(0)
    assert plan_fixed_point(first, EngineOptions()) == plan_fixed_point(first, EngineOptions())
    weights = np.where(first.synapses.weights > 1, np.float32(1), first.synapses.weights)
    second = first.replace(synapses=replace(first.synapses, weights=weights))
    assert plan_fixed_point(second, EngineOptions()) != plan_fixed_point(first, EngineOptions())
