"""A cost model of a burst on the CPU and on a GPU, from the figures of stage 6; for ``auto`` and the thread count.

Measured on H200s and their hosts (Xeon, 2.1 GHz), call by call with the fired list on the host: records ``h200-rev2``
and ``h200-acceptance`` under ``reports/baselines``, uniform networks of 10 K to 1 M neurons at 1 and 10 %, and genomes
in which next to nothing fires. Other machines differ by small factors; if the engines differ by as little, either is a
fair choice.
"""

from __future__ import annotations

CPU_US, CPU_NS_PER_NEURON, CPU_NS_PER_EVENT = 20.0, 2.5, 2.5
"""A burst on one core: fixed cost, cost per neuron, and cost per contribution."""

THREAD_GAIN, LARGEST_GAIN = 0.5, 6.25
"""Speed-up per further thread, and the largest speed-up that was measured call by call, on 16 threads."""

LEAST_SHARED_US, LEAST_SHARE_US = 150.0, 60.0
"""Least work of a burst for several threads, which synchronise and all read the fired lists; and least work of each."""

MOST_THREADS = 56
"""Most threads that are chosen automatically."""

CUDA_US, CUDA_NS_PER_EVENT = 20.0, 0.0175
WORTH = 2.0
"""Least speed-up for which a GPU is chosen: its engine takes seconds longer to start."""

USUAL_RATE, USUAL_SYNAPSES = 0.01, 100
"""Assumed firing rate, and synapses per neuron, if they are unknown."""


def cpu_threads(neurons: int, events: float, cores: int) -> int:
    """Threads that a burst of ``neurons`` neurons with ``events`` contributions keeps busy."""
    alone = _work_us(neurons, events)
    return 1 if alone < LEAST_SHARED_US else max(1, min(int(alone / LEAST_SHARE_US), cores, MOST_THREADS))


def cpu_us(neurons: int, events: float, threads: int) -> float:
    """Microseconds of a burst of ``neurons`` neurons with ``events`` contributions on ``threads`` threads."""
    return CPU_US + _work_us(neurons, events) / min(1.0 + THREAD_GAIN * (threads - 1), LARGEST_GAIN)


def cuda_us(events: float) -> float:
    """Microseconds of a burst with ``events`` contributions on a GPU."""
    return CUDA_US + CUDA_NS_PER_EVENT * events / 1e3


def _work_us(neurons: int, events: float) -> float:
    return (CPU_NS_PER_NEURON * neurons + CPU_NS_PER_EVENT * events) / 1e3
