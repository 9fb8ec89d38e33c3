"""The columns of the neuron and the synapse table: the one list from which tables, files and kernel parameters follow.

Names are those of the recorded traces. A column that a file does not have takes its default; one that is not listed
here is an error. New columns go to the end of their table: files and digests have the columns in this order.
"""

# ruff: noqa: RUF009  `_column` makes a dataclass field, as `dataclasses.field` does

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from burstproof.errors import NetworkError, refuse_first

NO_LIMIT = np.float32(3.4028235e38)
"""Threshold limit that stands for *none* (the largest float32)."""

UNLIMITED_FIRES = 65535
"""Consecutive-fire limit that, like 0, stands for *unlimited*."""

Bools = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]
Shorts = npt.NDArray[np.uint16]
Words = npt.NDArray[np.uint32]
Integers = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class ColumnSpec:
    """One column.

    Attributes
    ----------
    name : str
    dtype : type
    default : value of ``dtype``, or None
        ``None``: the column cannot be absent.
    meaning : str
        What it holds, with its unit.
    state : bool
        Whether bursts change it.
    width : int
        Numbers per row.
    least : int or None
        Smallest value that a rule admits, where it is not that of ``dtype``.
    since : int
        Version of this list that brought it: a digest leaves out a column above 1 that holds its default throughout.
    """

    name: str
    dtype: type[np.generic]
    default: float | None
    meaning: str
    state: bool = False
    width: int = 1
    since: int = 1
    least: int | None = None


def _column(
    dtype: type[np.generic],
    default: float | None,
    meaning: str,
    *,
    state: bool = False,
    width: int = 1,
    since: int = 1,
    least: int | None = None,
) -> Any:
    """A field of a table that is described by a ``ColumnSpec``."""
    return dataclasses.field(metadata={"spec": (dtype, default, meaning, state, width, since, least)})


@dataclass(frozen=True, eq=False)
class NeuronTable:
    """Structure of arrays, one row per neuron; the row index is the neuron id (N rows).

    Every column is read-only, (N,) or (N, width); a column of one repeated value may be a zero-stride view.
    """

    membrane_potentials: Floats = _column(np.float32, 0.0, "potential v", state=True)
    thresholds: Floats = _column(np.float32, 1.0, "firing threshold, in units of v")
    threshold_limits: Floats = _column(np.float32, float(NO_LIMIT), "upper end of the firing window, in units of v")
    leak_coefficients: Floats = _column(np.float32, 0.0, "leak: v becomes v (1 - leak)")
    resting_potentials: Floats = _column(np.float32, 0.0, "stored, used by no rule")
    neuron_types: Integers = _column(np.int32, 0, "stored, used by no rule")
    refractory_periods: Shorts = _column(np.uint16, 0, "bursts skipped after a fire")
    refractory_countdowns: Shorts = _column(np.uint16, 0, "bursts that are still to be skipped", state=True)
    excitabilities: Floats = _column(np.float32, 1.0, "probability to fire in the window")
    cortical_areas: Words = _column(np.uint32, 7, "index of the area")
    coordinates: Words = _column(np.uint32, 0, "voxel x, y, z inside the area", width=3)
    valid_mask: Bools = _column(np.bool_, True, "whether the neuron takes part")
    consecutive_fire_limits: Shorts = _column(np.uint16, UNLIMITED_FIRES, "fires in a row after which it pauses")
    consecutive_fire_counts: Shorts = _column(np.uint16, 0, "fires in a row so far", state=True)
    snooze_periods: Shorts = _column(np.uint16, 0, "bursts added to the refractory period at the fire limit")
    mp_charge_accumulation: Bools = _column(np.bool_, True, "whether v lasts until the neuron fires")

    @classmethod
    def build(cls, count: int, **columns: npt.ArrayLike) -> NeuronTable:
        """A table of ``count`` neurons; absent columns take the engine's defaults, scalars repeat.

        Raises
        ------
        NetworkError
            Unknown column, a value that does not fit its dtype, or a column whose length is not ``count``.
        """
        return cls(**_columns("neurons", NEURONS, count, columns))

    def __len__(self) -> int:
        return len(self.thresholds)


