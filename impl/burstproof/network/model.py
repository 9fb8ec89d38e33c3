"""Network: neurons, synapses and areas as plain arrays; every source yields one, every engine takes one."""

from __future__ import annotations

import base64
import dataclasses
import difflib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.errors import NetworkError
from burstproof.network.features import NO_FEATURES, Features
from burstproof.network.fixed_point import FixedPoint
from burstproof.network.plasticity import PlasticMapping, pair_mappings
from burstproof.network.schema import NeuronTable, SynapseTable, check_tables, plain_array

POWER_AREA_INDEX = 1
"""Cortical index of the power neuron."""

FIRST_OWN_AREA_INDEX = 7
"""Cortical indices 0...6 belong to the core areas."""

LARGEST_COUNT = (1 << 32) - 1
"""Most neurons that ids of 32 bits can tell apart."""

_AREAS_SHOWN = 12

__all__ = ["FIRST_OWN_AREA_INDEX", "POWER_AREA_INDEX", "Area", "Network", "NeuronTable", "RowOrder", "SynapseTable"]

Members = range | slice | npt.ArrayLike
"""Neurons of an area: a range, a slice, ids or a mask."""


@dataclass(frozen=True)
class Area:
    """A cortical area.

    ``cortical_id`` is the base64 text of the 8 id bytes, as in the recordings. A flag that is ``None`` is not
    registered: SEMANTICS section 2 treats a network without any registered flag differently.
    """

    index: int
    cortical_id: str
    name: str = ""
    dimensions: tuple[int, int, int] = (1, 1, 1)
    neurons_per_voxel: int = 1
    psp_uniform_distribution: bool | None = None
    mp_driven_psp: bool | None = None


@dataclass(frozen=True, eq=False)
class RowOrder:
    """Synapses grouped by source (CSR): row s is ``order[offsets[s]:offsets[s + 1]]``.

    ``offsets`` (N + 1,) int64; ``order`` (S,) rows of the synapse table, stable within a source, or ``None`` when
    the table is already grouped by ascending source (then the row is ``offsets[s]:offsets[s + 1]`` itself).
    """

    offsets: npt.NDArray[np.int64]
    order: npt.NDArray[np.int64] | None


