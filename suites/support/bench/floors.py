"""The least time that a card's measured limits allow for a burst: the least over the known ways to deliver."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hardware.roofline import Figure, Profile, Work, floor_us, profile_for
from suites.support.bench.rows import Row

PHASES = 2
"""Steps of a burst that must follow one another on the whole device: propagation, then dynamics."""

_BYTES_PER_TARGET = 4


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
    queued_us : mapping of int to float
        Time of so many contributions sorted into a queue per owner and added up by the owners; empty if not measured.
    gathered_g_per_s : float
        Synapses whose source is looked up, in 10**9 per second; 0 if not measured.
    """

    device: str
    l2_bytes: int
    copy_gb_per_s: float
    reductions_g_per_s: Mapping[int, float]
    graph_node_us: float
    launch_to_download_us: float
    queued_us: Mapping[int, float] = field(default_factory=dict)
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
    higher. *Queues per owner*: contributions are sorted by owner and added up in its own memory, at the rate measured
    for so many or more. *Gather*: every synapse looks up whether its source fired. In each, targets (sources) of rows
    that cannot all lie in L2 are read at the vendor's bandwidth, or that of the copy if higher; propagation and
    dynamics follow one another at the cost of an empty graph node each.
    """
    events, stored = row.events / devices, _BYTES_PER_TARGET * row.synapses / devices
    kept = min(1.0, limits.l2_bytes / stored)
    read = Work(bytes=_BYTES_PER_TARGET * events * (1.0 - kept), nodes=PHASES)
    best = _best(limits)
    ways = [Floor(floor_us(Work(read.bytes, row.scattered_events / devices, PHASES), best), "reductions")]
    if limits.queued_us:
        queued = Floor(max(floor_us(read, best), _queued_us(events, limits)), "queues per owner")
        ways.append(queued)
    if limits.gathered_g_per_s:
        every = floor_us(Work(bytes=stored * (1.0 - kept), nodes=PHASES), best)
        looked_up = row.synapses / devices / (1e3 * limits.gathered_g_per_s)
        ways.append(Floor(max(every, looked_up), "gather"))
    return min(ways)


def burst_floor_us(row: Row, limits: CardLimits, devices: int = 1) -> float:
    """The time of :func:`burst_floor`."""
    return burst_floor(row, limits, devices).us


def download_floor(row: Row, limits: CardLimits) -> Floor:
    """Least time from the launch of a burst to its fired list on the host: the empty pair, plus the burst's work."""
    burst = burst_floor(row, limits)
    return Floor(limits.launch_to_download_us + max(0.0, burst.us - PHASES * _node_us(limits)), burst.way)


def _best(limits: CardLimits) -> Profile:
    """The limits of this run or of the model's profile, whichever are better."""
    known = profile_for(limits.device)
    bandwidth = max(limits.copy_gb_per_s, (known.peak("memory_bandwidth_gb_per_s") if known else None) or 0.0)
    fastest = known.measured_value("random_reductions_g_per_s") if known else None
    reductions = max(*limits.reductions_g_per_s.values(), fastest or 0.0)
    here = "measured in this run"
    return Profile(
        limits.device,
        "",
        {"memory_bandwidth_gb_per_s": Figure(bandwidth, here)},
        {
            "random_reductions_g_per_s": Figure(reductions, here),
            "graph_node_us": Figure(_node_us(limits), here),
        },
    )


def _node_us(limits: CardLimits) -> float:
    known = profile_for(limits.device)
    return min(limits.graph_node_us, (known.measured_value("graph_node_us") if known else None) or limits.graph_node_us)


def _queued_us(events: float, limits: CardLimits) -> float:
    """Time of ``events`` at the rate of the next larger number that was measured, or of the largest."""
    count = min((known for known in limits.queued_us if known >= events), default=max(limits.queued_us))
    return limits.queued_us[count] * events / count
