"""What ``burstproof run`` says of features: which the network uses, and what they did."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.engine.feature_state import FeatureState
from burstproof.engine.state import Recording
from burstproof.network.cortical_ids import readable_id
from burstproof.network.features import FIRST_MEMORY_ID, AreaFeatures, MemoryArea, MemoryChange, Modulator
from burstproof.network.model import Network
from burstproof.network.plasticity import PlasticMapping

MOST_LINES = 24
"""Features that the report lists unless all are asked for."""

Feature = dict[str, str]
"""``where``, ``feature`` and ``parameters``, in words."""


def used_features(network: Network) -> list[Feature]:
    """The features of a network, one entry for each area or mapping and feature."""
    found = [*_of_areas(network), *_of_rules(network), *_of_plasticity(network)]
    if network.features.clamp_potentials:
        found.append(_feature("network", "precision feagi-int8", "potentials and thresholds clamped to 0...255"))
    return found


def _feature(where: str, feature: str, parameters: str = "") -> Feature:
    return {"where": where, "feature": feature, "parameters": parameters}


def _area(network: Network, index: int) -> str:
    """How the report calls an area."""
    area = next((one for one in network.areas if one.index == index), None)
    if area is None:
        return str(index)
    name = area.name if area.name.isprintable() else ascii(area.name)[1:-1]
    return name[:40] or readable_id(area.cortical_id)


def _mapping(network: Network, source: int, target: int) -> str:
    return f"mapping {_area(network, source)} -> {_area(network, target)}"


def _modulator(network: Network, one: Modulator) -> str:
    """Name, magnitude and driver of a modulator."""
    full = "" if one.full_scale_potential is None else f" at a potential of {one.full_scale_potential:g}"
    return f"{one.name} ({one.magnitude_percent:+g} %{full}, driven by {_area(network, one.driver)})"


def _modulators(network: Network, positions: tuple[int, ...]) -> str:
    return ", ".join(_modulator(network, network.features.modulators[position]) for position in positions)


def _of_areas(network: Network) -> Iterator[Feature]:
    for index, area in sorted(network.features.areas.items()):
        for feature, parameters in _of_area(network, index, area):
            yield _feature(f"area {_area(network, index)}", feature, parameters)


def _of_area(network: Network, index: int, area: AreaFeatures) -> Iterator[tuple[str, str]]:
    if area.homeostat is not None:
        own = area.homeostat
        every = f", every {own.update_every} bursts" if own.update_every > 1 else ""
        limits = f"leak {own.leak_min:g}...{own.leak_max:g}{every}"
        yield "homeostatic leak", f"target {own.target:g}, tau {own.tau:g} bursts, gain {own.gain:g}, {limits}"
    for position in area.modulators:
        one = network.features.modulators[position]
        yield one.kind.value, _modulator(network, one)
    if area.spike_train:
        limits = network.neurons.consecutive_fire_limits[network.neurons.cortical_areas == index]
        most = int(limits.max(initial=0))
        yield "spike trains", f"of up to {most} firing{'s' if most != 1 else ''}"
    if area.degeneration:
        yield "degeneration", f"psp - {area.degeneration:g} with each firing"
    if area.memory is not None:
        yield "memory", _memory(network, area.memory)


def _memory(network: Network, own: MemoryArea) -> str:
    """A memory area in words."""
    upstream = ", ".join(_area(network, index) for index in own.upstream) or "nothing"
    parts = [
        f"of {upstream}, {own.temporal_depth} burst{'s' if own.temporal_depth > 1 else ''} deep",
        f"lifespan {own.init_lifespan} + {own.lifespan_growth}, long-term from {own.longterm_threshold}",
    ]
    if own.neuron_cap:
        parts.append(f"at most {own.neuron_cap} neurons, then {'one goes' if own.evicts else 'none is formed'}")
    if own.change is not MemoryChange.NONE:
        quantum = own.ratio_quantization if own.change is MemoryChange.RATIO else own.delta_quantization
        parts.append(f"{own.change.value} in steps of {quantum:g}")
    if own.mp_learning:
        parts.append("potentials are learnt")
    parts += [f"{_area(network, twin)} replays {_area(network, area)}" for area, twin in sorted(own.twins.items())]
    return "; ".join(parts)


def _of_rules(network: Network) -> Iterator[Feature]:
    """Gains and gates, by the pairs of areas between which they act."""
    rows = np.flatnonzero(network.synapses.rules) if network.features.rules else np.empty(0, np.int64)
    areas = network.neurons.cortical_areas
    ends = (network.synapses.source_neurons[rows], network.synapses.target_neurons[rows])
    columns = np.stack([areas[ends[0]], areas[ends[1]], network.synapses.rules[rows].astype(np.uint32)])
    found, counts = np.unique(columns, axis=1, return_counts=True)
    made = {tuple(key): count for key, count in zip(found.T.tolist(), counts.tolist(), strict=True)}
    for one in network.features.associative:
        if one.rule:
            made.setdefault((one.source, one.target, one.rule), 0)
    for (source, target, number), count in made.items():
        rule = network.features.rules[number - 1]
        synapses = f": {count} synapse{'s' if count != 1 else ''}" if count else ": synapses to come"
        for feature, positions in (("transmission gain", rule.gains), ("gate", rule.gates)):
            if positions:
                yield _feature(_mapping(network, source, target), feature, _modulators(network, positions) + synapses)


def _of_plasticity(network: Network) -> Iterator[Feature]:
    """Plastic mappings that do more than potentiation and depression, and associative ones."""
    areas = network.neurons.cortical_areas
    associative = {one.plastic: (one.source, one.target) for one in network.features.associative}
    for number, mapping in enumerate(network.plastic_mappings):
        parameters = _plasticity(network, mapping)
        if number not in associative and (not parameters or not len(mapping.synapses)):
            continue
        rows = mapping.synapses[:1]
        ends = (network.synapses.source_neurons[rows], network.synapses.target_neurons[rows])
        pair = associative.get(number) or tuple(int(areas[end][0]) for end in ends)
        feature = ("associative memory, " if number in associative else "") + ("R-STDP" if mapping.rewarded else "STDP")
        window = f"window {mapping.window}"
        yield _feature(_mapping(network, *pair), feature, ", ".join([window, *parameters]))


def _plasticity(network: Network, mapping: PlasticMapping) -> list[str]:
    """The parameters of a plastic mapping that have no default."""
    parts = {
        "no reward, so weights stay": mapping.rewarded and not mapping.rewards,
        f"reward {_modulators(network, mapping.rewards)}": bool(mapping.rewards),
        f"eligibility decay {mapping.eligibility_decay} bursts": bool(mapping.eligibility_decay),
        f"eta {mapping.eta:g}": mapping.eta != 1,
        f"weights up to {mapping.max_weight}": mapping.max_weight is not None,
        f"learning rate {_modulators(network, mapping.learning_rates)}": bool(mapping.learning_rates),
        "frozen": mapping.frozen,
    }
    return [text for text, stated in parts.items() if stated]


class DriverCounter:
    """Counts the bursts in which the driver of each modulator fired."""

    def __init__(self, network: Network) -> None:
        self._network = network
        drivers = [one.driver for one in network.features.modulators]
        self._drivers: npt.NDArray[np.int64] = np.array(sorted(set(drivers)), np.int64)
        self._counts = dict.fromkeys(drivers, 0)

    def add(self, recording: Recording) -> None:
        """Count a recording that holds fired lists."""
        if not len(self._drivers):
            return
        own = recording.fired_ids < self._network.neuron_count
        areas = self._network.neurons.cortical_areas[recording.fired_ids[own]]
        bursts = np.repeat(recording.bursts, recording.fired_counts)[own]
        for driver in self._drivers.tolist():
            self._counts[driver] += len(np.unique(bursts[areas == driver]))

    def values(self) -> list[dict[str, Any]]:
        """Name and kind of each modulator, and in how many bursts its driver fired."""
        return [
            {"modulator": one.name, "kind": one.kind.value, "bursts": self._counts[one.driver]}
            for one in self._network.features.modulators
        ]


def feature_values(network: Network, drivers: DriverCounter, end: FeatureState | None) -> dict[str, Any]:
    """Which features a network uses, and what they did up to the state ``end``."""
    return {
        "used": used_features(network),
        "modulators": drivers.values(),
        "leaks": [] if end is None else _leaks(network, end),
        "memory": None if end is None else _memories(network, end),
    }


def _leaks(network: Network, end: FeatureState) -> list[dict[str, Any]]:
    """Range of the leak at the end, of every area with a homeostat."""
    areas, found = network.neurons.cortical_areas, []
    for index, area in sorted(network.features.areas.items()):
        leaks = end.leak_coefficients[: len(areas)][areas == index]
        if area.homeostat is not None and len(leaks):
            least, most = float(leaks.min()), float(leaks.max())
            found.append({"area": _area(network, index), "least": least, "most": most})
    return found


def _memories(network: Network, end: FeatureState) -> dict[str, Any] | None:
    """Memories formed, lost and kept, by all memory areas together and by each; synapses that associations made."""
    memory, made = end.memory, end.made
    areas = [index for index, area in sorted(network.features.areas.items()) if area.memory is not None]
    if not areas and not network.features.associative:
        return None
    formed = memory.next_id - FIRST_MEMORY_ID if areas else 0
    return {
        "formed": formed,
        "lost": formed - len(memory.ids),
        "long_term": int(memory.longterm.sum()),
        "twins": len(memory.twin_areas),
        "synapses_made": len(made.sources) if network.features.associative else None,
        "areas": [
            {
                "area": _area(network, index),
                "live": int((memory.areas == index).sum()),
                "long_term": int(memory.longterm[memory.areas == index].sum()),
            }
            for index in areas
        ],
    }


def feature_lines(values: dict[str, Any], *, every: bool) -> list[str]:
    """The features and what they did, a line each."""
    used = values["used"]
    lines = [feature_line(one) for one in (used if every else used[:MOST_LINES])]
    if len(lines) < len(used):
        lines.append(f"{'feature':<11}and {len(used) - len(lines)} more (--all)")
    did = [
        f"{one['modulator']} ({one['kind']}): its driver fired in {one['bursts']} bursts"
        for one in values["modulators"]
    ]
    did += [f"area {one['area']}: leak {one['least']:g}...{one['most']:g} at the end" for one in values["leaks"]]
    memory = values["memory"]
    if memory is not None:
        did += _memory_lines(memory)
    shown = did if every else did[:MOST_LINES]
    more = [f"and {len(did) - len(shown)} more (--all)"] if len(shown) < len(did) else []
    return lines + [f"{'did':<11}{one}" for one in (*shown, *more)]


def feature_line(feature: Feature) -> str:
    """One feature on a line of its own."""
    parameters = f": {feature['parameters']}" if feature["parameters"] else ""
    return f"{'feature':<11}{feature['where']}: {feature['feature']}{parameters}"


def _memory_lines(memory: dict[str, Any]) -> list[str]:
    """What memory areas and associations did."""
    lines = []
    if memory["areas"]:
        lines.append(
            f"memories: {memory['formed']} formed, {memory['lost']} lost, {memory['long_term']} long-term, "
            f"{memory['twins']} twins; each injected 2 bursts after its pattern (the released engine: 1 or 2)"
        )
        lines += [
            f"area {one['area']}: live memories {one['live']}, long-term {one['long_term']}" for one in memory["areas"]
        ]
    if memory["synapses_made"] is not None:
        lines.append(f"associations: {memory['synapses_made']} synapses that the run made are there at the end")
    return lines
