"""Smaller forms of a case: with fewer neurons, synapses, bursts or inputs, or with plainer values."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.engine.options import EngineOptions
from burstproof.engine.state import Stimulus, StimulusPlan
from burstproof.fuzz.case import FuzzCase
from burstproof.fuzz.compare import reference_run
from burstproof.network.model import Network, NeuronTable, SynapseTable
from burstproof.network.plasticity import PlasticMapping
from burstproof.network.schema import LEARNT_FIELDS, NEURON_FIELDS, STATE_FIELDS, SYNAPSE_FIELDS

Mask = npt.NDArray[np.bool_]

_ENDS = ("source_neurons", "target_neurons")


def in_steps(case: FuzzCase, bursts: int) -> FuzzCase:
    """The first ``bursts`` bursts of ``case``, one by one, on one engine."""
    short = replace(case, runs=(1,) * bursts, handover=None)
    return replace(short, plan={number: s for number, s in case.plan.items() if number in short.numbers})


def advanced(case: FuzzCase, bursts: int) -> FuzzCase:
    """``case``, made of steps, without its first ``bursts`` bursts; what is under way then is lost."""
    past = replace(case, runs=(bursts,))
    state = next(iter(reference_run(past))).state
    neurons = {name: getattr(state, name) for name in STATE_FIELDS}
    learnt = {name: getattr(state, name) for name in LEARNT_FIELDS}
    network = case.network.replace(
        neurons=replace(case.network.neurons, **neurons),
        synapses=replace(case.network.synapses, **learnt),
        burst_count=state.burst_count,
    )
    rest = replace(case, network=network, runs=case.runs[bursts:])
    return replace(rest, plan={number: s for number, s in case.plan.items() if number in rest.numbers})


def with_neurons(case: FuzzCase, kept: Mask) -> FuzzCase:
    """``case`` without the neurons that ``kept`` (N,) leaves out, their synapses and their inputs."""
    network = case.network
    ends = [getattr(network.synapses, name) for name in _ENDS]
    case = with_synapses(case, kept[ends[0]] & kept[ends[1]])
    new_ids = (np.cumsum(kept) - 1).astype(np.uint32)
    table = {name: getattr(network.neurons, name)[kept] for name in NEURON_FIELDS}
    renamed = {name: new_ids[getattr(case.network.synapses, name)] for name in _ENDS}
    plan = {
        number: Stimulus(new_ids[s.ids[kept[s.ids]]], s.amounts[kept[s.ids]], new_ids[s.forced[kept[s.forced]]])
        for number, s in case.plan.items()
    }
    neurons = NeuronTable.build(int(kept.sum()), **table)
    synapses = replace(case.network.synapses, **renamed)
    return replace(case, network=case.network.replace(neurons=neurons, synapses=synapses), plan=plan)


def with_synapses(case: FuzzCase, kept: Mask) -> FuzzCase:
    """``case`` without the synapses that ``kept`` (S,) leaves out."""
    network = case.network
    new_rows = np.cumsum(kept) - 1
    mappings = [replace(m, synapses=new_rows[m.synapses[kept[m.synapses]]]) for m in network.plastic_mappings]
    table = {name: getattr(network.synapses, name)[kept] for name in SYNAPSE_FIELDS}
    return replace(
        case, network=network.replace(synapses=SynapseTable.build(**table), plastic_mappings=tuple(mappings))
    )


def with_inputs(case: FuzzCase, kept: Mask) -> FuzzCase:
    """``case`` with those of its inputs that ``kept`` names: first all amounts, then all forced firings."""
    plan: dict[int, Stimulus] = {}
    place = 0
    amounts = sum(len(s.ids) for s in case.plan.values())
    forced_place = amounts
    for number, s in case.plan.items():
        some = kept[place : place + len(s.ids)]
        forced = kept[forced_place : forced_place + len(s.forced)]
        place, forced_place = place + len(s.ids), forced_place + len(s.forced)
        if some.any() or forced.any():
            plan[number] = Stimulus(s.ids[some], s.amounts[some], s.forced[forced])
    return replace(case, plan=plan)


def input_count(plan: StimulusPlan) -> int:
    """Amounts and forced firings of ``plan``."""
    return sum(len(s.ids) + len(s.forced) for s in plan.values())


def with_mappings(case: FuzzCase, kept: Mask) -> FuzzCase:
    """``case`` without the plastic mappings that ``kept`` leaves out."""
    mappings = tuple(m for m, keep in zip(case.network.plastic_mappings, kept, strict=True) if keep)
    return replace(case, network=case.network.replace(plastic_mappings=mappings))


def plainer(case: FuzzCase) -> Iterator[FuzzCase]:
    """``case`` with one thing set to its usual value; things that have it already are left out."""
    network = case.network
    if network.burst_count:
        plan = {number - network.burst_count: s for number, s in case.plan.items()}
        yield replace(case, network=network.replace(burst_count=0), plan=plan)
    yield from _plainer_options(case)
    yield from _networks(case, _plainer_network(network))
    yield from _networks(case, (network.replace(neurons=t) for t in _plainer_columns(network.neurons, _USUAL_NEURON)))
    yield from _networks(
        case, (network.replace(synapses=t) for t in _plainer_columns(network.synapses, _USUAL_SYNAPSE))
    )


def _networks(case: FuzzCase, networks: Iterable[Network]) -> Iterator[FuzzCase]:
    return (replace(case, network=network) for network in networks)


def _plainer_options(case: FuzzCase) -> Iterator[FuzzCase]:
    usual = EngineOptions()
    for name in ("profile", "emulate_batch_path", "max_stimulus", "fractional_stimulus"):
        if getattr(case.options, name) != getattr(usual, name):
            yield replace(case, options=replace(case.options, **{name: getattr(usual, name)}))


def _plainer_network(network: Network) -> Iterator[Network]:
    if network.power_amount != 1.0:
        yield network.replace(power_amount=1.0)
    present = set(np.unique(network.neurons.cortical_areas).tolist())
    kept = tuple(area for area in network.areas if area.index in present)
    if len(kept) < len(network.areas):
        yield network.replace(areas=kept)
    for number, area in enumerate(network.areas):
        without = replace(area, psp_uniform_distribution=None), replace(area, mp_driven_psp=None)
        for changed in without:
            if changed != area:
                yield network.replace(areas=(*network.areas[:number], changed, *network.areas[number + 1 :]))
    usual = PlasticMapping(np.empty(0, np.int64))
    for number, mapping in enumerate(network.plastic_mappings):
        for name in ("window", "constant", "ltp_multiplier", "ltd_multiplier"):
            if getattr(mapping, name) != getattr(usual, name):
                mappings = list(network.plastic_mappings)
                mappings[number] = replace(mapping, **{name: getattr(usual, name)})
                yield network.replace(plastic_mappings=tuple(mappings))


_USUAL_NEURON = NeuronTable.build(1)
_USUAL_SYNAPSE = SynapseTable.build([0], [0])
_FEW_ROWS = 8


def _plainer_columns(table: Any, usual: Any) -> Iterator[Any]:
    """``table`` with one column set to its usual value, whole or, where there are few rows, in one row."""
    for item in dataclasses.fields(table):
        if item.name in _ENDS or not len(table):
            continue
        column, value = getattr(table, item.name), getattr(usual, item.name)[0]
        different = np.flatnonzero((column != value).reshape(len(column), -1).any(axis=1))
        if not len(different):
            continue
        for rows in (different, *(different[[i]] for i in range(len(different)) if 1 < len(different) <= _FEW_ROWS)):
            changed = column.copy()
            changed[rows] = value
            yield replace(table, **{item.name: changed})
