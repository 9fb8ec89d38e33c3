"""Small networks written down synapse by synapse, and cases: what goes in and what must come out, burst by burst."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import numpy as np

from burstproof.engine.options import EngineOptions
from burstproof.engine.protocol import Engine
from burstproof.engine.state import Stimulus
from burstproof.network.model import Area, Network, NeuronTable, SynapseTable

CreateEngine = Callable[[Network, EngineOptions], Engine]

SYNAPSE_DEFAULT = {"weight": 1.0, "psp": 1.0, "type": 0, "delay": 1, "valid": True, "rule": 0}


def synapse(source: int, target: int, **values: Any) -> dict[str, Any]:
    """One synapse; absent values: weight 1, psp 1, excitatory, delay 1, valid, of no rule."""
    return {"source": source, "target": target, **SYNAPSE_DEFAULT, **values}


def network(
    neurons: int,
    synapses: Sequence[Mapping[str, Any]] = (),
    *,
    burst_count: int = 0,
    areas: Sequence[Area] = (),
    **columns: Any,
) -> Network:
    """A network of area 7 unless ``cortical_areas`` is given; accumulating, threshold 1, no leak unless given."""
    table = {name: [s[name] for s in synapses] for name in ("source", "target", *SYNAPSE_DEFAULT)}
    return Network(
        NeuronTable.build(neurons, **columns),
        SynapseTable.build(
            np.array(table["source"], np.uint32),
            np.array(table["target"], np.uint32),
            weights=np.array(table["weight"], np.float32),
            postsynaptic_potentials=np.array(table["psp"], np.float32),
            types=np.array(table["type"], np.uint8),
            delay_bursts=np.array(table["delay"], np.uint8),
            valid_mask=np.array(table["valid"], np.bool_),
            rules=np.array(table["rule"], np.uint16),
        ),
        areas=tuple(areas),
        burst_count=burst_count,
    )


def flags(index: int = 7, *, uniform: bool, mp_driven: bool = False) -> Area:
    """An area with both psp flags registered."""
    return Area(index, f"area{index}", psp_uniform_distribution=uniform, mp_driven_psp=mp_driven)


def stimulate(amounts: Mapping[int, float], *forced: int) -> Stimulus:
    """Amounts by neuron, and neurons forced to fire."""
    return Stimulus(
        np.array(list(amounts), np.uint32),
        np.array(list(amounts.values()), np.float32),
        np.array(forced, np.uint32),
    )


@dataclass(frozen=True)
class Case:
    """A network, what is done to it, and what must be seen.

    Attributes
    ----------
    name : str
        What the case shows.
    network, options, plan
        The input; ``plan`` by burst number counted from the start (1 is the first burst).
    fired : sequence
        For each burst the neurons that fire, or a mapping from neuron to potential before the reset.
    states : mapping
        Burst (counted from the start; 0 is before the first) -> field of EngineState, with dots for what it holds of
        features -> neuron or synapse -> value, or all values of the field.
    clamped : bool
        Whether a contribution was clamped by the end.
    """

    name: str
    network: Network
    fired: Sequence[Sequence[int] | Mapping[int, float]]
    states: Mapping[int, Mapping[str, Mapping[int, float] | Sequence[float]]] = field(default_factory=dict)
    plan: Mapping[int, Stimulus] = field(default_factory=dict)
    options: EngineOptions = field(default_factory=EngineOptions)
    clamped: bool = False


def run_case(case: Case, create: CreateEngine) -> list[str]:
    """What an engine does otherwise than ``case`` says; empty when it does the same."""
    engine = create(case.network, case.options)
    found: list[str] = []
    try:
        found += _state_problems(engine, case.states.get(0, {}), "before the first burst")
        for number, expected in enumerate(case.fired, start=1):
            burst = engine.step(case.plan.get(number, Stimulus()))
            where = f"burst {number}"
            if sorted(expected) != burst.fired_ids.tolist():
                found.append(f"{where}: fired {burst.fired_ids.tolist()[:20]}, expected {sorted(expected)[:20]}")
            elif isinstance(expected, Mapping):
                wanted = np.array([expected[i] for i in sorted(expected)], np.float32)
                if wanted.tobytes() != burst.fired_potentials.tobytes():
                    found.append(f"{where}: potentials {burst.fired_potentials.tolist()}, expected {wanted.tolist()}")
            found += _state_problems(engine, case.states.get(number, {}), where)
        if engine.state().clamped != case.clamped:
            found.append(f"at the end: clamped is {not case.clamped}, expected {case.clamped}")
    finally:
        engine.close()
    return found


def _state_problems(
    engine: Engine, expected: Mapping[str, Mapping[int, float] | Sequence[float]], where: str
) -> list[str]:
    if not expected:
        return []
    state = engine.state()
    found = []
    for name, values in expected.items():
        column = attrgetter(name)(state)
        if not isinstance(values, Mapping):
            wanted = np.asarray(values).astype(column.dtype)
            found += [] if np.array_equal(column, wanted) else [f"{where}: {name} is {column.tolist()}, not {values}"]
            continue
        for item, value in values.items():
            if column[item] != np.asarray(value).astype(column.dtype):
                found.append(f"{where}: {name}[{item}] is {column[item]}, expected {value}")
    return found
