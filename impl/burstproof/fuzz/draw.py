"""Random cases: a seed gives a network with its start state, its stimulus and the way it is run."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from burstproof.engine.features.support import EVERYTHING, NOTHING, ONE_BURST, Section
from burstproof.engine.options import EngineOptions
from burstproof.engine.profile import profile_named
from burstproof.engine.state import Stimulus, StimulusPlan
from burstproof.fuzz.case import FuzzCase
from burstproof.fuzz.draw_features import draw_feature_switches, with_features
from burstproof.fuzz.draw_memories import draw_memory_switches, with_memories
from burstproof.fuzz.draw_network import draw_network, with_later_columns
from burstproof.fuzz.switches import Switches, draw_switches
from burstproof.network.model import Network

_BATCH_BURSTS = 4


def draw_case(seed: int, families: int = 0, modelled: frozenset[Section] = NOTHING) -> FuzzCase:
    """The case of ``seed``.

    Parameters
    ----------
    seed : int
        0 or more; the same seed and families give the same case.
    families : int
        How many sets of switches there are; seeds that are equal modulo this number share one. 0: each has its own.
    modelled : frozenset of Section
        Features of a genome that the case may have (FEATURES.md): all of sections 1 to 6 or none, and 7 and 8 beside
        them. They belong to the profile feagi-2.6 alone.
    """
    switches = draw_switches(np.random.default_rng([1, seed % families] if families else [0, seed]))
    rng = np.random.default_rng([2, seed])
    bursts = _burst_count(switches, rng)
    network = draw_network(switches, rng, bursts)
    network = with_later_columns(switches, np.random.default_rng([3, seed]), network)
    if modelled >= ONE_BURST and not switches.beta:
        chosen = draw_feature_switches(np.random.default_rng([5, seed % families] if families else [4, seed]))
        network = with_features(chosen, np.random.default_rng([6, seed]), network)
    if modelled == EVERYTHING and not switches.beta:
        remembering = draw_memory_switches(np.random.default_rng([8, seed % families] if families else [7, seed]))
        network = with_memories(remembering, np.random.default_rng([9, seed]), network)
    plan = _draw_plan(switches, rng, network, bursts)
    options = EngineOptions(
        profile=profile_named(switches.profile),
        emulate_batch_path=switches.emulate_batch_path,
        max_stimulus=_declared(plan, rng),
        fractional_stimulus=switches.stimulus == "fractions",
    )
    runs = _draw_runs(rng, bursts)
    handover = int(rng.integers(1, len(runs))) if len(runs) > 1 and rng.random() < 0.4 else None
    return FuzzCase(network, plan, options, runs, handover)


def _burst_count(switches: Switches, rng: np.random.Generator) -> int:
    if switches.size == "batch":
        return _BATCH_BURSTS
    if switches.delays == "long" and rng.random() < 0.2:
        return int(rng.integers(200, 300))
    return int(rng.integers(1, 40))


def _draw_runs(rng: np.random.Generator, bursts: int) -> tuple[int, ...]:
    """Single steps, one run, or runs of several lengths."""
    if rng.random() < 0.5:
        return (1,) * bursts
    cuts = np.unique(rng.integers(1, bursts + 1, rng.integers(0, 6)))
    return tuple(int(n) for n in np.diff([0, *cuts.tolist(), bursts]) if n)


def _draw_plan(switches: Switches, rng: np.random.Generator, network: Network, bursts: int) -> StimulusPlan:
    """Amounts and forced firings in most bursts, in some, or in the first one only."""
    valid = np.flatnonzero(network.neurons.valid_mask).astype(np.uint32)
    plan: dict[int, Stimulus] = {}
    share = rng.choice([0.9, 0.9, 0.3, 0.0])
    for number in range(network.burst_count + 1, network.burst_count + bursts + 1):
        if len(valid) and (rng.random() < share or number == network.burst_count + 1):
            everyone = switches.size == "batch" and rng.random() < 0.7
            plan[number] = _draw_stimulus(switches, rng, valid, everyone)
    return plan


def _draw_stimulus(
    switches: Switches, rng: np.random.Generator, valid: npt.NDArray[np.uint32], everyone: bool
) -> Stimulus:
    forced = rng.choice(valid, rng.integers(0, min(len(valid), 6) + 1)) if switches.forced else valid[:0]
    if switches.stimulus == "none":
        return Stimulus(forced=forced)
    ids = valid if everyone else rng.choice(valid, rng.integers(0, min(len(valid), 20) * 2 + 1))
    amounts = rng.choice([0, 0, 1, 1, 2, 5, 20, -1, -1, -3, 255], len(ids)).astype(np.float32)
    if switches.stimulus == "fractions":
        part = rng.choice([0.5, 0.1, 1 / 3, 1e-9, 1, 1000.7], len(ids))
        amounts = (amounts * part).astype(np.float32)
    return Stimulus(ids, amounts, forced)


def _declared(plan: StimulusPlan, rng: np.random.Generator) -> float:
    """A bound that the plan keeps: just so, or with room, or the usual one."""
    totals = [np.bincount(s.ids, np.abs(s.amounts.astype(np.float64))).max() for s in plan.values() if len(s.ids)]
    largest = float(np.ceil(max(totals, default=0.0)))
    return max(largest, float(rng.choice([0.0, 255.0, 1e6])))
