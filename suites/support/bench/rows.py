"""The rows of the latency table, and the least time that the card's measured limits allow for a burst of each."""

from __future__ import annotations

from dataclasses import dataclass, replace

from burstproof.engine.state import Stimulus, StimulusPlan
from burstproof.network.model import Network
from burstproof.network.synthetic.build import driven_spec, initial_stimulus, synthesize
from burstproof.network.synthetic.kinds import MICROCIRCUIT, SeededNetwork, seeded_network
from burstproof.network.synthetic.microcircuit import microcircuit_spec
from burstproof.network.synthetic.power_law import power_law_network, share_of_short_rows
from burstproof.network.synthetic.spec import SyntheticSpec

SYNAPSES_PER_NEURON = 100

UNIFORM, BLOCKS, POWER_LAW, UNEQUAL = "uniform", "block", "power law", "unequal rows"
PLASTIC = "plastic"
AREA_NEURONS = 1000
LOCAL_SHARE = 0.8
LARGEST_FAN = 100_000
GENERATED_NEURONS = 1_000_000
"""From so many neurons on the rows of kinds are made on the device."""

DIVIDED = 0.02
"""A psp of 2 divided over 100 synapses, the ordinary case of a genome; its sums take 64 bits."""

_SEED = 3
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
        random targets, out-degrees from a few to 100 000 (a tenth of the neurons in smaller networks). ``unequal
        rows``: random sources, so that out-degrees vary a little (by 10 in 100); with the first two they are equal.
    contribution : float
        What a synapse contributes; a fraction as a genome makes it is a psp divided by the number of synapses.
    generated : bool
        Whether the device makes the synapses itself and an implicit reference judges, where the host could hold the
        network only slowly, or not at all.
    kind : str
        One of ``burstproof.network.synthetic.kinds.KINDS``; other than ``uniform`` with the rest at its defaults.
    """

    neurons: int
    firing_rate: float
    checked_bursts: int = 100
    synapses_per_neuron: int = SYNAPSES_PER_NEURON
    connectivity: str = UNIFORM
    contribution: float = 1.0
    generated: bool = False
    kind: str = UNIFORM

    @property
    def name(self) -> str:
        """Size, rate and what is not usual, for people."""
        size = f"{self.neurons // 1_000_000} M" if self.neurons >= 1_000_000 else f"{self.neurons // 1000} K"
        fan = "" if self.synapses_per_neuron == SYNAPSES_PER_NEURON else f" x {self.synapses_per_neuron}"
        kind = "" if self.connectivity == UNIFORM else f", {self.connectivity}"
        amount = "" if self.contribution == 1.0 else f", contributions of {self.contribution:g}"
        named = "" if self.kind == UNIFORM else f", {self.kind}"
        return f"{size}{fan} at {100 * self.firing_rate:g}%{kind}{amount}{named}"

    @property
    def slug(self) -> str:
        """Kind, size and what is unusual, for the names of cases: ``everything-1M-10pc``, ``fractions-3M-x30``."""
        size = f"{self.neurons // 1_000_000}M" if self.neurons >= 1_000_000 else f"{self.neurons // 1000}K"
        fan = f"-x{self.synapses_per_neuron}" if self.synapses_per_neuron < SYNAPSES_PER_NEURON else ""
        return f"{self.kind}-{size}{fan}" + (f"-{100 * self.firing_rate:g}pc" if self.firing_rate > 0.01 else "")

    @property
    def checked_afterwards(self) -> int:
        """Bursts that must agree after the timing, too."""
        return min(3, self.checked_bursts)

    @property
    def is_plain(self) -> bool:
        """Whether every target is equally likely and every contribution 1."""
        return self.connectivity == self.kind == UNIFORM and self.contribution == 1.0

    @property
    def seeded(self) -> SeededNetwork:
        """The network of a kind."""
        fan, rate = (None, None) if self.kind == MICROCIRCUIT else (self.synapses_per_neuron, self.firing_rate)
        return seeded_network(self.kind, self.neurons, fan, rate, _SEED)

    @property
    def spec(self) -> SyntheticSpec:
        """What the network is made from; of a power law: all but the out-degrees."""
        if self.kind != UNIFORM:
            return self.seeded.spec
        spec = driven_spec(self.neurons, self.synapses_per_neuron, self.firing_rate, _SEED)
        spec = replace(spec, postsynaptic_potential=self.contribution, threshold=self.contribution)
        if self.connectivity == UNEQUAL:
            return replace(spec, connectivity="fixed_in_degree")
        if self.connectivity != BLOCKS:
            return spec
        return replace(spec, connectivity="block", blocks=-(-self.neurons // AREA_NEURONS), inside_fraction=LOCAL_SHARE)

    def network(self) -> Network:
        """The network on the host."""
        if self.kind != UNIFORM:
            return self.seeded.network()
        return (
            power_law_network(self.spec, self.largest_fan) if self.connectivity == POWER_LAW else synthesize(self.spec)
        )

    @property
    def largest_fan(self) -> int:
        """Largest out-degree of a power law."""
        return min(LARGEST_FAN, self.neurons // 10)

    @property
    def start(self) -> StimulusPlan:
        """The forced firings of the first bursts, which start the network at its rate."""
        if self.kind != UNIFORM:
            return {burst: Stimulus(forced=ids) for burst, ids in self.seeded.start().items()}
        return {1: Stimulus(forced=initial_stimulus(self.spec))}

    @property
    def synapses(self) -> float:
        """Synapses of the network."""
        return float(self.neurons) * self.synapses_per_neuron

    @property
    def events(self) -> float:
        """Contributions per burst."""
        return self.neurons * self.firing_rate * self.synapses_per_neuron

    @property
    def scattered_events(self) -> float:
        """Contributions whose targets lie anywhere, so that no cache line serves two of a source."""
        if self.connectivity == BLOCKS or self.kind == "areas":
            return self.events * (1.0 - LOCAL_SHARE)
        if self.connectivity == POWER_LAW or self.kind == "power-law":
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
        if self.kind != UNIFORM:
            return known | {"kind": self.kind}
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
    Row(1_000_000, 0.01, checked_bursts=30, connectivity=UNEQUAL),
    Row(1_000_000, 0.1, checked_bursts=10, connectivity=UNEQUAL),
    Row(100_000, 0.01, checked_bursts=30, contribution=DIVIDED),
    Row(1_000_000, 0.01, checked_bursts=30, contribution=DIVIDED),
)
"""Other networks: a few sources reach 10 % of all neurons, most targets are near, out-degrees vary, or contributions
are fractions."""

_CIRCUIT = microcircuit_spec()


def _of_kind(kind: str, *sizes: int) -> tuple[Row, ...]:
    """The rows of a kind; from 1 M neurons on the device makes the synapses, where a formula gives them."""
    bursts, drawn = {100_000: 60, 1_000_000: 12, 5_000_000: 6}, kind not in (PLASTIC, "power-law")
    return tuple(Row(n, 0.01, bursts.get(n, 2), generated=drawn and n >= GENERATED_NEURONS, kind=kind) for n in sizes)


KIND_ROWS = (
    *_of_kind("weights", 100_000, 1_000_000, 5_000_000, 20_000_000, 100_000_000),
    *_of_kind("inhibition", 100_000, 1_000_000, 5_000_000, 20_000_000, 100_000_000),
    *_of_kind("parameters", 100_000, 1_000_000, 5_000_000, 20_000_000),
    *_of_kind("fractions", 100_000, 1_000_000, 5_000_000, 20_000_000),
    *_of_kind("delays", 100_000, 1_000_000, 5_000_000, 20_000_000),
    *_of_kind("everything", 100_000, 1_000_000, 5_000_000, 20_000_000),
    Row(1_000_000, 0.1, 6, generated=True, kind="everything"),
    *_of_kind(PLASTIC, 100_000, 1_000_000),
    *_of_kind("power-law", 100_000, 1_000_000),
    *_of_kind("areas", 100_000, 1_000_000),
    Row(
        _CIRCUIT.neurons,
        _CIRCUIT.initial_firing,
        200,
        synapses_per_neuron=_CIRCUIT.synapses_per_neuron,
        kind=MICROCIRCUIT,
    ),
)
"""The table of kinds but for the uniform one, which stands above."""

BETWEEN_ROWS = (
    *(Row(3_000_000, 0.01, 6, 30, generated=True, kind=kind) for kind in ("inhibition", "parameters", "fractions")),
    Row(1_000_000, 0.1, 6, generated=True, kind="delays"),
)
"""Kinds between the sizes of that table: many neurons with few synapses, and much that fires. No goals."""

CURVE_ROWS = (
    *(Row(1_000_000, 0.01, 10, fan, generated=True) for fan in (10, 30, 300)),
    *(Row(1_000_000, rate, 10, generated=True) for rate in (0.001, 0.03, 0.3)),
)
"""Points beside those of the table: synapses per neuron at 1 %, firing rate at 100 synapses."""

FITTED_ROWS = (*(row for row in CUDA_ROWS if row.neurons <= 5_000_000), *CURVE_ROWS)
