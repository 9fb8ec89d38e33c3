"""Energy of a burst, from the card's own counter."""

from __future__ import annotations

from dataclasses import dataclass

from stages.measuring import Measure
from suites.support.bench.steady import Rule, Timed


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


def energy_of(timed: Timed, bursts: int, rule: Rule) -> Energy | None:
    """What the samples of ``timed`` drew, of ``bursts`` bursts each; ``None`` where the card has no counter.

    The counter moves every tenth of a second or so: the samples take half a second or more.
    """
    joules, seconds = timed.telemetry.get("energy_j"), timed.telemetry.get("duration_s")
    if not isinstance(joules, int | float) or not isinstance(seconds, int | float) or joules <= 0:
        return None
    return Energy(float(joules), (rule.warmup + len(timed.samples.values)) * bursts, float(seconds))
