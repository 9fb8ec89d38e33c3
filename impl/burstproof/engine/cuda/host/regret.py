"""Decides when to lay a network out again because more or fewer neurons fire than expected (``plan.queues``)."""

from __future__ import annotations

from burstproof.engine.cuda.plan.packed import Packed
from burstproof.engine.cuda.plan.queues import lost_us, room_for_events

_US_PER_S = 1e6


class Regret:
    """The time that bursts have lost so far because their layout does not suit the firing rate.

    Once it exceeds the time that laying out took, another layout is due: whatever the firing rate does, little more
    than twice the least possible time is lost. Bursts that the layout suits offset the loss of others.

    Parameters
    ----------
    packed : Packed
        The present layout.
    price_s : float
        Seconds that laying out took.
    """

    def __init__(self, packed: Packed, price_s: float) -> None:
        self._packed, self._price_us = packed, price_s * _US_PER_S
        self._events_per_firing = packed.sizes.static_entries / max(packed.sizes.neurons, 1)
        self._lost_us, self._bursts, self._firings = 0.0, 0, 0

    def add(self, bursts: int, firings: int) -> None:
        """Account for ``bursts`` bursts with ``firings`` firings in total."""
        self._bursts, self._firings = self._bursts + bursts, self._firings + firings
        self._lost_us += lost_us(self._packed.variant, self._packed.sizes, bursts, firings * self._events_per_firing)
        if self._lost_us <= 0:
            self._forget()

    def better(self) -> Packed | None:
        """The layout to change to now, or ``None``."""
        packed = self._packed
        if self._lost_us <= self._price_us or packed.options.cuda.block_size:
            return None
        other = packed.firing(self._firings / (self._bursts * packed.sizes.neurons))
        if (other.variant.queues is None) != (packed.variant.queues is None):
            return other
        if room_for_events(other.variant, other.sizes) > room_for_events(packed.variant, packed.sizes):
            return other
        self._forget()  # such a network has no other layout
        return None

    def _forget(self) -> None:
        self._lost_us, self._bursts, self._firings = 0.0, 0, 0
