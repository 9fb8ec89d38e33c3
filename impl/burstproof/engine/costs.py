"""What a burst costs on the CPU and on a GPU: the figures of stage 6 as a model, for ``auto``.

Measured on one H200 and its host (Xeon, 2.1 GHz), call by call with the fired list on the host: records ``h200`` and
``h200-rev2`` under ``reports/baselines``, uniform networks of 10 K to 1 M neurons at 1 and 10 %. Other machines differ
by small factors; where the engines differ by as little, either is a fair choice.
"""

from __future__ import annotations

CPU_US, CPU_NS_PER_EVENT = 20.0, 4.0
"""A burst on one core: what it always costs, and each contribution."""

CORE_GAIN, LARGEST_GAIN = 0.35, 6.25
"""What each further core adds to the speed of the first, and the most that was measured, on 16."""

CUDA_US, CUDA_NS_PER_EVENT = 20.0, 0.0175
WORTH = 2.0
"""How many times as fast a GPU must be: its engine takes seconds longer to start."""

USUAL_RATE, USUAL_SYNAPSES = 0.01, 100
"""Where nobody says how much fires, or how many synapses there are."""


def cpu_us(events: float, cores: int) -> float:
    """Microseconds of a burst with ``events`` contributions on ``cores`` cores."""
    gain = min(1.0 + CORE_GAIN * (cores - 1), LARGEST_GAIN)
    return CPU_US + CPU_NS_PER_EVENT * events / gain / 1e3


def cuda_us(events: float) -> float:
    """Microseconds of a burst with ``events`` contributions on a GPU."""
    return CUDA_US + CUDA_NS_PER_EVENT * events / 1e3
