"""Random memory areas and associative mappings for a random network (FEATURES sections 7 and 8)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from burstproof.network.features import (
    AreaFeatures,
    AssociativeMapping,
    Features,
    MemoryArea,
    MemoryChange,
    Modulator,
    ModulatorKind,
)
from burstproof.network.model import Area, Network
from burstproof.network.plasticity import PlasticMapping

Rng = np.random.Generator

_MEMORY_INDICES = (401, 400, 402)
_MOST_ENDS = 400
"""Neurons that the two areas of a mapping have together: each may get a synapse to each."""


@dataclass(frozen=True)
class MemorySwitches:
    """Whether a case has memory areas, and associative mappings."""

    memories: bool = False
    associations: bool = False


def draw_memory_switches(rng: Rng) -> MemorySwitches:
    """None in half of the cases."""
    if rng.random() < 0.5:
        return MemorySwitches()
    return MemorySwitches(bool(rng.random() < 0.8), bool(rng.random() < 0.6))


def with_memories(switches: MemorySwitches, rng: Rng, network: Network) -> Network:
    """``network`` with memory areas, each with a placeholder neuron, and with associative mappings."""
    indices = _MEMORY_INDICES[: int(rng.integers(1, 4))] if switches.memories else ()
    network = _with_placeholders(rng, network, indices)
    modulators = network.features.modulators + tuple(_draw_formation(rng, network) for _ in indices)
    first = len(network.features.modulators)
    areas = dict(network.features.areas)
    ordinary = [int(one) for one in np.unique(network.neurons.cortical_areas) if one not in indices]
    for index in indices:
        listed = tuple(int(one) for one in rng.choice(np.arange(first, len(modulators)), rng.integers(0, 3)))
        memory = _draw_memory(rng, ordinary, [one for one in indices if one != index])
        areas[index] = AreaFeatures(
            modulators=listed if rng.random() < 0.5 else (),
            spike_train=bool(rng.random() < 0.2),
            degeneration=float(rng.choice([0, 0, 0.25])),
            memory=memory,
        )
    order = tuple(int(one) for one in rng.permutation(indices)) if rng.random() < 0.5 else ()
    features = replace(network.features, modulators=modulators, areas=areas, memory_order=order)
    network = network.replace(features=features)
    return _with_associations(rng, network, [*indices, *ordinary]) if switches.associations else network


def _with_placeholders(rng: Rng, network: Network, indices: tuple[int, ...]) -> Network:
    """One dense neuron more for each memory area, with the parameters of some neuron; coordinates for all."""
    table = network.neurons
    rows = rng.integers(0, len(table), len(indices))
    columns = {name: np.concatenate([getattr(table, name), getattr(table, name)[rows]]) for name in vars(table)}
    columns["cortical_areas"][len(table) :] = indices
    columns["valid_mask"][len(table) :] = True
    columns["coordinates"] = rng.integers(0, 2, columns["coordinates"].shape).astype(np.uint32)
    flagged = network.flags_registered and rng.random() < 0.5
    uniform, driven = (bool(rng.random() < 0.5) if flagged else None for _ in range(2))
    own = tuple(
        Area(index, f"memory{index}", psp_uniform_distribution=uniform, mp_driven_psp=driven) for index in indices
    )
    return network.replace(neurons=replace(table, **columns), areas=(*network.areas, *own))


def _draw_formation(rng: Rng, network: Network) -> Modulator:
    driver = int(rng.choice(np.unique(network.neurons.cortical_areas)))
    magnitude = float(rng.choice([-100.0, -50.0, 50.0, -100.0]))
    return Modulator("formation", ModulatorKind.MEMORY_FORMATION, driver, magnitude)


def _draw_memory(rng: Rng, ordinary: list[int], others: list[int]) -> MemoryArea:
    upstream = {int(one) for one in rng.choice(ordinary, rng.integers(1, 3))}
    if others and rng.random() < 0.3:
        upstream.add(int(rng.choice(others)))
    ways = [MemoryChange.NONE, MemoryChange.NONE, MemoryChange.NONE, MemoryChange.DIFFERENTIAL, MemoryChange.RATIO]
    change = ways[rng.integers(len(ways))]
    twins = {one: int(rng.choice(ordinary)) for one in sorted(upstream) if rng.random() < 0.7}
    return MemoryArea(
        tuple(sorted(upstream)),
        temporal_depth=int(rng.choice([1, 1, 2, 3])),
        init_lifespan=int(rng.choice([0, 1, 2, 3, 9])),
        lifespan_growth=int(rng.choice([0, 1, 1, 3])),
        longterm_threshold=int(rng.choice([1, 2, 3, 4, 6, 100])),
        neuron_cap=int(rng.choice([0, 0, 1, 2, 5])),
        evicts=bool(rng.random() < 0.6),
        mp_learning=bool(rng.random() < 0.3),
        change=change,
        delta_quantization=float(rng.choice([1.0, 0.3])),
        ratio_quantization=float(rng.choice([20.0, 5.0])),
        twins=twins if rng.random() < 0.6 else {},
    )


def _with_associations(rng: Rng, network: Network, areas: list[int]) -> Network:
    """Up to four mappings between any areas, each with its plastic rule; some have synapses from the start."""
    owners, synapses = network.neurons.cortical_areas, network.synapses
    sizes = {index: int((owners == index).sum()) for index in areas}
    mappings, found = list(network.plastic_mappings), list(network.features.associative)
    modulators = network.features.modulators
    for _ in range(rng.integers(1, 5)):
        source, target = (int(one) for one in rng.choice(areas, 2))
        if sizes[source] + sizes[target] > _MOST_ENDS:
            continue
        between = (owners[synapses.source_neurons] == source) & (owners[synapses.target_neurons] == target)
        rows = np.flatnonzero(between) if rng.random() < 0.5 else np.empty(0, np.int64)
        rewarded = bool(rng.random() < 0.4)
        found.append(
            AssociativeMapping(
                source,
                target,
                len(mappings),
                psp=float(rng.choice([1.0, 0.5, 2.0, 0.0])),
                inhibitory=bool(rng.random() < 0.3),
                rule=int(rng.integers(0, len(network.features.rules) + 1)),
            )
        )
        mappings.append(
            PlasticMapping(
                rows,
                window=int(rng.integers(1, 4)),
                constant=float(rng.choice([1.0, 1.0, 2.0, 0.0])),
                ltp_multiplier=float(rng.choice([1.0, 2.0, 0.0])),
                ltd_multiplier=float(rng.choice([1.0, 0.0])),
                rewarded=rewarded,
                eligibility_decay=int(rng.choice([0, 1, 5])) if rewarded else 0,
                eta=float(rng.choice([1.0, 0.5])),
                max_weight=[None, 3.0, 2.5][rng.integers(3)],
                frozen=bool(rng.random() < 0.05),
                rewards=tuple(at for at, one in enumerate(modulators) if one.kind is ModulatorKind.REWARD),
                learning_rates=tuple(
                    at for at, one in enumerate(modulators) if one.kind is ModulatorKind.LEARNING_RATE
                ),
            )
        )
    features: Features = replace(network.features, associative=tuple(found))
    return network.replace(features=features, plastic_mappings=tuple(mappings))
