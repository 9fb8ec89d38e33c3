"""Whether less or more is better: by the unit of a figure, by words in its name, or by its targets."""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import cache

from reports.judge.targets import Comparison, load_targets
from reports.values import units
from reports.values.measurement import Measurement

_LOWER_WORDS = (
    "*error",
    "*difference",
    "*.loss*",
    "*_loss",
    "*disagreements",
    "*_ratio",
    "*registers*",
    "*spills*",
    "*.atomics",
    "*reading_atomics",
    "*global_loads",
    "*driver_allocations",
    "*refused_questions",
    "*warnings",
    "*only_on_gpu",
)
"""Patterns of names for which less is better; the other list is for those for which more is."""

_HIGHER_WORDS = (
    "*speedup",
    "*against_*",
    "*fraction*",
    "*of_line_rate",
    "*efficiency",
    "*share_alone",
    "*overlap",
    "*reduction*",
    "*coincidence",
    "*jaccard",
    "*divergence",
    "*agreeing",
    "*caught*",
    "*_same",
    "*_found",
    "*occupancy",
    "*wide_loads",
    "*async_copies",
    "*.tensor",
    "*projection",
    "*samples",
    "*pairs",
    "*nvlinks",
    "*peer_access",
    "prerequisite.*",
    "gpu.*",
    "*largest_binding",
    "*times_the_memory",
    "*.simulated",
)
_UPPER_LIMITS = (Comparison.AT_MOST, Comparison.BELOW)
_LOWER_LIMITS = (Comparison.AT_LEAST, Comparison.ABOVE)


def lower_is_better(measurement: Measurement) -> bool | None:
    """``True`` for times, bytes and errors, ``False`` for rates, ``None`` if nothing says which way is better.

    A word in the name outranks the targets: *at most 1x* for a speedup states what the hardware can do, not a goal.
    """
    name, unit = measurement.name, measurement.unit
    by_unit = units.lower_is_better(unit)
    if by_unit is not None:
        return by_unit
    for words, lower in ((_LOWER_WORDS, True), (_HIGHER_WORDS, False)):
        if any(fnmatchcase(name, word) for word in words):
            return lower
    if unit.endswith("/s"):
        return False
    if units.dimension(unit) == "bytes":
        return True
    return _by_targets(name)


@cache
def _by_targets(name: str) -> bool | None:
    """Whether all limits for measurements of a name are upper ones; ``None`` if there are none, or of both kinds."""
    comparisons = {target.comparison for target in load_targets() if target.measurement == name}
    is_upper = {one in _UPPER_LIMITS for one in comparisons if one in (*_UPPER_LIMITS, *_LOWER_LIMITS)}
    return is_upper.pop() if len(is_upper) == 1 else None
