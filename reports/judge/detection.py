"""Measures how often the comparison is right, on simulated samples (issue 14).

Each shape draws a series of samples about 1. Two series of one shape are an A/A comparison, in which *slower* is a
false alarm. A series times 1.05 is a slowdown that has to be found.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from reports.judge.difference import Change, Difference, centre, difference, discoveries, page_tails, runs_difference

if TYPE_CHECKING:
    from numpy.typing import NDArray

SLOWDOWN = 1.05
SAMPLES = (20, 60)
"""Lengths of the series compared within a run; the first is also the length of each run's series between runs."""

RUNS = 5
FIGURES = 300
"""Number of figures of a simulated page."""

_SEED = 14

Shape = Callable[[np.random.Generator, int], "NDArray[np.float64]"]


@dataclass(frozen=True)
class Rates:
    """Results for one shape, as fractions from 0 to 1.

    Attributes
    ----------
    level : str
        ``within a run`` or ``between runs``.
    shape : str
    false_alarms : float
        A/A comparisons called *slower*, or those called *faster*, whichever are more.
    found : float
        Slowdowns of 5 % that were called *slower*.
    same, cannot_tell : float
        A/A comparisons with these verdicts.
    missed : float
        Slowdowns that were called *same* or *faster*; the remaining ones were *cannot tell*.
    """

    level: str
    shape: str
    false_alarms: float
    found: float
    same: float
    cannot_tell: float
    missed: float


def _normal(draw: np.random.Generator, count: int) -> NDArray[np.float64]:
    return 1.0 + 0.02 * draw.standard_normal(count)


def _lognormal(draw: np.random.Generator, count: int) -> NDArray[np.float64]:
    return 1.0 + 0.02 * np.exp(0.75 * draw.standard_normal(count))


def _bimodal(draw: np.random.Generator, count: int) -> NDArray[np.float64]:
    return 1.0 + 0.01 * draw.standard_normal(count) + 0.04 * (draw.random(count) < 0.5)


def _drifting(draw: np.random.Generator, count: int) -> NDArray[np.float64]:
    """Up to 2 % up or down from the first sample to the last."""
    slope = 0.02 * draw.uniform(-1.0, 1.0)
    return 1.0 + 0.01 * draw.standard_normal(count) + slope * np.linspace(0.0, 1.0, count)


def _autocorrelated(draw: np.random.Generator, count: int) -> NDArray[np.float64]:
    """AR(1), 0.5 from one sample to the next; 2 % of noise."""
    noise = draw.standard_normal(count)
    values = np.empty(count)
    values[0] = noise[0]
    for place in range(1, count):
        values[place] = 0.5 * values[place - 1] + np.sqrt(0.75) * noise[place]
    return 1.0 + 0.02 * values


def _outliers(draw: np.random.Generator, count: int) -> NDArray[np.float64]:
    """One sample in ten is late, by half of its length on average."""
    late = (draw.random(count) < 0.1) * draw.exponential(0.5, count)
    return 1.0 + 0.01 * draw.standard_normal(count) + late


SHAPES: Mapping[str, Shape] = MappingProxyType(
    {
        "normal": _normal,
        "lognormal": _lognormal,
        "bimodal": _bimodal,
        "drifting": _drifting,
        "autocorrelated": _autocorrelated,
        "outliers": _outliers,
    }
)

SESSIONS = ((RUNS, 0.01), (RUNS, 0.02), (9, 0.02))
"""Runs a side, and the standard deviation of the offset that a run adds to all its samples."""


def measure_rates(tries: int) -> tuple[Rates, ...]:
    """Simulate ``tries`` comparisons of each kind, the same ones at every call.

    Parameters
    ----------
    tries : int
        A/A comparisons, and comparisons with a slowdown, of each shape.
    """
    rates = [
        _rates(f"within a run, {count} samples", name, tries, _within(shape, count))
        for count in SAMPLES
        for name, shape in SHAPES.items()
    ]
    for runs, offset in SESSIONS:
        level = f"{runs} runs a side, offset {offset:.0%}"
        rates += [
            _rates(level, name, tries, _between(shape, SAMPLES[0], runs, offset)) for name, shape in SHAPES.items()
        ]
    drifting = _between(_normal, SAMPLES[0], RUNS, SESSIONS[0][1], session=0.1)
    return (*rates, _rates(f"{RUNS} runs a side, session drifts by 10 %", "normal", tries, drifting))


