"""From a genome to the features of a network: one grown from it, or one whose tables come from elsewhere."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from burstproof.errors import GenomeError, NetworkError
from burstproof.network.features import (
    AreaFeatures,
    AssociativeMapping,
    Features,
    MemoryArea,
    Modulator,
    ModulatorKind,
    RuleFeatures,
)
from burstproof.network.grow.blueprint import AreaSpec, Genome, RuleSpec
from burstproof.network.grow.failing_rules import OFF, R_STDP
from burstproof.network.grow.morphology import ASSOCIATIVE, EPISODIC, REPLAY, is_core
from burstproof.network.model import Area, Network, SynapseTable
from burstproof.network.plasticity import PlasticMapping

_AREA_KINDS = (ModulatorKind.FIRING_THRESHOLD, ModulatorKind.LEAK, ModulatorKind.FIRING_PROBABILITY)
_MOST_RULES = 65535


def with_features(network: Network, genome: Genome) -> Network:
    """``network`` with the features and the plastic mappings of ``genome``, from which it need not have been grown.

    Areas are matched by their cortical id. A synapse belongs to the first rule of its pair of areas with equal
    |multiplier| = weight and sign = type, unless the column ``rules`` of the network says so already.

    Raises
    ------
    GenomeError
        A rule or area of the genome adds something to an area that the network lacks.

    Notes
    -----
    Source: FEATURES section 14.
    """
    reading = FeatureReading(genome, network.areas)
    rules = network.synapses.rules if np.any(network.synapses.rules) else reading.rules_of(network)
    synapses = dataclasses.replace(network.synapses, rules=rules)
    plastic, associative = reading.learning(network.neurons.cortical_areas, synapses)
    features = reading.features(associative)
    return network.replace(synapses=synapses, plastic_mappings=plastic, features=features)


class FeatureReading:
    """What the areas and rules of ``genome`` add, by the cortical indices of ``areas``.

    Modulators that nothing subscribes to are left out, since no signal of theirs reaches anything.
    """

    def __init__(self, genome: Genome, areas: Sequence[Area]) -> None:
        self._genome = genome
        self._index = {area.cortical_id: area.index for area in areas}
        self._kinds = {one.name: one.kind for one in genome.modulators}
        used = set(self._subscribed())
        self._used = [one for one in genome.modulators if one.name in used]
        self._position = {one.name: position for position, one in enumerate(self._used)}
        rules = (self._rule_features(rule) for _, _, rules in _pairs(genome) for rule in rules)
        self._rules = tuple(dict.fromkeys(rule for rule in rules if rule != RuleFeatures()))
        if len(self._rules) > _MOST_RULES:
            raise GenomeError(
                "too many rules with modulators of their own",
                where=str(genome.path),
                got=len(self._rules),
                allowed=f"up to {_MOST_RULES} lists of gains and gates",
                cure="Let rules share their modulators",
            )

    def features(self, associative: tuple[AssociativeMapping, ...]) -> Features:
        """All features; ``associative`` as ``learning`` yields them."""
        found = {spec.cortical_id: self._area_features(spec) for spec in self._genome.areas}
        return Features(
            modulators=tuple(
                Modulator(one.name, one.kind, self._at(one.driver), one.magnitude_percent, one.full_scale_potential)
                for one in self._used
            ),
            areas={self._at(area): added for area, added in found.items() if added != AreaFeatures()},
            rules=self._rules,
            associative=associative,
        )

    def number_of(self, rule: RuleSpec) -> int:
        """What the column ``rules`` holds for a synapse that ``rule`` made."""
        found = self._rule_features(rule)
        return 0 if found == RuleFeatures() else self._rules.index(found) + 1

    def rules_of(self, network: Network) -> npt.NDArray[np.uint16]:
        """The column ``rules`` of a table that lacks it, (S,) uint16."""
        synapses = network.synapses
        column = np.zeros(len(synapses), np.uint16)
        pairs = {
            self._pair(source, target): [rule for rule in rules if not _connects_memory(rule, self._genome)]
            for source, target, rules in _pairs(self._genome)
            if any(self.number_of(rule) for rule in rules)
        }
        for (_, rules), rows in zip(
            pairs.items(), _rows_of_pairs(network.neurons.cortical_areas, synapses, list(pairs)), strict=True
        ):
            unclaimed = np.ones(len(rows), np.bool_)
            for rule in rules:
                same = synapses.weights[rows] == np.float32(abs(rule.multiplier))
                claimed = unclaimed & same & ((synapses.types[rows] != 0) == (rule.multiplier < 0))
                column[rows[claimed]] = self.number_of(rule)
                unclaimed &= ~claimed
        return column

    def learning(
        self, areas: npt.NDArray[np.uint32], synapses: SynapseTable
    ) -> tuple[tuple[PlasticMapping, ...], tuple[AssociativeMapping, ...]]:
        """The plastic and the associative mappings over a table of synapses.

        Parameters
        ----------
        areas : uint32 (N,)
            Area of each neuron.
        synapses : SynapseTable

        Returns
        -------
        tuple of PlasticMapping
            One for each ordered pair of areas whose last plastic rule is not ``off``, if it has synapses or can get
            them, with all its synapses.
        tuple of AssociativeMapping
            One for each pair whose last plastic rule is associative.
        """
        governing = [
            (source, target, last)
            for source, target, rules in _pairs(self._genome)
            for last in [next((rule for rule in reversed(rules) if rule.plastic), None)]
            if last is not None and last.mode != OFF
        ]
        pairs = [self._pair(source, target) for source, target, _ in governing]
        plastic: list[PlasticMapping] = []
        associative = []
        for (source, _, rule), pair, rows in zip(governing, pairs, _rows_of_pairs(areas, synapses, pairs), strict=True):
            grows = _is(ASSOCIATIVE, rule, self._genome)
            if grows:
                psp, inhibitory = source.postsynaptic_current, rule.multiplier < 0
                number = self.number_of(rule)
                associative.append(AssociativeMapping(*pair, len(plastic), psp, inhibitory, number))
            if grows or len(rows):
                plastic.append(self._plastic_mapping(rule, rows))
        return tuple(plastic), tuple(associative)

    def _plastic_mapping(self, rule: RuleSpec, rows: npt.NDArray[np.int64]) -> PlasticMapping:
        return PlasticMapping(
            rows,
            rule.window,
            rule.constant,
            rule.ltp_multiplier,
            rule.ltd_multiplier,
            rewarded=rule.mode == R_STDP,
            eligibility_decay=rule.eligibility_decay,
            eta=rule.eta,
            max_weight=rule.max_weight,
            frozen=rule.frozen,
            rewards=self._positions(rule.modulators, ModulatorKind.REWARD) if rule.mode == R_STDP else (),
            learning_rates=self._positions(rule.modulators, ModulatorKind.LEARNING_RATE),
        )

    def _rule_features(self, rule: RuleSpec) -> RuleFeatures:
        gains = self._positions(rule.modulators, ModulatorKind.TRANSMISSION_GAIN)
        return RuleFeatures(gains, self._positions(rule.modulators, ModulatorKind.GATE))

    def _area_features(self, spec: AreaSpec) -> AreaFeatures:
        own = spec.features
        return AreaFeatures(
            homeostat=own.homeostat,
            modulators=self._positions(own.modulators, *_kinds_of(spec)),
            spike_train=own.spike_train,
            degeneration=own.degeneration,
            memory=None if own.memory is None else self._memory(spec, own.memory),
        )

    def _memory(self, spec: AreaSpec, memory: MemoryArea) -> MemoryArea:
        """The parameters of a memory area with the areas that its rules connect it to."""
        upstream = {
            self._at(source.cortical_id)
            for source, target, rules in _pairs(self._genome)
            if target is spec and any(_is(EPISODIC, rule, self._genome) for rule in rules)
        }
        twins = {self._at(one): self._at(twin) for one, twin in acting_twins(self._genome, spec)}
        return dataclasses.replace(memory, upstream=tuple(sorted(upstream)), twins=twins)

    def _subscribed(self) -> Iterator[str]:
        """Names of the modulators that act on an area or a rule."""
        for spec in self._genome.areas:
            yield from self._of_kinds(spec.features.modulators, *_kinds_of(spec))
        for _, _, rules in _pairs(self._genome):
            for rule in rules:
                kinds = [ModulatorKind.TRANSMISSION_GAIN, ModulatorKind.GATE]
                if rule.plastic and rule.mode != OFF:
                    kinds += [ModulatorKind.LEARNING_RATE, *([ModulatorKind.REWARD] * (rule.mode == R_STDP))]
                yield from self._of_kinds(rule.modulators, *kinds)

    def _of_kinds(self, names: Sequence[str], *kinds: ModulatorKind) -> Iterator[str]:
        return (name for name in names if self._kinds.get(name) in kinds)

    def _positions(self, names: Sequence[str], *kinds: ModulatorKind) -> tuple[int, ...]:
        """Positions of the listed modulators of these kinds, in the order of the list; one may occur twice."""
        return tuple(self._position[name] for name in self._of_kinds(names, *kinds))

    def _pair(self, source: AreaSpec, target: AreaSpec) -> tuple[int, int]:
        return self._at(source.cortical_id), self._at(target.cortical_id)

    def _at(self, cortical_id: str) -> int:
        """Cortical index of an area."""
        if cortical_id not in self._index:
            raise NetworkError(
                "the genome belongs to another network: it has an area that the network lacks",
                where=str(self._genome.path),
                got=cortical_id,
                cure="Take the genome from which the network was grown",
            )
        return self._index[cortical_id]


def acting_twins(genome: Genome, spec: AreaSpec) -> list[tuple[str, str]]:
    """Upstream areas of a memory area and their twins (base64), where both areas and a replay rule say so."""
    replayed = {mapping.target for mapping in spec.mappings if any(_is(REPLAY, rule, genome) for rule in mapping.rules)}
    twin_of = {area.cortical_id: area.features.twin_of for area in genome.areas}
    return [(one, twin) for one, twin in spec.features.twins if twin in replayed and twin_of.get(twin) == one]


def _kinds_of(spec: AreaSpec) -> tuple[ModulatorKind, ...]:
    """Kinds of modulators that act on an area."""
    return _AREA_KINDS if spec.features.memory is None else (*_AREA_KINDS, ModulatorKind.MEMORY_FORMATION)


def _pairs(genome: Genome) -> Iterator[tuple[AreaSpec, AreaSpec, tuple[RuleSpec, ...]]]:
    """Source, target and rules of every ordered pair of areas with rules."""
    by_id = {area.cortical_id: area for area in genome.areas}
    for source in genome.areas:
        rules: dict[str, tuple[RuleSpec, ...]] = {}
        for mapping in source.mappings:
            rules[mapping.target] = (*rules.get(mapping.target, ()), *mapping.rules)
        yield from ((source, by_id[target], own) for target, own in rules.items())


def _is(name: str, rule: RuleSpec, genome: Genome) -> bool:
    """Whether the rule names this core morphology, and not vectors or patterns that the genome calls so."""
    return rule.morphology == name and is_core(name, genome.morphologies)


def _connects_memory(rule: RuleSpec, genome: Genome) -> bool:
    return any(_is(name, rule, genome) for name in (EPISODIC, REPLAY, ASSOCIATIVE))


def _rows_of_pairs(
    areas: npt.NDArray[np.uint32], synapses: SynapseTable, pairs: Sequence[tuple[int, int]]
) -> list[npt.NDArray[np.int64]]:
    """Rows of the synapses of each ordered pair of areas, ascending."""
    if not pairs:
        return []
    width = np.int64(max(int(areas.max(initial=0)), *(index for pair in pairs for index in pair))) + 1
    codes = areas[synapses.source_neurons].astype(np.int64) * width + areas[synapses.target_neurons]
    wanted = [source * width + target for source, target in pairs]
    rows = np.flatnonzero(np.isin(codes, wanted))
    rows = rows[np.argsort(codes[rows], kind="stable")]
    begin, end = (np.searchsorted(codes[rows], wanted, side=side) for side in ("left", "right"))
    return [rows[first:last] for first, last in zip(begin, end, strict=True)]
