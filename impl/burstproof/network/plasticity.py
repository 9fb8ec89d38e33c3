"""Which synapses learn, and by what: plastic rules belong to ordered pairs of areas (SEMANTICS section 5)."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

_LARGEST_STEP = 255

LARGEST_WINDOW = 65535
"""Longest window of plasticity in bursts: unbroken runs of firings are counted in 16 bits up to it."""


@dataclass(frozen=True, eq=False)
class PlasticMapping:
    """A plastic rule: the synapses that it made, and its parameters as the genome states them.

    ``synapses`` (P,) int64 holds rows of the synapse table. They say which ordered pairs of areas the rule governs;
    what learns is every valid synapse of these pairs (``pair_mappings``). FEATURES section 4 has the rest: with
    ``rewarded`` (R-STDP) the trace becomes a change of weight only by the reward; ``eligibility_decay`` bursts;
    ``eta``; ``max_weight``; ``frozen`` mappings change neither; ``rewards`` and ``learning_rates`` are positions of
    modulators.
    """

    synapses: npt.NDArray[np.int64]
    window: int = 1
    constant: float = 1.0
    ltp_multiplier: float = 1.0
    ltd_multiplier: float = 1.0
    rewarded: bool = False
    eligibility_decay: int = 0
    eta: float = 1.0
    max_weight: float | None = None
    frozen: bool = False
    rewards: tuple[int, ...] = ()
    learning_rates: tuple[int, ...] = ()


def steps(mapping: PlasticMapping) -> npt.NDArray[np.float32]:
    """Step of potentiation and of depression, (2,) float32, integers 0...255.

    Constant and multipliers are truncated towards 0 before they are multiplied; the product is clamped.
    """
    parameters = np.array([mapping.constant, mapping.ltp_multiplier, mapping.ltd_multiplier], np.float64)
    constant, *multipliers = np.trunc(parameters)
    with np.errstate(over="ignore"):
        products = constant * np.array(multipliers)
    clamped: npt.NDArray[np.float32] = np.clip(products, 0, _LARGEST_STEP).astype(np.float32)
    return clamped + np.float32(0)  # a product of -0 is a step of 0


def pair_mappings(
    mappings: Sequence[PlasticMapping],
    areas: npt.NDArray[np.uint32],
    sources: npt.NDArray[np.uint32],
    targets: npt.NDArray[np.uint32],
    valid: npt.NDArray[Any],
) -> tuple[PlasticMapping, ...]:
    """The mappings with all synapses that they govern: of several rules for a pair of areas the last one counts.

    Parameters
    ----------
    mappings : sequence of PlasticMapping
        In the order of the genome. One without synapses governs nothing; its window still counts.
    areas : uint32 (N,)
        Area of each neuron.
    sources, targets, valid : (S,)
        Columns of the synapse table.

    Returns
    -------
    tuple of PlasticMapping
        Rows ascending, valid synapses only, each in one mapping; mappings that govern no pair are left out.
    """
    if not mappings:
        return ()
    width = np.int64(areas.max(initial=0)) + 1
    pairs = areas[sources].astype(np.int64) * width + areas[targets]
    rule_of_pair: dict[int, int] = {}
    for number, mapping in enumerate(mappings):
        rule_of_pair.update(dict.fromkeys(np.unique(pairs[mapping.synapses]).tolist(), number))
    governed = np.array(sorted(rule_of_pair), np.int64)
    rules = np.array([rule_of_pair[pair] for pair in governed.tolist()], np.int64)
    rows = np.flatnonzero(valid & np.isin(pairs, governed))
    rule_of_row = rules[np.searchsorted(governed, pairs[rows])] if len(rows) else np.empty(0, np.int64)
    return tuple(
        dataclasses.replace(mapping, synapses=rows[rule_of_row == number])
        for number, mapping in enumerate(mappings)
        if number in rule_of_pair.values() or not len(mapping.synapses)
    )
