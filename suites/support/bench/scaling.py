"""What a burst costs per contribution and per neuron, and the firing rate at which one takes a wanted time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from suites.support.bench.rows import Row

_RATE_STEP = 1.07


@dataclass(frozen=True)
class CostModel:
    """``fixed_us + event_ns * events / 1000 + neuron_ns * neurons / 1000``, and how far the worst row lies off it."""

    fixed_us: float
    event_ns: float
    neuron_ns: float
    worst_deviation: float


def fit_costs(rows: Sequence[Row], latencies_us: Sequence[float]) -> CostModel:
    """Least squares of relative errors over at least four rows, so that small rows count as much as large ones.

    Raises
    ------
    ValueError
        Fewer than four rows.
    """
    if len(rows) < 4:
        raise ValueError(f"{len(rows)} rows cannot determine three costs and show a deviation; give four or more")
    measured = np.array(latencies_us)
    terms = np.array([[1.0, row.events / 1000, row.neurons / 1000] for row in rows])
    costs, *_ = np.linalg.lstsq(terms / measured[:, None], np.ones(len(rows)), rcond=None)
    deviation = np.abs(terms @ costs / measured - 1.0).max()
    fixed_us, event_ns, neuron_ns = (float(cost) for cost in costs)
    return CostModel(fixed_us, event_ns, neuron_ns, float(deviation))


def rate_for(wanted_ms: float, rate: float, measured_ms: float) -> float:
    """The firing rate at which a burst takes nearly ``wanted_ms``, if it takes ``measured_ms`` at ``rate``.

    Time is taken as proportional to the rate. The answer lies on a grid of steps of 7 % and not above the wanted time,
    so that runs on like cards choose the same rate and their figures can be compared.
    """
    steps = math.floor(math.log(wanted_ms / measured_ms) / math.log(_RATE_STEP))
    return round(rate * _RATE_STEP**steps, 3)
