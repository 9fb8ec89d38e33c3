"""Growth: from a genome to a network, as the released engine does it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from burstproof.errors import GenomeError, InputError
from burstproof.network.grow.blueprint import AreaSpec, Genome
from burstproof.network.grow.genome_features import FeatureReading
from burstproof.network.grow.json_tree import readable_path
from burstproof.network.grow.links import Link, Progress, genome_links, grow_synapses
from burstproof.network.grow.morphologies.wiring import strides
from burstproof.network.model import Area, Network, NeuronTable
from burstproof.network.schema import NO_LIMIT, UNLIMITED_FIRES

DEFAULT_MAX_NEURONS = 20_000_000
"""Neurons (and voxels) that growth makes unless told otherwise: about 0.8 GB of tables."""

DEFAULT_MAX_SYNAPSES = 100_000_000
"""Synapses that growth makes unless told otherwise: about 2.4 GB of tables, and some 2.5 times that while growing."""

LARGEST_NETWORK = 2**31
"""Neurons beyond which no cap can be raised."""

_UINT16 = 65536


def grow(
    genome: Genome,
    seed: int = 0,
    progress: Progress | None = None,
    *,
    max_neurons: int = DEFAULT_MAX_NEURONS,
    max_synapses: int = DEFAULT_MAX_SYNAPSES,
    grow_randomizer: bool = False,
) -> Network:
    """Grow the network that a genome describes.

    Parameters
    ----------
    genome : Genome
        From ``genome.read_genome``.
    seed : int
        0 ... 2**64 - 1. Decides which synapses of a rule with ``synapse_attractivity`` below 100 exist, and the targets
        of ``randomizer``; the same seed gives the same network.
    progress : callable, optional
        Called after every rule with (rules done, rules in all).
    max_neurons, max_synapses : int
        Caps, checked before anything is allocated. ``max_neurons`` also bounds the voxels; ``max_synapses`` is compared
        with a bound that counts a connection made by several patterns of one morphology more than once.
    grow_randomizer : bool
        Connect every source neuron to one random target voxel where a rule names ``randomizer``. The recorded engine
        grows nothing there.

    Returns
    -------
    Network
        At rest, burst count 0. Areas by index: core areas 0 ... 6, then the order of the genome; neuron ids ascend with
        the area index; synapses are sorted by source, then by rule, then by target. ``features`` holds what the genome
        adds to leaky integrate-and-fire, ``provenance`` its notes.

    Raises
    ------
    GenomeError
        A cap would be exceeded, or a value that follows from the genome (threshold, contribution) is not finite.
    InputError
        The seed is out of range.

    Notes
    -----
    Source: golden/growth/RULES.md.
    """
    if not 0 <= seed < 2**64:
        raise InputError("seed out of range", where="seed", got=seed, allowed="0...2**64 - 1", cure="Choose another")
    _check_neurons(genome, min(max_neurons, LARGEST_NETWORK))
    links = list(genome_links(genome, grow_randomizer))
    _check_synapses(links, max_synapses)
    areas = tuple(_area(index, spec) for index, spec in enumerate(genome.areas))
    reading = FeatureReading(genome, areas)
    neurons = _neurons(genome.areas)
    synapses = grow_synapses(links, seed, progress, reading.number_of)
    plastic, associative = reading.learning(neurons.cortical_areas, synapses)
    return Network(
        neurons=neurons,
        synapses=synapses,
        areas=areas,
        plastic_mappings=plastic,
        features=reading.features(associative),
        provenance={
            "source": "genome",
            "path": readable_path(genome.path),
            "sha256": genome.sha256,
            "title": genome.title,
            "version": genome.version,
            "quantization_precision": str(genome.physiology.get("quantization_precision", "")),
            "seed": str(seed),
            "grow_randomizer": str(grow_randomizer).lower(),
            "ignored_blueprint_keys": str(genome.ignored_blueprint_keys),
            **genome.notes,
        },
    )


def _area(index: int, spec: AreaSpec) -> Area:
    return Area(
        index,
        spec.cortical_id,
        name=spec.name,
        dimensions=spec.dimensions,
        neurons_per_voxel=spec.neurons_per_voxel,
        psp_uniform_distribution=spec.psp_uniform_distribution,
        mp_driven_psp=spec.mp_driven_psp,
    )


def _check_neurons(genome: Genome, cap: int) -> None:
    """Refuse areas that together have more voxels or neurons than the cap, naming the one that exceeds it."""
    total = 0
    for area in genome.areas:
        total += max(area.voxel_count, area.neuron_count)
        if total > cap:
            width, height, depth = area.dimensions
            raise GenomeError(
                f"the genome has more than {cap} neurons (or voxels) up to this area",
                where=area.place or readable_path(genome.path),
                got=f"{width} x {height} x {depth} voxels x {area.neurons_per_voxel} neurons, {total} in all",
                allowed=f"{cap} (max_neurons)",
                cure="Make the areas smaller or raise max_neurons",
            )


def _check_synapses(links: list[Link], cap: int) -> None:
    """Refuse rules that together can make more synapses than the cap, naming the one that exceeds it."""
    total = 0
    for link in links:
        total += link.bound
        if total > cap:
            raise GenomeError(
                f"the genome has more than {cap} synapses up to this rule",
                where=link.rule.place,
                got=f"{link.bound} from {link.rule.morphology}, {total} in all",
                allowed=f"{cap} (max_synapses)",
                cure="Make the areas smaller, choose a sparser morphology, or raise max_synapses",
            )


def _neurons(areas: Sequence[AreaSpec]) -> NeuronTable:
    """The neuron table: the neurons of each area in order of their voxels, x slowest, z fastest."""
    counts = [area.neuron_count for area in areas]

    def column(values: Sequence[float | int | bool], dtype: type[np.generic]) -> npt.NDArray[np.generic]:
        return np.repeat(np.array(values, dtype), counts)

    return NeuronTable.build(
        sum(counts),
        thresholds=np.concatenate([_thresholds(area) for area in areas]),
        threshold_limits=column([area.threshold_limit or float(NO_LIMIT) for area in areas], np.float32),
        leak_coefficients=column([area.leak_coefficient for area in areas], np.float32),
        refractory_periods=column([area.refractory_period % _UINT16 for area in areas], np.uint16),
        excitabilities=column([area.excitability for area in areas], np.float32),
        cortical_areas=column(range(len(areas)), np.uint32),
        coordinates=np.concatenate([_coordinates(area) for area in areas]),
        consecutive_fire_limits=column([_fire_limit(area) for area in areas], np.uint16),
        snooze_periods=column([area.snooze_length % _UINT16 for area in areas], np.uint16),
        mp_charge_accumulation=column([area.mp_charge_accumulation for area in areas], np.bool_),
    )


def _fire_limit(area: AreaSpec) -> int:
    """The consecutive-fire limit in 16 bits; 0 becomes the engine's number for unlimited."""
    return area.consecutive_fire_limit % _UINT16 if area.consecutive_fire_limit else UNLIMITED_FIRES


