"""The least time that a card's measured limits allow for a burst: the least over the known ways to deliver."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hardware.roofline import Figure, Profile, Work, floor_us, profile_for
from suites.support.bench.rows import Row

PHASES = 2
"""Steps of a burst that must follow one another on the whole device: propagation, then dynamics."""

_BYTES_PER_TARGET = 4

_ADDITIONS_OF_QUEUES = 2
"""In shared memory, for each contribution: one counts it for its owner, one adds it to the neuron's sum."""


@dataclass(frozen=True)
class CardLimits:
    """The best that plain kernels reached on this card, in this run.

    Attributes
    ----------
    device : str
        Product name.
    l2_bytes : int
        Size of the L2 cache.
    copy_gb_per_s : float
        Copy within device memory, bytes read and written counted.
    reductions_g_per_s : mapping of int to float
        Random additions in 10**9 per second, by number of entries that they hit: the best of all forms.
    graph_node_us : float
        One empty kernel in a graph.
    launch_to_download_us : float
        Two empty kernels as a graph and a copy of 4 KB, launched and waited for by the host.
    shared_additions_g_per_s : float
        Random additions in the shared memory of all multiprocessors, in 10**9 per second; 0 if not measured.
    gathered_g_per_s : float
        Synapses whose source is looked up, in 10**9 per second; 0 if not measured.
    """

    device: str
    l2_bytes: int
    copy_gb_per_s: float
    reductions_g_per_s: Mapping[int, float]
    graph_node_us: float
    launch_to_download_us: float
    shared_additions_g_per_s: float = 0.0
    gathered_g_per_s: float = 0.0


@dataclass(frozen=True, order=True)
class Floor:
    """The least time of a burst in us, and the way to deliver contributions that reaches it."""

    us: float
    way: str


def burst_floor(row: Row, limits: CardLimits, devices: int = 1) -> Floor:
    """Least device time of a burst of ``row`` on the card, or on several that share the work equally.

    *Reductions in L2 or memory*: every contribution to anywhere is one random addition, at the best rate of this run
    over all footprints (a network larger than L2 may be propagated in tiles) or of the model's profile, whichever is
    higher. *Queues per owner*: every contribution is counted for its owner, which gives it a place in the queue, and
    then added to the neuron's sum: two random additions in shared memory. *Gather*: every synapse looks up whether its
    source fired. In each, targets (sources) of rows that cannot all lie in L2 are read at the vendor's bandwidth, or
    that of the copy if higher; propagation and dynamics follow one another at the cost of an empty graph node each.
    """
    events, stored = row.events / devices, _BYTES_PER_TARGET * row.synapses / devices
    kept = min(1.0, limits.l2_bytes / stored)
    read = _BYTES_PER_TARGET * events * (1.0 - kept)
    reduced = Work(read, row.scattered_events / devices, PHASES)
    ways = [Floor(floor_us(reduced, _profile(limits, _reductions_g_per_s(limits))), "reductions")]
    if limits.shared_additions_g_per_s:
        queued = Work(read, _ADDITIONS_OF_QUEUES * events, PHASES)
        ways.append(Floor(floor_us(queued, _profile(limits, limits.shared_additions_g_per_s)), "queues per owner"))
    if limits.gathered_g_per_s:
        looked_up = Work(stored * (1.0 - kept), row.synapses / devices, PHASES)
        ways.append(Floor(floor_us(looked_up, _profile(limits, limits.gathered_g_per_s)), "gather"))
    return min(ways)


def burst_floor_us(row: Row, limits: CardLimits, devices: int = 1) -> float:
    """The time of :func:`burst_floor`."""
    return burst_floor(row, limits, devices).us


def download_floor(row: Row, limits: CardLimits) -> Floor:
    """Least time from the launch of a burst to its fired list on the host: the empty pair, plus the burst's work."""
    burst = burst_floor(row, limits)
    return Floor(limits.launch_to_download_us + max(0.0, burst.us - PHASES * _node_us(limits)), burst.way)


def _profile(limits: CardLimits, scattered_g_per_s: float) -> Profile:
    """Limits of this run or of the model's profile, whichever are better, with that rate of work at random places."""
    known = profile_for(limits.device)
    bandwidth = max(limits.copy_gb_per_s, (known.peak("memory_bandwidth_gb_per_s") if known else None) or 0.0)
    here = "measured in this run"
    return Profile(
        limits.device,
        "",
        {"memory_bandwidth_gb_per_s": Figure(bandwidth, here)},
        {
            "random_reductions_g_per_s": Figure(scattered_g_per_s, here),
            "graph_node_us": Figure(_node_us(limits), here),
        },
    )


def _reductions_g_per_s(limits: CardLimits) -> float:
    """The best rate of this run over all footprints, or that of the model's profile if higher."""
    known = profile_for(limits.device)
    fastest = known.measured_value("random_reductions_g_per_s") if known else None
    return max(*limits.reductions_g_per_s.values(), fastest or 0.0)


def _node_us(limits: CardLimits) -> float:
    known = profile_for(limits.device)
    return min(limits.graph_node_us, (known.measured_value("graph_node_us") if known else None) or limits.graph_node_us)
