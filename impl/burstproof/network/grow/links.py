"""The synapses of a grown network: one link per mapping rule, counted first, built afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from burstproof.errors import GenomeError
from burstproof.network.grow.blueprint import AreaSpec, Genome, RuleSpec, wiring_rule
from burstproof.network.grow.morphologies.wiring import Pairs, Wiring
from burstproof.network.grow.morphology import ASSOCIATIVE, ORIGIN_TO_ORIGIN, RANDOMIZER, is_core
from burstproof.network.model import SynapseTable

Progress = Callable[[int, int], None]
"""Called with the number of links grown so far and the number of links in all."""

MAX_ELEMENTS = 100_000
"""Vectors and patterns that all rules of a genome together may go through: at worst some twenty seconds of growth."""

_LARGEST_DELAY = 255


@dataclass(frozen=True)
class Link:
    """A mapping rule that can make synapses; its connected voxels are still to be built.

    Attributes
    ----------
    number : int
        Position of the rule among all rules of the genome: the stream of its random numbers.
    first_source, first_target : int
        Neuron ids at which the two areas begin.
    random : bool
        The rule is a randomizer that is to be grown: ``wiring`` only counts.
    associative : bool
        The rule makes synapses while the network runs: the one here is a placeholder between two memory areas.
    """

    number: int
    rule: RuleSpec
    source: AreaSpec
    target: AreaSpec
    first_source: int
    first_target: int
    wiring: Wiring
    random: bool
    associative: bool

    @property
    def bound(self) -> int:
        """No more synapses than this come from the rule."""
        return (self.source.voxel_count if self.random else self.wiring.count) * self.source.neurons_per_voxel


def genome_links(genome: Genome, grow_randomizer: bool) -> Iterator[Link]:
    """The rules that can make synapses, in order of source area, mapping and rule; nothing is allocated.

    Raises
    ------
    GenomeError
        A weight times psp that is not finite, a morphology that nothing explains, or more than ``MAX_ELEMENTS``.
    """
    starts, by_id = {}, {}
    _check_elements(genome)
    first, number = 0, -1
    for area in genome.areas:
        starts[area.cortical_id], by_id[area.cortical_id] = first, area
        first += area.neuron_count
    for source in genome.areas:
        for mapping in source.mappings:
            target = by_id[mapping.target]
            for rule in mapping.rules:
                number += 1
                if not (source.neuron_count and target.neuron_count):
                    continue
                _check_contribution(rule, source)
                placeholder = _joins_memories(genome, rule, source, target)
                wiring = ORIGIN_TO_ORIGIN if placeholder else wiring_rule(rule, genome.morphologies)
                yield Link(
                    number,
                    rule,
                    source,
                    target,
                    starts[source.cortical_id],
                    starts[target.cortical_id],
                    wiring(source.dimensions, target.dimensions),
                    random=grow_randomizer and _is_randomizer(genome, rule),
                    associative=placeholder,
                )


def _check_elements(genome: Genome) -> None:
    """Refuse rules that together go through too many vectors and patterns: growth loops over these in Python."""
    elements = 0
    for area in genome.areas:
        for rule in (rule for mapping in area.mappings for rule in mapping.rules):
            defined = genome.morphologies.get(rule.morphology)
            elements += defined.element_count if defined is not None else 1
            if elements > MAX_ELEMENTS:
                raise GenomeError(
                    "the rules up to this one go through too many vectors and patterns",
                    where=rule.place,
                    got=elements,
                    allowed=str(MAX_ELEMENTS),
                    cure="Use morphologies with fewer of them, or fewer rules",
                )


def _joins_memories(genome: Genome, rule: RuleSpec, source: AreaSpec, target: AreaSpec) -> bool:
    """Whether the rule associates two memory areas, between which growth makes one synapse (FEATURES section 8)."""
    memories = source.features.memory is not None and target.features.memory is not None
    return memories and rule.plastic and rule.morphology == ASSOCIATIVE and is_core(ASSOCIATIVE, genome.morphologies)


def _is_randomizer(genome: Genome, rule: RuleSpec) -> bool:
    """Whether the rule names the core randomizer and not vectors or patterns that the genome calls so."""
    return rule.morphology == RANDOMIZER and is_core(RANDOMIZER, genome.morphologies)


def _check_contribution(rule: RuleSpec, source: AreaSpec) -> None:
    """Refuse a synapse whose weight times psp is not finite in float32 (SEMANTICS section 2)."""
    with np.errstate(over="ignore"):
        contribution = np.float32(rule.multiplier) * np.float32(source.postsynaptic_current)
    if not np.isfinite(contribution):
        raise GenomeError(
            "weight x postsynaptic current does not fit float32",
            where=rule.place,
            got=f"{rule.multiplier:g} x {source.postsynaptic_current:g}",
            allowed="a finite product",
            cure="Make the multiplier or the area's postsynaptic current smaller",
        )


def grow_synapses(
    links: Sequence[Link], seed: int, progress: Progress | None, number_of: Callable[[RuleSpec], int]
) -> SynapseTable:
    """Build all links, sorted by source, then link, then target.

    ``number_of`` tells what the column ``rules`` holds for the synapses of a rule.
    """
    ends = []
    for done, link in enumerate(links, start=1):
        ends.append(_grow(link, seed))
        if progress is not None:
            progress(done, len(links))
    counts = [len(source) for source, _ in ends]
    nothing = np.zeros(0, np.uint32)
    source = np.concatenate([nothing, *(pair[0] for pair in ends)])
    target = np.concatenate([nothing, *(pair[1] for pair in ends)])
    order = np.argsort(source, kind="stable")

    def column(values: Sequence[float | int | bool], dtype: type[np.generic]) -> npt.NDArray[np.generic]:
        return np.repeat(np.array(values, dtype), counts)[order]

    def marked(values: Sequence[int], dtype: type[np.generic]) -> npt.NDArray[np.generic] | int:
        """A column that few networks use: one 0 where all are."""
        return column(values, dtype) if any(values) else 0

    return SynapseTable.build(
        source[order],
        target[order],
        weights=column([abs(link.rule.multiplier) for link in links], np.float32),
        postsynaptic_potentials=column([link.source.postsynaptic_current for link in links], np.float32),
        types=column([link.rule.multiplier < 0 for link in links], np.uint8),
        delay_bursts=column([_delay(link.rule) for link in links], np.uint8),
        edge_flags=marked([link.associative for link in links], np.uint8),
        rules=marked([number_of(link.rule) for link in links], np.uint16),
    )


def _delay(rule: RuleSpec) -> int:
    """The delay in bursts; the engine takes 1 for one that does not fit 8 bits."""
    return rule.delay_bursts if rule.delay_bursts <= _LARGEST_DELAY else 1


def _grow(link: Link, seed: int) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
    """Neuron ids of both ends of one link's synapses, sorted by source, then target."""
    source, target = _random_ends(link, seed) if link.random else _wired_ends(link)
    key = source * link.target.neuron_count + target
    key = np.sort(key) if link.wiring.distinct else np.unique(key)
    if link.rule.attractivity < 100:
        key = key[_uniform(seed, link.number, len(key)) * 100.0 < link.rule.attractivity]
    source, target = np.divmod(key, link.target.neuron_count)
    return (source + link.first_source).astype(np.uint32), (target + link.first_target).astype(np.uint32)


def _wired_ends(link: Link) -> Pairs:
    """Local neuron numbers: every neuron of a source voxel, one neuron of the target voxel."""
    p, q = link.wiring.build()
    per_source, per_target = link.source.neurons_per_voxel, link.target.neurons_per_voxel
    source = np.add.outer(p * per_source, np.arange(per_source)).ravel()
    neuron = per_target - 1 if link.wiring.from_last_neuron else 0
    return source, np.repeat(q * per_target + neuron, per_source)


def _random_ends(link: Link, seed: int) -> Pairs:
    """One uniformly drawn target voxel per source neuron."""
    count, per_target = link.source.neuron_count, link.target.neurons_per_voxel
    voxel = (_uniform(seed, link.number, count, first=count) * link.target.voxel_count).astype(np.int64)
    return np.arange(count), voxel * per_target + per_target - 1


def _uniform(seed: int, stream: int, count: int, first: int = 0) -> npt.NDArray[np.float64]:
    """Numbers in [0, 1) that depend only on seed, stream and position: the counter-based generator Philox 4x64."""
    generator = np.random.Philox(key=np.array([seed, stream], np.uint64), counter=first)
    return (generator.random_raw(count) >> np.uint64(11)).astype(np.float64) * 2.0**-53