def measure_page(tries: int, noisy: int = 0) -> Rates:
    """Simulate pages of ``FIGURES`` figures, one of them slower, to measure the cost of the correction for many tests.

    A figure varies by 1 % from run to run, the last ``noisy`` ones by 3 %. ``false_alarms`` is the share of pages with
    a false claim, slower or faster; ``found`` the share of pages whose slower figure is confirmed.
    """
    draw = np.random.default_rng(_SEED)
    offset = np.where(np.arange(FIGURES) < FIGURES - noisy, 1.0, 3.0)[:, None] * SESSIONS[0][1]
    alarms = found = 0
    for _ in range(tries):
        levels = 1.0 + offset * draw.standard_normal((FIGURES, 2 * RUNS))
        levels[0, 1::2] *= SLOWDOWN
        taken = [list(enumerate(row.tolist())) for row in levels]
        page = [runs_difference(row[0::2], row[1::2]) for row in taken]
        higher, lower = zip(*page_tails(page), strict=True)
        slower, faster = _claims(page, Change.SLOWER, higher), _claims(page, Change.FASTER, lower)
        found += slower[0]
        alarms += any(slower[1:]) or any(faster)
    more = f", of {noisy} figures 3%" if noisy else ""
    level = f"page of {FIGURES} figures, {RUNS} runs a side, offset {SESSIONS[0][1]:.0%}{more}"
    return Rates(level, "normal", alarms / tries, found / tries, math.nan, math.nan, math.nan)


def _claims(page: Sequence[Difference], change: Change, p_values: Sequence[float]) -> list[bool]:
    return [stands and one.change is change for one, stands in zip(page, discoveries(p_values), strict=True)]


Trial = Callable[[np.random.Generator, float], Difference]
"""Makes one comparison, with a candidate that takes the given factor as long."""


def _within(shape: Shape, count: int) -> Trial:
    return lambda draw, factor: difference(shape(draw, count).tolist(), (factor * shape(draw, count)).tolist())


def _between(shape: Shape, count: int, runs: int, offset: float, session: float = 0.0) -> Trial:
    """Runs ABAB..., each with its own offset; ``session`` is the drift of the machine from first run to last."""

    def trial(draw: np.random.Generator, factor: float) -> Difference:
        sides: tuple[list[tuple[float, float]], ...] = ([], [])
        for place in range(2 * runs):
            level = (1.0 + offset * draw.standard_normal()) * (1.0 + session * place / (2 * runs - 1))
            level *= factor if place % 2 else 1.0
            sides[place % 2].append((float(place), centre((level * shape(draw, count)).tolist())))
        return runs_difference(*sides)

    return trial


def _rates(level: str, shape: str, tries: int, trial: Trial) -> Rates:
    draw = np.random.default_rng(_SEED)
    same_build = [trial(draw, 1.0).change for _ in range(tries)]
    slowed = [trial(draw, SLOWDOWN).change for _ in range(tries)]
    return Rates(
        level,
        shape,
        max(same_build.count(Change.SLOWER), same_build.count(Change.FASTER)) / tries,
        slowed.count(Change.SLOWER) / tries,
        same_build.count(Change.SAME) / tries,
        same_build.count(Change.UNKNOWN) / tries,
        (slowed.count(Change.SAME) + slowed.count(Change.FASTER)) / tries,
    )


def rates_table(rates: Sequence[Rates]) -> str:
    """Rates as a Markdown table, in per cent."""
    lines = [
        "| comparison | shape | false alarms | 5 % found | called same, wrongly | A/A same | A/A cannot tell |",
        "|---|---|---|---|---|---|---|",
    ]
    for one in rates:
        shares = (one.false_alarms, one.found, one.missed, one.same, one.cannot_tell)
        lines.append(f"| {one.level} | {one.shape} | {' | '.join(map(_share, shares))} |")
    return "\n".join(lines)


def _share(share: float) -> str:
    return "" if math.isnan(share) else f"{100 * share:.1f}"
