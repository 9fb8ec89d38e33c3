"""How often the comparison of runs is right: the same build against itself, and against one that is 5 % slower."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from reports.judge.difference import Change, difference
from stages.measuring import Measure

TRIES = 100
SLOWDOWN = 1.05

Draw = Callable[[], Sequence[float]]
"""Takes one series of samples, as one run would."""


@dataclass(frozen=True)
class Rates:
    """Answers of ``tries`` comparisons of each kind, with the default noise of ``python -m reports compare``.

    ``same``: A/A comparisons that said *same*; ``regressions``: those that said *slower*, a false alarm. ``found``:
    comparisons with the slowed build that said *slower*.
    """

    tries: int
    same: int
    regressions: int
    found: int

    def put(self, measure: Measure, note: str, **conditions: str | int) -> None:
        """Attach both rates; targets judge them."""
        alarms = f"{self.regressions} false alarms in {self.tries} tries"
        measure(
            "performance.aa_same", 100 * self.same / self.tries, "%", conditions=conditions, note=f"{note}; {alarms}"
        )
        measure("performance.slowdown_found", 100 * self.found / self.tries, "%", conditions=conditions, note=note)


def compare_often(baseline: Draw, again: Draw, slowed: Draw, tries: int = TRIES) -> Rates:
    """Take a baseline, the same build again and the slowed one ``tries`` times and compare each time."""
    plain, slow = [], []
    for _ in range(tries):
        first = baseline()
        plain.append(difference(first, again()).change)
        slow.append(difference(first, slowed()).change)
    return Rates(tries, plain.count(Change.SAME), plain.count(Change.SLOWER), slow.count(Change.SLOWER))