@dataclass(frozen=True, eq=False)
class Network:
    """A network at rest between two bursts: tables, areas and run counters.

    ``burst_count`` c means that the next burst is c + 1. ``power_amount`` goes to the power neuron in each burst.
    ``plastic_mappings`` are the rules as stated; ``plastic_pairs`` is what they make learn. ``fixed_point`` is the
    scale of an earlier run that is to be kept, or ``None``: then it follows from the network. ``features`` is what a
    genome adds to leaky integrate-and-fire (FEATURES.md).
    """

    neurons: NeuronTable
    synapses: SynapseTable
    areas: tuple[Area, ...] = ()
    burst_count: int = 0
    power_amount: float = 1.0
    plastic_mappings: tuple[PlasticMapping, ...] = ()
    provenance: Mapping[str, str] = field(default_factory=dict)
    fixed_point: FixedPoint | None = None
    features: Features = NO_FEATURES

    def __post_init__(self) -> None:
        neurons = len(self.neurons)
        for name in ("source_neurons", "target_neurons"):
            ends = getattr(self.synapses, name)
            if len(ends) and int(ends.max()) >= neurons:
                row = int(np.argmax(ends >= neurons))
                raise NetworkError(
                    "a synapse points outside the network",
                    where=f"synapses.{name}[{row}]",
                    got=int(ends[row]),
                    allowed=f"0...{neurons - 1}",
                )

    @classmethod
    def from_arrays(
        cls,
        neurons: Mapping[str, npt.ArrayLike],
        synapses: Mapping[str, npt.ArrayLike],
        areas: Mapping[str, Members] | None = None,
        *,
        count: int | None = None,
        plastic_mappings: tuple[PlasticMapping, ...] = (),
    ) -> Network:
        """A network of your own arrays, which it may share: do not change them while it is in use.

        Parameters
        ----------
        neurons : mapping of str to scalar or (N,) array
            Columns of ``NEURON_FIELDS`` by name; a scalar holds for all neurons, an absent column takes its default.
        synapses : mapping of str to scalar or (S,) array
            Columns of ``SYNAPSE_FIELDS`` by name, ``source_neurons`` and ``target_neurons`` among them.
        areas : mapping of str to range, slice, mask (N,), ids or mapping, optional
            Neurons of each area by its name. Areas get the cortical indices 7, 8, ... in this order; neurons in none
            of them get the index after the last. A mapping holds them as ``neurons``, beside fields of ``Area``:
            ``psp_uniform_distribution`` and ``mp_driven_psp`` register the flags, which otherwise are not: then no
            contribution is divided.
        count : int, optional
            Number of neurons N; needed only where every neuron column is a scalar.
        plastic_mappings : tuple of PlasticMapping, optional

        Raises
        ------
        NetworkError
            An unknown column; a value that does not fit its column's dtype, by row; a delay of 0; NaN in a column of
            the neurons; columns of different lengths; a synapse that points outside the network; areas that overlap, or
            reach outside the network; a property of an area, or a plastic mapping, that cannot be.
        """
        for where, given in (("neurons", neurons), ("synapses", synapses), ("areas", {} if areas is None else areas)):
            if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
                raise NetworkError("not values by name", where=where, got=given, allowed="a mapping with names as keys")
        total = _neuron_count(neurons) if count is None else count
        if not _is_whole(total, 0, LARGEST_COUNT):
            raise NetworkError("not a number of neurons", where="count", got=total, allowed=f"0...{LARGEST_COUNT}")
        total = int(total)
        missing = [name for name in ("source_neurons", "target_neurons") if name not in synapses]
        if missing:
            raise NetworkError("a synapse column is missing", where="synapses", got=missing, cure="Pass it")
        columns = dict(neurons)
        named: tuple[Area, ...] = ()
        if areas is not None:
            if "cortical_areas" in columns:
                raise NetworkError(
                    "areas are given twice", where="neurons.cortical_areas", cure="Leave out one of them"
                )
            columns["cortical_areas"], named = _areas_of(areas, total)
        tables = NeuronTable.build(total, **columns), SynapseTable.build(**synapses)
        check_tables(*tables)
        return cls(*tables, areas=named, plastic_mappings=_mappings_of(plastic_mappings, len(tables[1])))

    def __repr__(self) -> str:
        learning = f"{len(self.plastic_mappings)} plastic mappings, " if self.plastic_mappings else ""
        return (
            f"Network({self.neuron_count} neurons, {self.synapse_count} synapses, {len(self.areas)} areas, {learning}"
            f"burst count {self.burst_count})"
        )

    @property
    def neuron_count(self) -> int:
        """Number of neurons N."""
        return len(self.neurons)

    @property
    def synapse_count(self) -> int:
        """Number of synapses S, valid or not."""
        return len(self.synapses)

    def ids_of(self, area: str, where: str = "area") -> npt.NDArray[np.uint32]:
        """Valid neurons of the area whose name or cortical id is ``area``, ascending, (n,) uint32.

        Raises
        ------
        NetworkError
            No area, or several, have this name; ``where`` says in the message who asked.
        """
        found = [one.index for one in self.areas if area in (one.cortical_id, one.name)]
        if len(found) != 1:
            raise self._no_area(area, where, len(found))
        return np.flatnonzero((self.neurons.cortical_areas == found[0]) & self.neurons.valid_mask).astype(np.uint32)

    def _no_area(self, name: str, where: str, found: int) -> NetworkError:
        """The error for a name that stands for no area, or for several."""
        names = [area.name or area.cortical_id for area in self.areas]
        if not names:
            return NetworkError("the network names no areas", where=where, got=name, cure="Give the ids of neurons")
        rest = f" and {len(names) - _AREAS_SHOWN} more" if len(names) > _AREAS_SHOWN else ""
        near = difflib.get_close_matches(str(name), names, n=1)
        return NetworkError(
            f"{found} areas have this name" if found else "no such cortical area",
            where=where,
            got=name,
            allowed=f"the id or name of one of: {', '.join(names[:_AREAS_SHOWN])}{rest}",
            cure="Name its id" if found else f"Did you mean {near[0]}?" if near else None,
        )

    @cached_property
    def row_order(self) -> RowOrder:
        """The synapses grouped by source."""
        source = self.synapses.source_neurons
        if bool(np.all(source[1:] >= source[:-1])):
            neurons = np.arange(self.neuron_count + 1, dtype=source.dtype)
            return RowOrder(np.searchsorted(source, neurons), None)
        offsets = np.zeros(self.neuron_count + 1, np.int64)
        np.cumsum(np.bincount(source, minlength=self.neuron_count), out=offsets[1:])
        return RowOrder(offsets, np.argsort(source, kind="stable"))

    @property
    def flags_registered(self) -> bool:
        """Whether any area carries a psp flag; if none does, nothing is divided and nothing is mp-driven."""
        return any(a.psp_uniform_distribution is not None or a.mp_driven_psp is not None for a in self.areas)

    def area_flag(self, flag: str) -> npt.NDArray[np.bool_]:
        """``flag`` (``psp_uniform_distribution`` or ``mp_driven_psp``) of each neuron's area, (N,) bool.

        Areas without the flag count as false.
        """
        highest = int(self.neurons.cortical_areas.max(initial=0))
        table = np.zeros(highest + 1, np.bool_)
        for area in self.areas:
            if area.index <= highest:
                table[area.index] = bool(getattr(area, flag))
        return table[self.neurons.cortical_areas]

    @cached_property
    def plastic_pairs(self) -> tuple[PlasticMapping, ...]:
        """The plastic mappings with every synapse that learns by them (SEMANTICS section 5)."""
        synapses = self.synapses
        ends = synapses.source_neurons, synapses.target_neurons
        return pair_mappings(self.plastic_mappings, self.neurons.cortical_areas, *ends, synapses.valid_mask)

    @cached_property
    def power_neuron(self) -> int | None:
        """Id of the one neuron of the power area (cortical index 1), or ``None``."""
        found = np.flatnonzero(self.neurons.cortical_areas == POWER_AREA_INDEX)
        return int(found[0]) if len(found) else None

    def replace(self, **changes: Any) -> Network:
        """A copy with the named attributes changed; a kept scale belongs to the network as it was and is not taken over
        unless only ``provenance`` or ``burst_count`` change."""
        if not set(changes) <= {"provenance", "burst_count", "fixed_point"}:
            changes = {"fixed_point": None, **changes}
        return dataclasses.replace(self, **changes)