@dataclass(frozen=True, eq=False)
class SynapseTable:
    """Structure of arrays, one row per synapse, in the order of its source file (S rows).

    ``weights`` and ``postsynaptic_potentials`` may be fractional or negative.
    """

    source_neurons: Words = _column(np.uint32, None, "id of the neuron that sends")
    target_neurons: Words = _column(np.uint32, None, "id of the neuron that receives")
    weights: Floats = _column(np.float32, 1.0, "weight", state=True)
    postsynaptic_potentials: Floats = _column(np.float32, 1.0, "psp: a contribution is weight x psp, in units of v")
    types: Bytes = _column(np.uint8, 0, "0 excitatory, otherwise inhibitory")
    delay_bursts: Bytes = _column(np.uint8, 1, "bursts from firing to arrival, 1...255", least=1)
    valid_mask: Bools = _column(np.bool_, True, "whether the synapse takes part")
    edge_flags: Bytes = _column(np.uint8, 0, "stored, used by no rule")
    eligibility_traces: Floats = _column(np.float32, 0.0, "last change of the weight", state=True)
    rules: Shorts = _column(np.uint16, 0, "features of the rule that made it: position + 1, 0 none", since=2)

    @classmethod
    def build(
        cls, source_neurons: npt.ArrayLike, target_neurons: npt.ArrayLike, **columns: npt.ArrayLike
    ) -> SynapseTable:
        """A table of the given ends; absent columns take defaults (weight 1, psp 1, delay 1), scalars repeat.

        Raises
        ------
        NetworkError
            Unknown column, a value that does not fit its dtype, or columns of different lengths.
        """
        given = {"source_neurons": source_neurons, "target_neurons": target_neurons, **columns}
        return cls(**_columns("synapses", SYNAPSES, np.size(source_neurons), given))

    def __len__(self) -> int:
        return len(self.source_neurons)


def check_tables(neurons: NeuronTable, synapses: SynapseTable) -> None:
    """Refuse values with which no engine can run.

    Raises
    ------
    NetworkError
        A delay of 0 of a valid synapse; NaN in a column of the neurons that a rule reads.
    """
    delays = synapses.delay_bursts
    if (delays if any(delays.strides) else delays[:1]).min(initial=1) == 0:
        none = (delays == 0) & synapses.valid_mask
        refuse_first(NetworkError, none, delays, "a delay of 0", "synapses.delay_bursts", "1...255")
    for name in _NUMBERS:
        column = getattr(neurons, name)
        missing = np.isnan(column if any(column.strides) else column[:1])
        if missing.any():
            raise NetworkError(
                "a neuron has NaN",
                where=f"neurons.{name}[{int(np.argmax(missing))}]",
                got="nan",
                allowed="a number; potentials may be infinite",
                cure="Correct the column",
            )


def _specs(table: type[NeuronTable] | type[SynapseTable]) -> tuple[ColumnSpec, ...]:
    return tuple(ColumnSpec(item.name, *item.metadata["spec"]) for item in dataclasses.fields(table))


NEURONS, SYNAPSES = _specs(NeuronTable), _specs(SynapseTable)
"""Columns of the two tables, in order."""

NEURON_FIELDS: Mapping[str, type[np.generic]] = {column.name: column.dtype for column in NEURONS}
"""Columns of the neuron table and their dtypes."""

SYNAPSE_FIELDS: Mapping[str, type[np.generic]] = {column.name: column.dtype for column in SYNAPSES}
"""Columns of the synapse table and their dtypes."""

_NUMBERS = tuple(c.name for c in NEURONS if c.dtype is np.float32 and c.name != "resting_potentials")
"""Columns that must not hold NaN; resting potentials are read by no rule."""

STATE_FIELDS = tuple(column.name for column in NEURONS if column.state)
"""Columns of the neuron table that bursts change."""

LEARNT_FIELDS = tuple(column.name for column in SYNAPSES if column.state)
"""Columns of the synapse table that bursts change."""


