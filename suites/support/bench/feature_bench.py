"""What features cost: two engines over networks that differ in them, checked, then timed in turns."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from burstproof.engine.protocol import Engine
from burstproof.engine.state import Record, StimulusPlan
from burstproof.network.model import Network
from suites.support.bench.cuda_bench import disagreements

Create = Callable[[Network], Engine]

ROUNDS = 20
CHECKED_AFTER = 3
_SAMPLE_S, _MOST_BURSTS = 0.05, 2000


@dataclass(frozen=True, eq=False)
class Compared:
    """A network with features beside one without.

    Attributes
    ----------
    problems : tuple of str
        Where the engine and its judge disagree; nothing is timed if the first check finds any.
    plain_us, featured_us : tuple of float
        us per burst of each turn.
    plain_fired, featured_fired : float
        Firings per burst.
    """

    problems: tuple[str, ...]
    plain_us: tuple[float, ...] = ()
    featured_us: tuple[float, ...] = ()
    plain_fired: float = 0.0
    featured_fired: float = 0.0

    @property
    def ratios(self) -> list[float]:
        """Featured against plain, each in proportion to what fired."""
        scale = self.plain_fired / self.featured_fired
        return [scale * own / other for own, other in zip(self.featured_us, self.plain_us, strict=True)]

    @property
    def added_us(self) -> list[float]:
        """What features add to a burst."""
        return [own - other for own, other in zip(self.featured_us, self.plain_us, strict=True)]

    @property
    def note(self) -> str:
        """Both figures, in words."""
        return (
            f"{median(self.featured_us):.2f} us with, {median(self.plain_us):.2f} us without, in turns; "
            f"{self.featured_fired:.0f} and {self.plain_fired:.0f} firings a burst"
        )


def compare(
    plain: Engine,
    featured: Engine,
    judges: tuple[Engine, Engine],
    start: StimulusPlan,
    checked: int,
    settled: tuple[int, int],
    record: Record = Record.NONE,
) -> Compared:
    """Check both against their ``judges`` for ``checked`` bursts, let both settle, time in turns, and check again.

    ``settled`` are the bursts that each takes to settle. What is timed are runs that ``record`` so much.
    """
    engines = plain, featured
    for judge, engine in zip(judges, engines, strict=True):
        problems = disagreements(judge, engine, checked, start, weights=True)
        if problems:
            return Compared(problems)
    lengths = []
    for judge, engine, bursts in zip(judges, engines, settled, strict=True):
        for one in (judge, engine):
            one.run(bursts, record=Record.NONE)
        problems = tuple(f"settled: {name}" for name in judge.state().differences(engine.state()))
        if problems:
            return Compared(problems)
        lengths.append(max(2, min(_MOST_BURSTS, int(_SAMPLE_S * 1e6 / _us_per_burst(engine, 40, record)))))
    times: tuple[list[float], list[float]] = ([], [])
    fired: tuple[list[float], list[float]] = ([], [])
    for _ in range(ROUNDS):
        for engine, length, own, counts in zip(engines, lengths, times, fired, strict=True):
            own.append(_us_per_burst(engine, length, record))
            counts.append(float(engine.run(5, record=Record.COUNTS).fired_counts.mean()))
    problems = ()
    for judge, engine in zip(judges, engines, strict=True):
        judge.restore(engine.state())
        problems += disagreements(judge, engine, CHECKED_AFTER, {}, weights=True)
    mean = [sum(counts) / len(counts) for counts in fired]
    return Compared(problems, tuple(times[0]), tuple(times[1]), *mean)


def _us_per_burst(engine: Engine, bursts: int, record: Record) -> float:
    begun = time.perf_counter()
    engine.run(bursts, record=record)
    return 1e6 * (time.perf_counter() - begun) / bursts