def _neuron_count(columns: Mapping[str, npt.ArrayLike]) -> int:
    """Length of the first neuron column that is no scalar."""
    for name, values in columns.items():
        found = plain_array(f"neurons.{name}", values)
        if found.ndim:
            return len(found)
    raise NetworkError(
        "the number of neurons is not known", where="count", cure="Pass count=, or one column as an array"
    )


def _areas_of(areas: Mapping[str, Members], count: int) -> tuple[npt.NDArray[np.uint32], tuple[Area, ...]]:
    """The cortical index of each neuron, (N,) uint32, and the areas."""
    last = FIRST_OWN_AREA_INDEX + len(areas)
    indexes = np.full(count, last, np.uint32)
    named: list[Area] = []
    for index, (name, given) in enumerate(areas.items(), FIRST_OWN_AREA_INDEX):
        members, properties = _members_of(name, given)
        rows = _rows(name, members, count)
        taken = indexes[rows] != last
        if taken.any():
            neuron = int(rows[np.argmax(taken)])
            other = named[indexes[neuron] - FIRST_OWN_AREA_INDEX].name
            cure = f"Leave neuron {neuron} out of {name!r} or out of {other!r}"
            raise NetworkError("areas overlap", where=f"areas[{name!r}]", got=neuron, cure=cure)
        indexes[rows] = index
        cortical_id = base64.b64encode(f"cown{index:04x}".encode("ascii")).decode("ascii")
        own = {"cortical_id": cortical_id, "neurons_per_voxel": max(1, len(rows)), **properties}
        named.append(Area(index, name=name, **own))
    ids = [area.cortical_id for area in named]
    twice = [area.name for area in named if ids.count(area.cortical_id) > 1] if len(set(ids)) < len(ids) else []
    if twice:
        raise NetworkError("areas with the same cortical id", where="areas", got=twice, cure="Give each its own")
    return indexes, tuple(named)


