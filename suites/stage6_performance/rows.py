"""The rows of the latency table, and the least time that the card's measured limits allow for a burst of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from burstproof.burst.engine import Stimulus, StimulusPlan
from burstproof.network.synthetic import driven_spec, initial_stimulus
from burstproof.network.synthetic_spec import SyntheticSpec
from hardware.roofline import Figure, Profile, Work, floor_us, profile_for

SYNAPSES_PER_NEURON = 100
PHASES = 2
"""Steps of a burst that must follow one another on the whole device: propagation, then dynamics."""

_SEED = 3
_BYTES_PER_TARGET = 4


@dataclass(frozen=True)
class Row:
    """A driven network: ``neurons`` x 100 synapses with random targets, of which ``firing_rate`` fires per burst."""

    neurons: int
    firing_rate: float
    checked_bursts: int = 100

    @property
    def name(self) -> str:
        """Size and rate for people."""
        size = f"{self.neurons // 1_000_000} M" if self.neurons >= 1_000_000 else f"{self.neurons // 1000} K"
        return f"{size} at {self.firing_rate:.0%}"

    @property
    def spec(self) -> SyntheticSpec:
        """What the network is made from."""
        return driven_spec(self.neurons, SYNAPSES_PER_NEURON, self.firing_rate, _SEED)

    @property
    def start(self) -> StimulusPlan:
        """The forced firings of the first burst, which start the network at its rate."""
        return {1: Stimulus(forced=initial_stimulus(self.spec))}

    @property
    def events(self) -> float:
        """Contributions per burst."""
        return self.neurons * self.firing_rate * SYNAPSES_PER_NEURON

    @property
    def conditions(self) -> dict[str, int | float]:
        """What targets match on."""
        return {
            "neurons": self.neurons,
            "synapses_per_neuron": SYNAPSES_PER_NEURON,
            "firing_rate": self.firing_rate,
        }


CUDA_ROWS = (
    Row(100_000, 0.01),
    Row(500_000, 0.01),
    Row(1_000_000, 0.01),
    Row(1_000_000, 0.1),
    Row(5_000_000, 0.01, checked_bursts=30),
    Row(100_000, 0.2),
)


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
        Random int32 additions in 10**9 per second, by number of entries that they hit.
    graph_node_us : float
        One empty kernel in a graph.
    launch_to_download_us : float
        Two empty kernels as a graph and a copy of 4 KB, launched and waited for by the host.
    """

    device: str
    l2_bytes: int
    copy_gb_per_s: float
    reductions_g_per_s: Mapping[int, float]
    graph_node_us: float
    launch_to_download_us: float


def burst_floor_us(row: Row, limits: CardLimits) -> float:
    """Least device time of a burst of ``row`` on the card.

    Every contribution is one random addition, at the best rate of this run or of the model's profile, whichever is
    higher; targets of rows that cannot all lie in L2 are read at the vendor's bandwidth, or that of the copy if higher;
    propagation and dynamics follow one another at the cost of an empty graph node each.
    """
    known = profile_for(limits.device)
    bandwidth = max(limits.copy_gb_per_s, (known.peak("memory_bandwidth_gb_per_s") if known else None) or 0.0)
    reductions = limits.reductions_g_per_s[row.neurons]
    if known and 4 * row.neurons <= limits.l2_bytes:
        reductions = max(reductions, known.measured_value("random_reductions_g_per_s") or 0.0)
    node = min(limits.graph_node_us, (known.measured_value("graph_node_us") if known else None) or limits.graph_node_us)
    here = "measured in this run"
    best = Profile(
        limits.device,
        "",
        {"memory_bandwidth_gb_per_s": Figure(bandwidth, here)},
        {"random_reductions_g_per_s": Figure(reductions, here), "graph_node_us": Figure(node, here)},
    )
    return floor_us(Work(bytes=_uncached_bytes(row, limits.l2_bytes), reductions=row.events, nodes=PHASES), best)


def _uncached_bytes(row: Row, l2_bytes: int) -> float:
    """Bytes of targets that a burst must read from device memory, were L2 full of targets."""
    stored = _BYTES_PER_TARGET * row.neurons * SYNAPSES_PER_NEURON
    return _BYTES_PER_TARGET * row.events * max(0.0, 1.0 - l2_bytes / stored)


def download_floor_us(row: Row, limits: CardLimits) -> float:
    """Least time from the launch of a burst to its fired list on the host: the empty pair, plus the burst's work."""
    known = profile_for(limits.device)
    node = min(limits.graph_node_us, (known.measured_value("graph_node_us") if known else None) or limits.graph_node_us)
    return limits.launch_to_download_us + burst_floor_us(row, limits) - PHASES * node
