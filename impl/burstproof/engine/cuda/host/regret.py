"""When a network is laid out again, since more or less fires than its layout was chosen for (``plan.queues``)."""

from __future__ import annotations

from burstproof.engine.cuda.plan.packed import Packed
from burstproof.engine.cuda.plan.queues import lost_us, room_for_events

_US_PER_S = 1e6


class Regret:
    """Time that bursts have lost by their layout, because of how many neurons fire.

    Once it is as long as this layout took to make, another is due: whatever comes, little more than twice the least
    possible time is lost. Bursts for which the layout is the right one make up for others.

    Parameters
    ----------
    packed : Packed
        As it is laid out.
    price_s : float
        What that took, in seconds.
    """

    def __init__(self, packed: Packed, price_s: float) -> None:
        self._packed, self._price_us = packed, price_s * _US_PER_S
        self._events_per_firing = packed.sizes.static_entries / max(packed.sizes.neurons, 1)
        self._lost_us, self._bursts, self._firings = 0.0, 0, 0

    def add(self, bursts: int, firings: int) -> None:
        """Take in ``bursts`` bursts with ``firings`` firings in all."""
        self._bursts, self._firings = self._bursts + bursts, self._firings + firings
        self._lost_us += lost_us(self._packed.variant, self._packed.sizes, bursts, firings * self._events_per_firing)
        if self._lost_us <= 0:
            self._forget()

    def better(self) -> Packed | None:
        """The network as it is to be laid out now; ``None`` where it stays as it is."""
        packed = self._packed
        if self._lost_us <= self._price_us or packed.options.cuda.block_size:
            return None
        other = packed.firing(self._firings / (self._bursts * packed.sizes.neurons))
        if (other.variant.queues is None) != (packed.variant.queues is None):
            return other
        if room_for_events(other.variant, other.sizes) > room_for_events(packed.variant, packed.sizes):
            return other
        self._forget()  # there is no other way for such a network
        return None

    def _forget(self) -> None:
        self._lost_us, self._bursts, self._firings = 0.0, 0, 0