def _coordinates(area: AreaSpec) -> npt.NDArray[np.uint32]:
    """Voxel of every neuron of an area, (n, 3)."""
    voxel = np.arange(area.neuron_count, dtype=np.uint32) // max(1, area.neurons_per_voxel)
    steps = strides(area.dimensions)
    columns = [voxel // step % size for step, size in zip(steps, area.dimensions, strict=True)]
    return np.stack(columns, axis=1).astype(np.uint32, copy=False)


def _thresholds(area: AreaSpec) -> npt.NDArray[np.float32]:
    """Threshold of every neuron of an area: ((T + x ix) + y iy) + z iz in float32, (n,)."""
    thresholds = np.full(area.neuron_count, area.firing_threshold, np.float32)
    if not any(area.threshold_increments):
        return thresholds
    coordinates = _coordinates(area).astype(np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        for axis, increment in enumerate(area.threshold_increments):
            thresholds = thresholds + coordinates[:, axis] * np.float32(increment)
    if not np.isfinite(thresholds).all():
        raise GenomeError(
            "a threshold does not fit float32",
            where=area.place,
            got=f"{area.firing_threshold:g} and increments {area.threshold_increments}",
            allowed="finite thresholds in every voxel",
            cure="Make the increments smaller",
        )
    return thresholds
