"""Columns in pieces: every item once and in order, by several threads, and packed as if they were one."""

from __future__ import annotations

import threading
from dataclasses import replace
from itertools import chain

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


def test_another_network_gets_a_scale_of_its_own() -> None:
    """What is known of a network is kept with it, and not taken over by one that was made from it."""
    first = uneven(0)
    assert plan_fixed_point(first, EngineOptions()) == plan_fixed_point(first, EngineOptions())
    weights = np.where(first.synapses.weights > 1, np.float32(1), first.synapses.weights)
    second = first.replace(synapses=replace(first.synapses, weights=weights))
    assert plan_fixed_point(second, EngineOptions()) != plan_fixed_point(first, EngineOptions())