def _members_of(name: str, given: Any) -> tuple[Any, dict[str, Any]]:
    """Neurons of an area as given, and its properties; a mapping holds both."""
    if not isinstance(given, Mapping):
        return given, {}
    properties = {key: value for key, value in given.items() if key != "neurons"}
    flags = ("psp_uniform_distribution", "mp_driven_psp")
    known = ("cortical_id", "dimensions", "neurons_per_voxel", *flags)
    where, allowed = f"areas[{name!r}]", f"neurons, and any of {', '.join(known)}"
    if "neurons" not in given or not set(properties) <= set(known):
        raise NetworkError("not an area", where=where, got=list(given), allowed=allowed)
    for key, value in properties.items():
        if key in flags and not (value is None or isinstance(value, bool | np.bool_)):
            raise NetworkError("not a flag", where=f"{where}[{key!r}]", got=value, allowed="True, False")
        if key == "cortical_id" and not (isinstance(value, str) and value):
            raise NetworkError("not a cortical id", where=f"{where}[{key!r}]", got=value, allowed="a text")
        if key == "neurons_per_voxel" and not _is_whole(value, 0, LARGEST_COUNT):
            allowed = f"0...{LARGEST_COUNT}"
            raise NetworkError("not a number of neurons", where=f"{where}[{key!r}]", got=value, allowed=allowed)
        if key == "dimensions":
            triple = isinstance(value, tuple | list) and len(value) == 3
            if not triple or not all(_is_whole(one, 0, LARGEST_COUNT) for one in value):
                allowed = f"three whole numbers, 0...{LARGEST_COUNT}"
                raise NetworkError("not dimensions", where=f"{where}[{key!r}]", got=value, allowed=allowed)
            properties[key] = tuple(int(one) for one in value)
    return given["neurons"], {key: bool(v) if isinstance(v, np.bool_) else v for key, v in properties.items()}


def _is_whole(value: object, least: int, most: int) -> bool:
    """Whether ``value`` is a whole number from ``least`` to ``most``."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(least <= value <= most)


def _mappings_of(mappings: Any, synapses: int) -> tuple[PlasticMapping, ...]:
    """Plastic mappings with their rows as (P,) int64, all rows of a table of so many ``synapses``."""
    if not isinstance(mappings, tuple | list) or not all(isinstance(one, PlasticMapping) for one in mappings):
        allowed = "a tuple of PlasticMapping"
        raise NetworkError("not plastic mappings", where="plastic_mappings", got=mappings, allowed=allowed)
    checked = []
    for number, mapping in enumerate(mappings):
        where = f"plastic_mappings[{number}]"
        for key in ("constant", "ltp_multiplier", "ltd_multiplier"):
            value = getattr(mapping, key)
            number_like = isinstance(value, int | float | np.integer | np.floating)
            if not number_like or not math.isfinite(value):
                raise NetworkError("a plastic parameter is not finite", where=f"{where}.{key}", got=value)
        rows = plain_array(f"{where}.synapses", mapping.synapses)
        ids = rows.size == 0 or rows.dtype.kind in "iu"
        if rows.ndim != 1 or not ids or (rows.size and (rows.min() < 0 or rows.max() >= synapses)):
            allowed = f"rows of the synapse table, 0...{synapses - 1}, in one dimension"
            raise NetworkError("not synapses", where=f"{where}.synapses", got=mapping.synapses, allowed=allowed)
        checked.append(dataclasses.replace(mapping, synapses=np.unique(rows.astype(np.int64))))
    return tuple(checked)


def _rows(name: str, members: Members, count: int) -> npt.NDArray[np.int64]:
    """Ids of the neurons that ``members``, a range, a slice, a mask or ids, stands for, each once, (n,) int64."""
    where, allowed = f"areas[{name!r}]", f"a range, a slice, ids in 0...{count - 1} or a mask ({count},)"
    refused = NetworkError("not neurons of the network", where=where, got=members, allowed=allowed)
    if isinstance(members, range) and not all(0 <= end < count for end in (*members[:1], *members[-1:])):
        raise refused
    try:
        rows = np.arange(*members.indices(count)) if isinstance(members, slice) else plain_array(where, members)
    except (TypeError, ValueError):
        raise refused from None
    if rows.dtype == np.bool_ and rows.shape == (count,):
        return np.flatnonzero(rows)
    if rows.ndim != 1 or (rows.size and (rows.dtype.kind not in "iu" or rows.min() < 0 or rows.max() >= count)):
        raise refused
    return np.unique(rows.astype(np.int64))
