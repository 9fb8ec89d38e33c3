"""Signals of modulators, and what follows from them and from homeostats, on the host (FEATURES sections 1 and 2)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from burstproof.engine.features.levels import clamped
from burstproof.engine.features.tables import EXCITABILITY, LEAK, THRESHOLD, FeatureTables, Lists, ModulatorTable
from burstproof.network.schema import NeuronTable

Floats = npt.NDArray[np.float32]
Bools = npt.NDArray[np.bool_]

_ZERO, _ONE, _INFINITY = np.float32(0), np.float32(1), np.float32(np.inf)


class Factors(NamedTuple):
    """Factors of one burst: of parameters by area class ``areas`` (C, 3), of contributions by value of the synapse
    column ``rules`` ``transmission`` (R + 1,), of weights by plastic pair ``learning`` (P,); float32."""

    areas: Floats
    transmission: Floats
    learning: Floats


@np.errstate(over="ignore", invalid="ignore")
def signals_of(tables: FeatureTables, ids: npt.NDArray[Any], potentials: Floats) -> Floats:
    """Section 2.1: signals (M,) of a burst with the fired list ``ids`` (F,), ascending, and ``potentials`` (F,)."""
    m = tables.modulators
    driven, first = np.unique(tables.driver_of[ids], return_index=True)
    firing = dict(zip(driven.tolist(), potentials[first], strict=True))
    strengths = np.zeros(len(m.magnitudes), np.float32)
    for k, (driver, full) in enumerate(zip(m.drivers.tolist(), m.full_scales, strict=True)):
        if driver + 1 in firing:
            strengths[k] = min(firing[driver + 1] / full, _ONE) if full else _ONE
    signals: Floats = m.magnitudes * strengths
    return signals


@np.errstate(over="ignore", invalid="ignore")
def factors_of(m: ModulatorTable, signals: Floats) -> Factors:
    """What ``signals`` (M,) make of the next burst."""
    gains, learning = _products(m.gains, signals), _products(m.learning_rates, signals)
    for at, listed in enumerate(_listed(m.gates, signals)):
        if len(listed):
            gains[at] *= max(_ZERO, *listed)
    for at, listed in enumerate(_listed(m.rewards, signals)):
        if m.rewarded[at]:
            learning[at] *= sum(listed, start=_ZERO)
    return Factors(_products(m.area_factors, signals).reshape(-1, 3), gains, learning)


def _listed(lists: Lists, signals: Floats) -> Iterator[Floats]:
    for first, end in zip(lists.starts[:-1], lists.starts[1:], strict=True):
        yield signals[lists.items[first:end]]


def _products(lists: Lists, signals: Floats) -> Floats:
    """((1 (1 + s1)) (1 + s2))... over each list."""
    found = np.ones(len(lists.starts) - 1, np.float32)
    for at, listed in enumerate(_listed(lists, signals)):
        for signal in listed:
            found[at] *= _ONE + signal
    return found


@np.errstate(over="ignore", invalid="ignore")
def levels_in_force(
    base: NeuronTable, tables: FeatureTables, g: Floats, regulated: Bools, factors: Factors | None, clamps: bool
) -> tuple[Floats, Floats, Floats]:
    """Thresholds, leaks and excitabilities, (N,) float32 each, copies.

    Parameters
    ----------
    base : NeuronTable
        The values at load, as the precision keeps them.
    g : float32 (N,)
        Leaks of the homeostats.
    regulated : bool (C,)
        Classes whose homeostat has replaced the leaks that were loaded.
    factors : Factors or None
        ``None`` before the first burst after a load, when no factor acts.
    clamps : bool
        Whether thresholds stay within 0...255.
    """
    classes, areas = tables.classes, tables.areas
    thresholds, leaks, excitabilities = (
        np.array(column) for column in (base.thresholds, base.leak_coefficients, base.excitabilities)
    )
    leaks = np.where(regulated[classes], g, leaks)
    if factors is None:
        return thresholds, leaks, excitabilities
    scales, by_neuron = areas.subscribes[classes], factors.areas[classes]
    raised = np.clip(thresholds * by_neuron[:, THRESHOLD], _ZERO, _INFINITY)
    unscaled = np.where(areas.homeostatic[classes], g, base.leak_coefficients)
    return (
        np.where(scales[:, THRESHOLD], clamped(raised) if clamps else raised, thresholds),
        np.where(scales[:, LEAK], np.clip(unscaled * by_neuron[:, LEAK], _ZERO, _ONE), leaks),
        np.where(
            scales[:, EXCITABILITY], np.clip(excitabilities * by_neuron[:, EXCITABILITY], _ZERO, _ONE), excitabilities
        ),
    )