class Parameters(NamedTuple):
    """What the rule of a burst reads of each neuron, (N,) each: the one list of the engines' kernel parameters.

    A parameter is the column of its name; ``decays`` alone is made from one (``engine/layout.py``).
    """

    thresholds: Floats
    threshold_limits: Floats
    decays: Floats
    refractory_periods: Shorts
    consecutive_fire_limits: Shorts
    snooze_periods: Shorts
    excitabilities: Floats
    mp_charge_accumulation: Bools

    @classmethod
    def of(cls, column: Callable[[str], npt.NDArray[Any]]) -> Parameters:
        """The parameters whose arrays ``column`` gives by name."""
        return cls(*map(column, cls._fields))


def _columns(
    table: str, schema: Sequence[ColumnSpec], count: int, given: Mapping[str, npt.ArrayLike]
) -> dict[str, npt.NDArray[Any]]:
    """All columns of a table of ``count`` rows, absent ones with their defaults."""
    unknown = set(given) - {column.name for column in schema}
    if unknown:
        allowed = ", ".join(column.name for column in schema)
        near = get_close_matches(min(unknown), [column.name for column in schema], 1)
        cure = f"Did you mean {near[0]}?" if near else None
        raise NetworkError(f"unknown column of the {table}", got=sorted(unknown), allowed=allowed, cure=cure)
    return {column.name: _array(table, column, given.get(column.name, column.default), count) for column in schema}


def _array(table: str, column: ColumnSpec, value: npt.ArrayLike | None, count: int) -> npt.NDArray[Any]:
    """``value`` as a read-only array of ``count`` rows; a scalar becomes a zero-stride view."""
    where, shape = f"{table}.{column.name}", (count,) if column.width == 1 else (count, column.width)
    array = _fitted(where, plain_array(where, value), np.dtype(column.dtype), column.least)
    if array.ndim == 0:
        array = np.broadcast_to(array, shape)
    if array.shape != shape:
        cure = "Give one value for all rows, or one for each; count= must be their number"
        raise NetworkError("column has the wrong shape", where=where, got=array.shape, allowed=str(shape), cure=cure)
    if array.flags.writeable:
        array = array.view()
        array.flags.writeable = False
    return array


def plain_array(where: str, value: Any) -> npt.NDArray[Any]:
    """``value`` as an array.

    Raises
    ------
    NetworkError
        Rows of different lengths, or masked entries: an array would show what is below the mask.
    """
    if np.ma.is_masked(value):
        raise NetworkError("masked entries", where=where, got=value, cure="Fill them, or leave these rows out")
    try:
        return np.asarray(value)
    except ValueError:
        allowed = "a scalar, or rows of equal length"
        raise NetworkError("rows of different lengths", where=where, got=value, allowed=allowed) from None


def _fitted(where: str, values: npt.NDArray[Any], dtype: np.dtype[Any], least: int | None) -> npt.NDArray[Any]:
    """``values`` as ``dtype``; nothing wraps, is cut to a whole number, or becomes infinite.

    ``least`` only says what is allowed: a row that is not valid may hold less (``check_tables``).
    """
    if values.dtype == dtype:
        return values
    allowed = "numbers"
    wrong = np.ones(values.shape, np.bool_)
    if values.dtype.kind in "biuf":
        with np.errstate(over="ignore", invalid="ignore"):
            fitted = values.astype(dtype)
            if dtype.kind == "f":
                allowed = f"what {dtype.name} holds"
                wrong = np.isfinite(values) & ~np.isfinite(fitted)
            else:
                highest, lowest = (1, 0) if dtype.kind == "b" else (np.iinfo(dtype).max, np.iinfo(dtype).min)
                first = lowest if least is None else least
                allowed = "true or false" if dtype.kind == "b" else f"whole numbers, {first}...{highest}"
                wrong = ~((values >= lowest) & (values <= highest) & (np.floor(values) == values))
        if not wrong.any():
            return fitted
    row = int(np.argmax(wrong)) if values.ndim else 0
    got = values.reshape(-1)[row : row + 1].tolist()
    raise NetworkError(
        f"a value that does not fit {dtype.name}",
        where=f"{where}[{row // max(1, wrong[:1].size)}]" if values.ndim else where,
        got=got[0] if got else values.dtype.name,
        allowed=allowed,
        cure="Correct the value, or pass the column with that dtype",
    )
