"""How parameters and state of neurons lie on a device: as columns, or in one record per neuron.

Columns of 16 bits take 8 if no value can exceed 255. If most candidates sleep (``Variant.sleeps``), the parameters that
only the others read form a record. As columns, each would cost a sector of memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.network.schema import NEURON_FIELDS, UNLIMITED_FIRES, Parameters

PARAMETERS: Mapping[str, np.dtype[Any]] = {
    name: np.dtype(np.uint8 if NEURON_FIELDS.get(name) is np.bool_ else NEURON_FIELDS.get(name, np.float32))
    for name in Parameters._fields
}
"""Per-neuron parameters of the rule, with their dtypes on a device; ``decays`` is not a column of the network."""

ALWAYS_READ = frozenset({"decays"})
"""Parameters that every candidate needs."""
_WORD, _NARROW = 32, 255


def uniform_dtype(name: str) -> np.dtype[Any]:
    """Dtype of a parameter that is one value for all neurons."""
    return PARAMETERS[name] if PARAMETERS[name].kind == "f" else np.dtype(np.int32)


def column_dtype(name: str, narrow: frozenset[str]) -> np.dtype[Any]:
    """Dtype of a parameter's column; columns named in ``narrow`` take 8 bits."""
    return np.dtype(np.uint8) if name in narrow else PARAMETERS[name]


@dataclass(frozen=True)
class Place:
    """Place of a parameter in a record: ``bits`` bits of a word, from ``shift`` on."""

    word: int
    shift: int
    bits: int


@dataclass(frozen=True)
class Record:
    """Words of a neuron's record, a power of two so that it crosses no sector, and the places of its parameters."""

    words: int
    places: Mapping[str, Place]

    @property
    def tells_sleepers(self) -> bool:
        """Whether the record has a threshold, so that NaN in its place can say that a neuron sleeps."""
        return "thresholds" in self.places

    def packed(self, columns: Mapping[str, npt.NDArray[np.generic]]) -> npt.NDArray[np.uint32]:
        """The records (words N,) of neurons with these ``columns`` (N,)."""
        length = len(next(iter(columns.values())))
        records = np.zeros((length, self.words), np.uint32)
        for name, place in self.places.items():
            column = columns[name]
            word = column.view(np.uint32) if column.dtype == np.float32 else column.astype(np.uint32)
            records[:, place.word] |= word << np.uint32(place.shift)
        return records.ravel()


NO_RECORD = Record(0, {})


def record_of(uniform: frozenset[str], narrow: frozenset[str]) -> Record:
    """The record of all parameters but ``uniform`` ones and ``ALWAYS_READ``; none if that is one alone."""
    kept = [name for name in PARAMETERS if name not in uniform | ALWAYS_READ]
    if len(kept) < 2:
        return NO_RECORD
    places, word, shift = {}, 0, 0
    for name in sorted(kept, key=lambda name: -column_dtype(name, narrow).itemsize):
        bits = 8 * column_dtype(name, narrow).itemsize
        places[name] = Place(word, shift, bits)
        word, shift = (word, shift + bits) if shift + bits < _WORD else (word + 1, 0)
    return Record(1 << (word + (shift > 0) - 1).bit_length(), places)


def narrow_columns(
    parameters: Parameters, countdowns: npt.NDArray[np.uint16], counts: npt.NDArray[np.uint16], trains: bool
) -> frozenset[str]:
    """``Variant.narrow`` for runs that start with these ``countdowns`` and ``counts``.

    A countdown starts at no more than refractory and snooze period together. No count exceeds a finite limit, except
    that a spike train counts once more before it ends.
    """
    columns = parameters._asdict()
    bounds = {name: _largest(columns[name]) for name, dtype in PARAMETERS.items() if dtype == np.uint16}
    longest = bounds["refractory_periods"] + bounds["snooze_periods"]
    finite = bool(parameters.consecutive_fire_limits.all())
    most = bounds["consecutive_fire_limits"] if finite else UNLIMITED_FIRES
    bounds |= {"countdowns": max(longest, _largest(countdowns)), "counts": max(most, _largest(counts) + trains)}
    return frozenset(name for name, bound in bounds.items() if bound <= _NARROW)


def _largest(column: npt.NDArray[np.uint16]) -> int:
    return int(column.max(initial=0))
