"""The grown essential and vision genomes as rows: driven by amounts and forced firings in every burst."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from burstproof.engine.protocol import Engine
from burstproof.engine.state import Record, Stimulus, StimulusPlan
from burstproof.network.model import Network
from burstproof.network.synthetic.build import synthesize
from burstproof.network.synthetic.spec import SyntheticSpec
from suites.support.bench.cuda_bench import disagreements
from suites.support.bench.steady import Rule, Timed, Watch, time_steadily
from suites.support.networks.small_networks import OPTIONS, seeded_plan, small_network

__all__ = ["GENOMES", "OPTIONS", "TRAINS", "GenomeRow", "UniformTwin", "time_genome"]

GENOMES = ("essential", "vision")
TRAINS = "trains with stimulus"
STEP = "stimulus to download"
RULE = Rule(warmup=2, min_samples=10, max_samples=200, max_seconds=1.5)

_DRIVEN_BURSTS = 200


@dataclass(frozen=True)
class GenomeRow:
    """A grown genome and the input that keeps it firing, repeated every 200 bursts."""

    genome: str

    @cached_property
    def network(self) -> Network:
        """The grown network."""
        return small_network(self.genome)

    @cached_property
    def stimuli(self) -> tuple[Stimulus, ...]:
        """The input of 200 bursts."""
        return tuple(seeded_plan(self.network, _DRIVEN_BURSTS).values())

    @property
    def conditions(self) -> dict[str, str | int]:
        """What tells its figures from those of other networks."""
        synapses = len(self.network.synapses)
        return {"network": f"{self.genome} genome", "neurons": self.network.neuron_count, "synapses": synapses}

    def plan(self, after: int, bursts: int) -> StimulusPlan:
        """The input of the ``bursts`` bursts that follow burst ``after``."""
        return {number: self.stimulus(number) for number in range(after + 1, after + bursts + 1)}

    def stimulus(self, number: int) -> Stimulus:
        """The input of burst ``number``."""
        return self.stimuli[number % len(self.stimuli)]

    def check(self, judge: Engine, engine: Engine, bursts: int) -> None:
        """Run both over ``bursts`` driven bursts; they must agree and fire."""
        problems = disagreements(judge, engine, bursts, self.plan(engine.burst_count, bursts))
        assert problems == (), problems[0]


@dataclass(frozen=True)
class UniformTwin(GenomeRow):
    """A uniform network of as many neurons as the genome's, under the same input, which alone makes neurons fire."""

    @cached_property
    def network(self) -> Network:
        """The uniform network: a synapse each, too weak to make its target fire."""
        neurons = GenomeRow(self.genome).network.neuron_count
        return synthesize(SyntheticSpec(neurons, 1, postsynaptic_potential=2.0**-6, leak=1.0, refractory_period=1))

    @cached_property
    def stimuli(self) -> tuple[Stimulus, ...]:
        """The input of the genome."""
        return GenomeRow(self.genome).stimuli


def time_genome(row: GenomeRow, engine: Engine, watch: Callable[[], Watch] | None = None) -> Mapping[str, Timed]:
    """Milliseconds per burst: driven trains without results, and steps from stimulus to fired list."""

    def train() -> float:
        plan = row.plan(engine.burst_count, _DRIVEN_BURSTS)
        start = time.perf_counter()
        engine.run(_DRIVEN_BURSTS, plan, Record.NONE)
        return 1e3 * (time.perf_counter() - start) / _DRIVEN_BURSTS

    def step() -> float:
        stimulus = row.stimulus(engine.burst_count + 1)
        start = time.perf_counter()
        engine.step(stimulus)
        return 1e3 * (time.perf_counter() - start)

    return {TRAINS: time_steadily(train, RULE, watch), STEP: time_steadily(step, RULE, watch)}
