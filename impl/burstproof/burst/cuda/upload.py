"""A packed network as the first contents of the device's buffers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.burst.cuda.buffers import NetworkSizes
from burstproof.burst.cuda.control import BURST, CONTROL_LENGTH
from burstproof.burst.cuda.kernels_order import PARAMETERS
from burstproof.burst.layout import ComputedRows, Layout, PlasticRules, StaticRows
from burstproof.burst.rules import Features
from burstproof.network.model import Network

Contents = Iterator[tuple[str, npt.NDArray[Any]]]


def first_contents(network: Network, layout: Layout, features: Features, sizes: NetworkSizes) -> Contents:
    """(buffer name, host array) of everything that does not start as zeros."""
    neurons = network.neurons
    control = np.zeros(CONTROL_LENGTH, np.int64)
    control[BURST] = network.burst_count
    yield "control", control
    yield "potentials", neurons.membrane_potentials
    yield "counts", neurons.consecutive_fire_counts
    if features.refractory:
        yield "countdowns", neurons.refractory_countdowns
    if features.restarts:
        yield "accumulates", layout.neurons.accumulates.astype(np.uint8)
    for name in PARAMETERS:
        column = getattr(layout.neurons, name)
        yield name, column[:1] if name in sizes.uniform else column
    yield from _static(layout.static)
    if layout.computed is not None:
        yield from _computed(layout.computed)
        if layout.plastic is not None:
            yield from _plastic(layout.plastic)


def _static(rows: StaticRows) -> Contents:
    yield "offsets", rows.offsets
    yield "targets", rows.targets
    yield "contributions", rows.contributions
    if rows.delays is not None:
        yield "delays", rows.delays
    if rows.clamped_sources is not None:
        yield "clamped_sources", rows.clamped_sources


def _computed(rows: ComputedRows) -> Contents:
    yield "computed_offsets", rows.offsets
    yield "computed_targets", rows.targets
    yield "weights", rows.weights
    yield "psps", rows.psps
    yield "signs", rows.signs
    if rows.delays is not None:
        yield "computed_delays", rows.delays
    yield "mp_driven", rows.mp_driven
    yield "divisors", rows.divisors


def _plastic(rules: PlasticRules) -> Contents:
    yield "rule_starts", rules.starts
    yield "rule_windows", rules.windows
    yield "potentiations", rules.potentiations
    yield "depressions", rules.depressions
    yield "plastic_positions", rules.positions
    yield "plastic_sources", rules.sources
    yield "plastic_targets", rules.targets
