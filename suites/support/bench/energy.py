"""Energy of a burst, from the card's own counter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from stages.measuring import Measure
from suites.support.bench.steady import Watch
from suites.support.bench.timers import clock

LEAST_SECONDS = 0.7
"""The counter moves every tenth of a second or so."""


@dataclass(frozen=True)
class Energy:
    """What some bursts drew: ``joules`` of the whole card, idle power included, over ``seconds``."""

    joules: float
    bursts: int
    seconds: float

    def put(self, measure: Measure, events: float, conditions: dict[str, object]) -> None:
        """Attach the energy per burst and per contribution."""
        burst = self.joules / self.bursts
        note = (
            f"NVML's energy counter over {self.bursts} bursts in {self.seconds:.2f} s, "
            f"{self.joules / self.seconds:.0f} W; idle power included"
        )
        measure("burst.energy", 1e6 * burst, "uJ", conditions=conditions, note=note)
        measure("event.energy", 1e9 * burst / events, "nJ", conditions=conditions, note=note)


def measure_energy(run: Callable[[], object], bursts: int, watch: Callable[[], Watch] | None) -> Energy | None:
    """Repeat ``run``, which does ``bursts`` bursts and waits for them; ``None`` where the card has no counter."""
    if watch is None:
        return None
    repeats, beside = 0, watch()
    start = clock()
    with beside:
        while clock() - start < LEAST_SECONDS:
            run()
            repeats += 1
        seconds = clock() - start
    joules = beside.summary().get("energy_j")
    if not isinstance(joules, int | float) or joules <= 0:
        return None
    return Energy(float(joules), repeats * bursts, seconds)
