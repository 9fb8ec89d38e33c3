"""Rules of FEATURES.md for one neuron, one synapse or one modulator, compiled by numba for the CPU and for CUDA alike.

Arithmetic is float32 in the order of the text; the functions are written so that no compiler may contract or reorder
it: every product that is added to something is a value of its own, and comes from ``multiply`` where a compiler would
contract it all the same.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from burstproof.engine.rules import Compiled, Compiler


class FeatureRules(NamedTuple):
    """Compiled scalar functions; the signatures are those of the functions that they come from."""

    bounded: Compiled
    average: Compiled
    leak: Compiled
    modulated_threshold: Compiled
    modulated_share: Compiled
    train: Compiled
    strength: Compiled
    eligibility: Compiled
    weight: Compiled
    degenerated: Compiled


def _make_product(compiler: Compiler) -> Compiled:
    @compiler
    def product(a: np.float32, b: np.float32) -> np.float32:
        return a * b

    return product


def make_feature_rules(compiler: Compiler, multiply: Compiled | None = None) -> FeatureRules:
    """Compile the functions with ``compiler``; ``multiply(a, b)`` is a product that is rounded before it is added."""
    zero, one = np.float32(0), np.float32(1)
    multiply = multiply or _make_product(compiler)

    @compiler
    def bounded(value: np.float32, least: np.float32, most: np.float32) -> np.float32:
        """``value`` within ``least`` ... ``most``."""
        if value < least:
            value = least
        return most if value > most else value

    @compiler
    def average(r: np.float32, fires: bool, keep: np.float32, alpha: np.float32) -> np.float32:
        """Section 1: the homeostat's average after a burst in which the neuron fired or not."""
        old: np.float32 = multiply(keep, r)
        return old + (alpha if fires else zero)

    @compiler
    def leak(
        g: np.float32, r: np.float32, target: np.float32, gain: np.float32, least: np.float32, most: np.float32
    ) -> np.float32:
        """Section 1: the homeostat's leak after an update."""
        step = multiply(gain, r - target)
        kept: np.float32 = bounded(g + step, least, most)
        return kept

    @compiler
    def modulated_threshold(base: np.float32, factor: np.float32) -> np.float32:
        """Section 2.2."""
        scaled = base * factor
        return zero if scaled < zero else scaled

    @compiler
    def modulated_share(base: np.float32, factor: np.float32) -> np.float32:
        """Section 2.2 for a leak or an excitability."""
        share: np.float32 = bounded(base * factor, zero, one)
        return share

    @compiler
    def train(
        active: bool, cc: np.int32, limit: np.int32, refractory: np.int32, snooze: np.int32
    ) -> tuple[bool, np.int32, np.int32]:
        """Section 3 for a neuron that fired: whether a train is active now, cc, and rc, or -1 where it stays."""
        if not active:
            return (True, cc, np.int32(1)) if cc < limit else (False, cc, np.int32(-1))
        cc = np.int32(cc + 1)
        if cc < limit:
            return True, cc, np.int32(1)
        pause = refractory + snooze
        return False, cc, np.int32(pause if pause < 65535 else 65535)

    @compiler
    def strength(potential: np.float32, full_scale: np.float32) -> np.float32:
        """Section 2.1: strength of a driver that fired; ``full_scale`` 0 means not graded."""
        if full_scale == zero:
            return one
        share = potential / full_scale
        return share if share < one else one

    @compiler
    def eligibility(
        e: np.float32, decay: np.float32, source: bool, target: bool, rise: np.float32, fall: np.float32
    ) -> np.float32:
        """Section 4: the trace after a burst; ``source`` and ``target`` fired in the window."""
        e = multiply(e, decay)
        if source and target:
            return e + rise
        if (source or target) and fall > zero:
            return e - fall
        return e

    @compiler
    def weight(w: np.float32, e: np.float32, m: np.float32, eta: np.float32, most: np.float32) -> np.float32:
        """Section 4: the weight after a burst with reward and learning factor ``m``."""
        if m == zero or e == zero or (m < zero and e < zero):
            return w
        rate = eta * m
        change = multiply(rate, e)
        moved = w + change
        if change >= zero:
            return moved if moved < most else most
        return moved if moved > zero else zero

    @compiler
    def degenerated(psp: np.float32, loss: np.float32) -> np.float32:
        """Section 5."""
        left = psp - loss
        return left if left > zero else zero

    return FeatureRules(
        bounded, average, leak, modulated_threshold, modulated_share, train, strength, eligibility, weight, degenerated
    )
