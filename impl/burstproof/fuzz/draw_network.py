"""The random network of a case: topology, parameters over their full ranges, start state, areas and plastic rules."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.engine.reference import draw as excitability_draw
from burstproof.fuzz.switches import LATER_COLUMNS, SIZES, Switches
from burstproof.network.model import POWER_AREA_INDEX, Area, Network, NeuronTable, SynapseTable
from burstproof.network.plasticity import PlasticMapping
from burstproof.network.schema import NO_LIMIT, UNLIMITED_FIRES, ColumnSpec

Rng = np.random.Generator
Floats = npt.NDArray[np.float32]

_AREA_INDICES = (7, 8, 9, 2, 300)
_LARGEST_DELAY = {"one": 1, "short": 7, "long": 255}
_POWER_AMOUNTS = (0.0, 0.0, -1.0, 0.5, 0.1, 3.0, 1000.0, 1e7, 16777217.0)
_EXTREME_POTENTIALS = (np.inf, -np.inf, 3e38, -3e38, 1e10, -0.0, 1e-40, 16777216.0, 0.1)
_CONSTANTS = (0.0, 0.5, 0.9, 1.0, 1.0, 2.0, 2.5, 7.0, 100.0, -1.0, -2.5, 300.0)
_MULTIPLIERS = (0.0, 0.25, 0.5, 1.0, 1.0, 2.0, 2.5, 3.0, -1.0, 1000.0)


def draw_network(switches: Switches, rng: Rng, bursts: int) -> Network:
    """A network with what ``switches`` say; ``bursts`` is how many it will run for."""
    count = int(rng.integers(SIZES[switches.size][0], SIZES[switches.size][1] + 1))
    burst_count = _draw_burst_count(rng, bursts)
    areas = rng.choice(_AREA_INDICES[: rng.integers(1, 6)], count)
    if switches.power != "none":
        areas[rng.integers(count)] = POWER_AREA_INDEX
    synapses = _draw_synapses(switches, rng, count)
    neurons = NeuronTable.build(
        count,
        cortical_areas=areas,
        valid_mask=~_some(rng, count, 0.15) if switches.invalid_neurons else True,
        mp_charge_accumulation=_draw_accumulation(switches, rng, count),
        resting_potentials=rng.integers(-5, 5, count),
        **_draw_levels(switches, rng, count, synapses),
        **_draw_firing(switches, rng, count, burst_count, bursts),
    )
    network = Network(
        neurons,
        synapses,
        areas=tuple(_draw_areas(switches, rng, areas)),
        burst_count=burst_count,
        power_amount=float(rng.choice(_POWER_AMOUNTS)) if switches.power == "other" else 1.0,
    )
    return network.replace(plastic_mappings=tuple(_draw_mappings(switches, rng, network)))


def _draw_burst_count(rng: Rng, bursts: int) -> int:
    """Some burst, or one from which the run passes a power of 2 at which a counter might wrap."""
    around = int(rng.choice([0, 0, 1 << 16, 1 << 31, 1 << 32, 1 << 33]))
    if not around:
        return int(rng.integers(0, 1 << 33)) if rng.random() < 0.5 else 0
    return around - int(rng.integers(0, bursts + 1))


def _some(rng: Rng, count: int, share: float) -> npt.NDArray[np.bool_]:
    return rng.random(count) < share


def _varied(rng: Rng, values: npt.NDArray[Any], first: float, second: float) -> npt.NDArray[Any]:
    """``values`` of which one is ``first`` and another ``second``: a switch that is on is seen in any network."""
    places = rng.permutation(len(values))[:2]
    values[places] = [first, second][: len(places)]
    return values


def _draw_accumulation(switches: Switches, rng: Rng, count: int) -> npt.NDArray[np.bool_]:
    if switches.mp_charge_accumulation != "some":
        return np.full(count, switches.mp_charge_accumulation == "all")
    return _varied(rng, _some(rng, count, 0.6), False, True)


# Synapses --------------------------------------------------------------------------------------------------------


def _draw_synapses(switches: Switches, rng: Rng, count: int) -> SynapseTable:
    sources, targets = _draw_ends(switches, rng, count)
    links = len(sources)
    weights, psps = _draw_factors(switches, rng, links), _draw_factors(switches, rng, links)
    if switches.numbers == "ties":
        psps[:] = 1
    if switches.negative:
        weights[_some(rng, links, 0.2)] *= -1
        psps[_some(rng, links, 0.2)] *= -1
    with np.errstate(over="ignore"):
        infinite = ~np.isfinite(weights * psps)
    weights[infinite] = 1
    inhibitory = _some(rng, links, {"none": 0.0, "some": 0.25, "most": 0.8}[switches.inhibition])
    delays = np.ones(links, np.int64)
    if switches.delays != "one":
        delays = rng.integers(1, int(rng.integers(2, _LARGEST_DELAY[switches.delays] + 1)) + 1, links)
    return SynapseTable.build(
        sources,
        targets,
        weights=weights,
        postsynaptic_potentials=psps,
        types=inhibitory * rng.choice([1, 1, 2, 255], links),
        delay_bursts=delays,
        valid_mask=~_some(rng, links, 0.15) if switches.invalid_synapses else True,
    )


def _draw_ends(switches: Switches, rng: Rng, count: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Sources and targets; some pairs several times, sorted by source or in any order."""
    links = 0 if switches.topology == "none" else int(rng.integers(1, max(2, min(count * 12, 3000))))
    sources, targets = rng.integers(0, count, (2, links))
    if switches.topology == "hubs":
        sources, targets = ((count * rng.random((2, links)) ** 3).astype(np.int64)) % count
    elif switches.topology == "chain":
        targets = (sources + 1) % count
    elif switches.topology == "self":
        targets = np.where(_some(rng, links, 0.5), sources, targets)
    elif switches.topology == "one target":
        targets = np.full(links, rng.integers(count))
    if rng.random() < 0.3 and links:
        again = rng.integers(0, links, links // 3)
        sources, targets = np.append(sources, sources[again]), np.append(targets, targets[again])
    order = np.argsort(sources, kind="stable") if switches.sorted_rows else rng.permutation(len(sources))
    return sources[order], targets[order]


def _draw_factors(switches: Switches, rng: Rng, links: int) -> Floats:
    """Weights or psps: 0 now and then, of one kind of numbers, of one or of several sizes."""
    if switches.beta:
        values = rng.integers(0, rng.choice([3, 10, 256]), links).astype(np.float64)
    elif switches.numbers == "integers":
        values = rng.integers(0, rng.choice([3, 10, 400]), links).astype(np.float64)
    elif switches.numbers == "eighths":
        values = rng.integers(0, 50, links) / 8
    elif switches.numbers == "fractions":
        values = rng.random(links) * rng.choice([1, 3, 300])
    elif switches.numbers == "large":
        values = np.rint(10 ** (rng.random(links) * 7))
    elif switches.numbers == "ties":  # sums of 61 bits, half-way between two float32 but for the last
        values = rng.choice([2.0**24, 1.0, 2.0**-36], links, p=[0.2, 0.4, 0.4])
    else:
        values = rng.choice([1.0, 0.1, 1e13, 1e19, 1e-20, 1e-39, 3.0], links)
    if rng.random() < 0.3 and links:
        values[:] = values[0]
    values[_some(rng, links, 0.03)] = 0
    return values.astype(np.float32)


# Neurons ---------------------------------------------------------------------------------------------------------


def _draw_levels(switches: Switches, rng: Rng, count: int, synapses: SynapseTable) -> dict[str, npt.NDArray[Any]]:
    """Potentials, thresholds and limits about as high as what arrives, and the extremes of each."""
    products = np.abs(synapses.weights.astype(np.float64) * synapses.postsynaptic_potentials)
    typical = float(np.median(products)) if len(products) and rng.random() < 0.8 else 1.0
    scale = float(np.float32(np.clip(typical, 1e-30, 1e30) * rng.choice([0.2, 1, 2, 5])))
    step = 1.0 if switches.numbers == "integers" else 0.0
    potentials = np.zeros(count, np.float32)
    if switches.start != "fresh":
        potentials = _stepped(rng.uniform(-2, 2, count) * scale, step)
    if switches.start == "extreme":
        extreme = _some(rng, count, 0.3)
        potentials[extreme] = rng.choice(_EXTREME_POTENTIALS, extreme.sum())
    thresholds = _stepped(rng.uniform(rng.choice([0.0, -0.2, -1.0]), 2, count) * scale, step)
    _reach_exactly(thresholds, rng, potentials, synapses)
    extreme = _some(rng, count, 0.1)
    thresholds[extreme] = rng.choice([0.0, -0.0, -5.0, 1e-40, float(NO_LIMIT), 1.0], extreme.sum())
    if switches.one_threshold:
        thresholds[:] = thresholds[0] if abs(float(thresholds[0])) < 1e30 else 1.0
    else:
        thresholds = _varied(rng, thresholds, 1.0, scale * 1.5)
    limits = np.full(count, NO_LIMIT)
    if switches.threshold_limits:
        above = rng.choice([0.0, 0.0, 0.5, 1.0, 3.0, -0.5], count) * scale
        with np.errstate(over="ignore"):
            finite = _stepped(thresholds + above, step)
        limits = _varied(rng, np.where(_some(rng, count, 0.6), finite, limits), 4.0 * scale, float(NO_LIMIT))
    return {"membrane_potentials": potentials, "thresholds": thresholds, "threshold_limits": limits}


def _reach_exactly(thresholds: Floats, rng: Rng, potentials: Floats, synapses: SynapseTable) -> None:
    """Let some thresholds be what the potential at the start and one contribution, divided or not, add up to."""
    links = len(synapses)
    chosen = rng.permutation(links)[: int(rng.integers(0, len(thresholds) // 2 + 2))]
    sources, targets = synapses.source_neurons[chosen], synapses.target_neurons[chosen]
    outgoing = np.bincount(synapses.source_neurons[synapses.valid_mask], minlength=len(thresholds))[sources]
    divisors = np.where(_some(rng, len(chosen), 0.5), np.maximum(outgoing, 1), 1).astype(np.float32)
    contributions = synapses.weights[chosen] * synapses.postsynaptic_potentials[chosen] / divisors
    with np.errstate(over="ignore", invalid="ignore"):
        thresholds[targets] = np.nan_to_num(potentials[targets] + contributions)


def _stepped(values: npt.NDArray[np.float64], step: float) -> Floats:
    """``values`` as float32, rounded to multiples of ``step`` unless it is 0."""
    return (np.rint(values / step) * step if step else values).astype(np.float32)


def _draw_firing(
    switches: Switches, rng: Rng, count: int, burst_count: int, bursts: int
) -> dict[str, npt.NDArray[Any]]:
    """Leak, excitability, refractory periods, limits of consecutive fires and snooze, with what is under way."""
    columns: dict[str, npt.NDArray[Any]] = {}
    if switches.leak_coefficients:
        leak = np.where(_some(rng, count, 0.2), rng.random(count), rng.choice(_LEAKS, count))
        columns["leak_coefficients"] = _varied(rng, leak, 0.5, 0.0)
    if switches.excitabilities:
        columns["excitabilities"] = _draw_excitabilities(rng, count, burst_count, bursts)
    if switches.refractory_periods:
        columns["refractory_periods"] = _varied(rng, rng.choice([0, 0, 0, 1, 1, 2, 5, 65535], count), 1, 0)
    if switches.refractory_periods and switches.start != "fresh":
        columns["refractory_countdowns"] = rng.choice([0, 0, 0, 0, 1, 2, 5, 65535], count)
    limits = _varied(rng, rng.choice([0, UNLIMITED_FIRES], count), 0, UNLIMITED_FIRES)
    if switches.consecutive_fire_limits == "some":
        limits = _varied(rng, rng.choice([0, UNLIMITED_FIRES, 1, 2, 3, 65534], count), 2, UNLIMITED_FIRES)
        if switches.snooze_periods:
            columns["snooze_periods"] = _varied(rng, rng.choice([0, 0, 1, 3, 70, 65535], count), 0, 3)
            limits[columns["snooze_periods"] == 3] = 2
    columns["consecutive_fire_limits"] = limits
    if switches.start != "fresh":
        columns["consecutive_fire_counts"] = rng.choice([0, 0, 0, 1, 2, 3, 65533, 65534, 65535], count)
    return columns


_LEAKS = (0.0, 0.0, 0.1, 0.25, 0.5, 1.0, 1.25, 2.0, 10.0, -0.25)


def _draw_excitabilities(rng: Rng, count: int, burst_count: int, bursts: int) -> Floats:
    """Values at the rule's edges; some are what is drawn for the neuron in a burst to come, or the next float up."""
    values = rng.choice([1, 1, 0.999, np.nextafter(np.float32(0.999), np.float32(0)), 0.5, 0.1, 0, -1, 100], count)
    values = np.where(_some(rng, count, 0.3), rng.random(count), values).astype(np.float32)
    burst = burst_count + int(rng.integers(1, bursts + 1))
    exact = excitability_draw(np.arange(count), burst)
    exact = np.where(_some(rng, count, 0.5), exact, np.nextafter(exact, np.float32(2)))
    return _varied(rng, np.where(_some(rng, count, 0.3), exact, values), 0.5, 1.0)


def with_later_columns(switches: Switches, rng: Rng, network: Network) -> Network:
    """``network`` with values in the columns that have no draw of their own."""
    columns = {
        column.name: _varied(rng, *_draw_any(rng, column, network.neuron_count))
        for column in LATER_COLUMNS
        if column.name in switches.later_columns
    }
    return network.replace(neurons=replace(network.neurons, **columns)) if columns else network


def _draw_any(rng: Rng, column: ColumnSpec, count: int) -> tuple[npt.NDArray[Any], float, float]:
    """Values of a column that its dtype suggests, (count,), and two that have to be among them."""
    usual = float(column.default or 0)
    if column.dtype is np.bool_:
        return _some(rng, count, 0.5), 0.0, 1.0
    if issubclass(column.dtype, np.integer):
        most = int(np.iinfo(column.dtype).max)
        return rng.choice(np.array([usual, 0, 1, 2, 5, most], column.dtype), count), 1.0, usual
    values = np.array([usual, usual, 0.5, 1.0, -1.5, -0.0, 16777216.0, 1e-40], column.dtype)
    return rng.choice(values, count), 0.5, usual


# Areas and plasticity ----------------------------------------------------------------------------------------------


def _draw_areas(switches: Switches, rng: Rng, areas: npt.NDArray[Any]) -> Iterator[Area]:
    present = np.unique(areas).tolist()
    registered = set(present if switches.flags == "all" else rng.permutation(present)[:1].tolist())
    driven = int(rng.choice(present))
    for index in present:
        uniform = mp_driven = None
        if switches.flags != "none" and index in registered:
            uniform = bool(rng.random() < 0.4)
            mp_driven = switches.mp_driven and (index == driven or bool(rng.random() < 0.4))
            if rng.random() < 0.1:
                uniform = None
        yield Area(index, f"area{index}", psp_uniform_distribution=uniform, mp_driven_psp=mp_driven)


def _draw_mappings(switches: Switches, rng: Rng, network: Network) -> Iterator[PlasticMapping]:
    """Rules on pairs of areas that have synapses: of all of them, of some or of none; several rules on one pair."""
    links = network.synapse_count
    if switches.plasticity == "none" or not links:
        return
    areas, synapses = network.neurons.cortical_areas, network.synapses
    ends = areas[synapses.source_neurons], areas[synapses.target_neurons]
    row = int(rng.integers(links))
    for number in range(1 if switches.plasticity == "one" else int(rng.integers(2, 5))):
        if number and rng.random() < 0.5:
            row = int(rng.integers(links))
        between = (ends[0] == ends[0][row]) & (ends[1] == ends[1][row])
        if number and rng.random() < 0.1:
            between[:] = True
        rows = np.flatnonzero(between & _some(rng, links, rng.choice([1.0, 0.5, 0.0], p=[0.6, 0.35, 0.05])))
        window, constant = int(rng.integers(1, 6)), float(rng.choice(_CONSTANTS))
        ltp, ltd = (float(m) for m in rng.choice(_MULTIPLIERS, 2))
        yield PlasticMapping(rows, window, constant, ltp, ltd)
