"""Networks in reduced precision, and what a format costs: how far its spike trains part from those of fp32."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from burstproof.engine.precision import Precision
from burstproof.engine.state import Recording
from suites.support.parity.mixed import MIXES, Mix

REDUCED = (Precision.FP16, Precision.BF16, Precision.INT8)

_FUSED, _SEPARATE, _BETA = "fractions, delays to 7", "plastic, windows 3 and 2, delays to 4, mp-driven", "beta"


def _reduced(name: str, precision: Precision, **changes: int) -> Mix:
    mix = next(mix for mix in MIXES if mix.name == name)
    return replace(mix, name=f"{precision.value}: {name}", precision=precision, **changes)


REDUCED_MIXES = tuple(_reduced(name, p) for p in REDUCED for name in (_FUSED, _SEPARATE, _BETA))
"""In each format: a network with the fused burst on CUDA, one with separate kernels, and one of the other profile."""


@dataclass(frozen=True)
class Divergence:
    """How two runs of the same bursts part.

    Attributes
    ----------
    first_burst : int
        Place, from 1 on, of the first burst whose fired sets differ; the number of bursts + 1 if none does.
    jaccard : float
        Firings (burst and neuron) that both have, over firings that either has; 1 where neither fires.
    coincidence : float
        The same for firings of one neuron in the same burst or the one before or after: the share of the firings of
        both runs that have such a partner in the other.
    rate_difference : float
        Firings of the second run over those of the first, less 1.
    """

    first_burst: int
    jaccard: float
    coincidence: float
    rate_difference: float


def divergence(expected: Recording, got: Recording, neurons: int) -> Divergence:
    """How the firings of ``got`` part from those of ``expected``, two runs of the same bursts of N ``neurons``."""
    mine, theirs = _firings(expected, neurons), _firings(got, neurons)
    both, either = np.intersect1d(mine, theirs), np.union1d(mine, theirs)
    apart = np.setxor1d(mine, theirs)
    bursts = len(expected.bursts)
    partners = _with_partner(mine, theirs, neurons) + _with_partner(theirs, mine, neurons)
    firings = len(mine) + len(theirs)
    return Divergence(
        first_burst=int(apart[0]) // neurons + 1 if len(apart) else bursts + 1,
        jaccard=len(both) / len(either) if len(either) else 1.0,
        coincidence=partners / firings if firings else 1.0,
        rate_difference=len(theirs) / len(mine) - 1 if len(mine) else float(len(theirs) > 0),
    )


def _firings(recording: Recording, neurons: int) -> npt.NDArray[np.int64]:
    """Every firing as one number, ascending: place of the burst times N plus the neuron."""
    places = np.repeat(np.arange(len(recording.bursts)), recording.fired_counts)
    return places * neurons + recording.fired_ids.astype(np.int64)


def _with_partner(of: npt.NDArray[np.int64], among: npt.NDArray[np.int64], neurons: int) -> int:
    """How many of the firings ``of`` have one of the same neuron at most a burst away ``among`` the others."""
    near = np.isin(of, among) | np.isin(of - neurons, among) | np.isin(of + neurons, among)
    return int(near.sum())
