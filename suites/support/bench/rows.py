"""The rows of the latency table, and the least time that the card's measured limits allow for a burst of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from burstproof.engine.state import Stimulus, StimulusPlan
from burstproof.network.model import Network
from burstproof.network.synthetic.build import driven_spec, initial_stimulus, synthesize
from burstproof.network.synthetic.power_law import power_law_network, share_of_short_rows
from burstproof.network.synthetic.spec import SyntheticSpec
from hardware.roofline import Figure, Profile, Work, floor_us, profile_for

SYNAPSES_PER_NEURON = 100
PHASES = 2
"""Steps of a burst that must follow one another on the whole device: propagation, then dynamics."""

UNIFORM, BLOCKS, POWER_LAW = "uniform", "block", "power law"
AREA_NEURONS = 1000
LOCAL_SHARE = 0.8
LARGEST_FAN = 100_000
DIVIDED = 0.02
"""A psp of 2 divided over 100 synapses, the ordinary case of a genome; its sums take 64 bits."""

_SEED = 3
_BYTES_PER_TARGET = 4
_SHORT_ROW = 1000


@dataclass(frozen=True)
class Row:
    """A driven network of which ``firing_rate`` fires per burst.

    Attributes
    ----------
    neurons : int
    firing_rate : float
    checked_bursts : int
        Bursts that must agree before anything is timed.
    synapses_per_neuron : int
        Mean out-degree.
    connectivity : str
        ``uniform``: random targets. ``block``: areas of 1000 neurons, of whose targets 80 % are local. ``power law``:
        random targets, out-degrees from a few to 100 000 (a tenth of the neurons in smaller networks).
    contribution : float
        What a synapse contributes; a fraction as a genome makes it is a psp divided by the number of synapses.
    generated : bool
        Whether the device makes the synapses itself and the implicit reference judges, where the host could hold the
        network only slowly, or not at all.
    """

    neurons: int
    firing_rate: float
    checked_bursts: int = 100
    synapses_per_neuron: int = SYNAPSES_PER_NEURON
    connectivity: str = UNIFORM
    contribution: float = 1.0
    generated: bool = False

    @property
    def name(self) -> str:
        """Size, rate and what is not usual, for people."""
        size = f"{self.neurons // 1_000_000} M" if self.neurons >= 1_000_000 else f"{self.neurons // 1000} K"
        fan = "" if self.synapses_per_neuron == SYNAPSES_PER_NEURON else f" x {self.synapses_per_neuron}"
        kind = "" if self.connectivity == UNIFORM else f", {self.connectivity}"
        amount = "" if self.contribution == 1.0 else f", contributions of {self.contribution:g}"
        return f"{size}{fan} at {100 * self.firing_rate:g}%{kind}{amount}"

    @property
    def spec(self) -> SyntheticSpec:
        """What the network is made from; of a power law: all but the out-degrees."""
        spec = driven_spec(self.neurons, self.synapses_per_neuron, self.firing_rate, _SEED)
        spec = replace(spec, postsynaptic_potential=self.contribution, threshold=self.contribution)
        if self.connectivity != BLOCKS:
            return spec
        return replace(spec, connectivity="block", blocks=-(-self.neurons // AREA_NEURONS), inside_fraction=LOCAL_SHARE)

    def network(self) -> Network:
        """The network on the host."""
        return (
            power_law_network(self.spec, self.largest_fan) if self.connectivity == POWER_LAW else synthesize(self.spec)
        )

    @property
    def largest_fan(self) -> int:
        """Largest out-degree of a power law."""
        return min(LARGEST_FAN, self.neurons // 10)

    @property
    def start(self) -> StimulusPlan:
        """The forced firings of the first burst, which start the network at its rate."""
        return {1: Stimulus(forced=initial_stimulus(self.spec))}

    @property
    def events(self) -> float:
        """Contributions per burst."""
        return self.neurons * self.firing_rate * self.synapses_per_neuron

    @property
    def scattered_events(self) -> float:
        """Contributions whose targets lie anywhere, so that no cache line serves two of a source."""
        if self.connectivity == BLOCKS:
            return self.events * (1.0 - LOCAL_SHARE)
        if self.connectivity == POWER_LAW:
            return self.events * share_of_short_rows(self.synapses_per_neuron, self.largest_fan, _SHORT_ROW)
        return self.events

    @property
    def conditions(self) -> dict[str, int | float | str]:
        """What targets match on; uniform connectivity goes without saying."""
        known: dict[str, int | float | str] = {
            "neurons": self.neurons,
            "synapses_per_neuron": self.synapses_per_neuron,
            "firing_rate": self.firing_rate,
        }
        kind = self.connectivity if self.contribution == 1.0 else f"{self.connectivity}, contributions divided"
        return known if kind == UNIFORM else known | {"connectivity": kind}


CUDA_ROWS = (
    Row(100_000, 0.01),
    Row(500_000, 0.01),
    Row(1_000_000, 0.01),
    Row(1_000_000, 0.1),
    Row(5_000_000, 0.01, checked_bursts=20, generated=True),
    Row(20_000_000, 0.01, checked_bursts=8, generated=True),
    Row(100_000_000, 0.01, checked_bursts=3, generated=True),
    Row(100_000, 0.2),
)
OTHER_ROWS = (
    Row(1_000_000, 0.01, checked_bursts=30, connectivity=POWER_LAW),
    Row(1_000_000, 0.01, checked_bursts=30, connectivity=BLOCKS),
    Row(100_000, 0.01, checked_bursts=30, contribution=DIVIDED),
    Row(1_000_000, 0.01, checked_bursts=30, contribution=DIVIDED),
)
"""Other networks: a few sources reach 10 % of all neurons, most targets are near, or contributions are fractions."""

CURVE_ROWS = (
    *(Row(1_000_000, 0.01, 10, fan, generated=True) for fan in (10, 30, 300)),
    *(Row(1_000_000, rate, 10, generated=True) for rate in (0.001, 0.03, 0.3)),
)
"""Points beside those of the table: synapses per neuron at 1 %, firing rate at 100 synapses."""

FITTED_ROWS = (*(row for row in CUDA_ROWS if row.neurons <= 5_000_000), *CURVE_ROWS)


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


def burst_floor_us(row: Row, limits: CardLimits, devices: int = 1) -> float:
    """Least device time of a burst of ``row`` on the card, or on several that share the work equally.

    Every contribution to anywhere is one random addition, at the best rate of this run over all footprints (a network
    larger than L2 may be propagated in tiles) or of the model's profile, whichever is higher; targets of rows that
    cannot all lie in L2 are read at the vendor's bandwidth, or that of the copy if higher; propagation and dynamics
    follow one another at the cost of an empty graph node each.
    """
    known = profile_for(limits.device)
    bandwidth = max(limits.copy_gb_per_s, (known.peak("memory_bandwidth_gb_per_s") if known else None) or 0.0)
    fastest = known.measured_value("random_reductions_g_per_s") if known else None
    reductions = max(*limits.reductions_g_per_s.values(), fastest or 0.0)
    node = min(limits.graph_node_us, (known.measured_value("graph_node_us") if known else None) or limits.graph_node_us)
    here = "measured in this run"
    best = Profile(
        limits.device,
        "",
        {"memory_bandwidth_gb_per_s": Figure(bandwidth, here)},
        {"random_reductions_g_per_s": Figure(reductions, here), "graph_node_us": Figure(node, here)},
    )
    uncached = _uncached_bytes(row, devices * limits.l2_bytes)
    return floor_us(Work(bytes=uncached / devices, reductions=row.scattered_events / devices, nodes=PHASES), best)


def _uncached_bytes(row: Row, l2_bytes: int) -> float:
    """Bytes of targets that a burst must read from device memory, were all of L2 full of targets."""
    stored = _BYTES_PER_TARGET * row.neurons * row.synapses_per_neuron
    return _BYTES_PER_TARGET * row.events * max(0.0, 1.0 - l2_bytes / stored)


def download_floor_us(row: Row, limits: CardLimits) -> float:
    """Least time from the launch of a burst to its fired list on the host: the empty pair, plus the burst's work."""
    known = profile_for(limits.device)
    node = min(limits.graph_node_us, (known.measured_value("graph_node_us") if known else None) or limits.graph_node_us)
    return limits.launch_to_download_us + burst_floor_us(row, limits) - PHASES * node
