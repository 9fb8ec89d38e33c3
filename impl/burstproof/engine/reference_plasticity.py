"""Plasticity of the reference: FEATURES.md section 4, which contains the plain rules of SEMANTICS section 5."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from burstproof.engine.reference_features import ONE, ZERO, Modulators, exponential
from burstproof.network.plasticity import PlasticMapping

Floats = npt.NDArray[np.float32]
Bools = npt.NDArray[np.bool_]


def decay_of(mapping: PlasticMapping) -> np.float32:
    """D: the factor by which a trace decays in a burst."""
    if not mapping.rewarded or mapping.eligibility_decay == 0:
        return ZERO
    return exponential(-ONE / np.float32(mapping.eligibility_decay))


def factor_of(mapping: PlasticMapping, modulators: Modulators) -> np.float32:
    """M: the learning factor L, times the reward R if the mapping is rewarded."""
    learning = modulators.product(mapping.learning_rates)
    return modulators.total(mapping.rewards) * learning if mapping.rewarded else learning


def decayed(traces: Floats, decay: np.float32) -> Floats:
    """e D."""
    return traces * decay if decay else np.zeros_like(traces)


def traced(traces: Floats, decay: np.float32, both: Bools, one: Bools, rise: np.float32, fall: np.float32) -> Floats:
    """Traces after this burst; ``both``: both ends fired within the window, ``one``: exactly one did."""
    left = decayed(traces, decay)
    return np.select([both, one & (fall > 0)], [left + rise, left - fall], left).astype(np.float32)


def weighed(weights: Floats, traces: Floats, mapping: PlasticMapping, factor: np.float32) -> Floats:
    """Weights after the traces of this burst."""
    changes = np.float32(mapping.eta) * factor * traces
    most = np.float32(np.inf if mapping.max_weight is None else mapping.max_weight)
    changed = np.where(changes >= 0, np.minimum(weights + changes, most), np.maximum(weights + changes, ZERO))
    still = (traces == 0) | (factor == 0) | ((factor < 0) & (traces < 0))
    return np.where(still, weights, changed)
