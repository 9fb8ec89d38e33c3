"""The neurons that each thread of the CPU engine owns, divided into regions whose sums stay in a core's cache."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from burstproof.engine.costs import USUAL_RATE

ALIGNED = 64
"""Ranges and regions are multiples of this; threads can share cache lines only where their ranges meet."""

_EVENT_COST = 2.0
"""Cost of an arriving contribution, in units of one neuron's dynamics."""


class Regions(NamedTuple):
    """The ranges of T threads over N neurons, divided into R regions.

    Attributes
    ----------
    bounds : int64 (T + 1,)
        Thread t owns the neurons ``bounds[t]:bounds[t + 1]``.
    owned : int64 (T + 1,)
        Thread t owns the regions ``owned[t]:owned[t + 1]``.
    regions : int64 (R + 1,)
        Region r has the neurons ``regions[r]:regions[r + 1]``.
    region_of : int64 (N / 64 + 1,)
        Region of each group of ``ALIGNED`` neurons.
    """

    bounds: npt.NDArray[np.int64]
    owned: npt.NDArray[np.int64]
    regions: npt.NDArray[np.int64]
    region_of: npt.NDArray[np.int64]


def balanced_bounds(targets: npt.NDArray[np.uint32], neurons: int, threads: int) -> npt.NDArray[np.int64]:
    """Bounds (threads + 1,) of ranges of equal cost at a 1 % firing rate; multiples of 64."""
    if threads == 1:
        return np.array([0, neurons], np.int64)
    cost = 1.0 + _EVENT_COST * USUAL_RATE * np.bincount(targets, minlength=neurons)
    cumulated = np.concatenate(([0.0], np.cumsum(cost)))
    cuts = np.searchsorted(cumulated, cumulated[-1] * np.arange(threads + 1) / threads)
    bounds: npt.NDArray[np.int64] = np.minimum((cuts + ALIGNED // 2) // ALIGNED * ALIGNED, neurons).astype(np.int64)
    bounds[0], bounds[-1] = 0, neurons
    return bounds


def cut(bounds: npt.NDArray[np.int64], most: int) -> Regions:
    """Divide the ranges between ``bounds`` into regions of at most ``most`` neurons, a multiple of 64."""
    neurons = int(bounds[-1])
    starts = [np.arange(lo, hi, most) for lo, hi in itertools.pairwise(bounds)]
    regions = np.append(np.concatenate(starts), neurons).astype(np.int64)
    owned = np.concatenate(([0], np.cumsum([len(s) for s in starts]))).astype(np.int64)
    region_of = np.searchsorted(regions[1:], np.arange(0, neurons + 1, ALIGNED), side="right").astype(np.int64)
    return Regions(bounds, owned, regions, region_of)
