"""Conversion of a stimulus to the units of the sums: a common one in one compiled pass, any other in NumPy."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from burstproof.engine.options import EngineOptions
from burstproof.engine.rules import Compiled, Compiler
from burstproof.engine.state import Stimulus
from burstproof.engine.stimulus import check_stimulus
from burstproof.network.fixed_point import FixedPoint
from burstproof.network.model import Network

_LAST_ID = np.iinfo(np.uint32).max

SCALE, CLAMP, LARGEST, FRACTIONS, WIDE, NEURONS = 0, 1, 2, 3, 4, 5
"""Indices of ``Limits.numbers``: 2^k, the largest integer, the largest amount, 1 if fractions are allowed, 1 if sums
have 64 bits, and the number of neurons."""

_UNSUITED, _ALL_POSITIVE, _SOME_LOW = 0, 1, 2
"""Results of the compiled pass: not a common stimulus; all amounts are above 0; some are not."""


class PackedStimulus(NamedTuple):
    """A checked stimulus in the units of the accumulator.

    Attributes
    ----------
    ids : uint32 (Q,)
        Neurons, ascending, each once.
    amounts : int32 or int64 (Q,)
        Sum of the quantised amounts of each neuron, in units of 2^-k.
    forced : uint32 (R,)
        Neurons forced to fire, ascending, each once.
    clamped : bool
        Whether an amount or a sum was clamped.
    may_cancel : bool
        Whether an amount is 0 or negative, so that the sum of a candidate may become 0.
    forced_potentials : float32 (R,) or None
        Potentials of the forced firings; ``None``: all have ``FORCED_POTENTIAL``.
    """

    ids: npt.NDArray[np.uint32]
    amounts: npt.NDArray[Any]
    forced: npt.NDArray[np.uint32]
    clamped: bool
    may_cancel: bool
    forced_potentials: npt.NDArray[np.float32] | None = None


class Limits(NamedTuple):
    """Limits of a stimulus: ``numbers`` float64 (6,); ``valid`` bool (N,), or (0,) if all neurons are valid."""

    numbers: npt.NDArray[np.float64]
    valid: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, network: Network, options: EngineOptions, point: FixedPoint) -> Limits:
        """The limits of an engine over ``network`` whose sums have the scale of ``point``."""
        numbers = np.empty(6)
        numbers[SCALE], numbers[CLAMP] = point.scale, point.clamp_float
        numbers[LARGEST], numbers[FRACTIONS] = options.max_stimulus, options.fractional_stimulus
        numbers[WIDE], numbers[NEURONS] = point.bits != 32, network.neuron_count
        valid = network.neurons.valid_mask
        return cls(numbers, np.empty(0, np.bool_) if valid.all() else np.ascontiguousarray(valid))


class Packer:
    """Packs the stimuli of an engine over ``network`` whose sums have the scale of ``point``."""

    def __init__(self, network: Network, options: EngineOptions, point: FixedPoint) -> None:
        self._network, self._options, self._point = network, options, point
        self._limits, self._dtype = Limits.of(network, options, point), point.dtype

    def __call__(self, stimulus: Stimulus) -> PackedStimulus:
        """Check ``stimulus`` as ``check_stimulus`` does, and quantise it.

        Each amount is quantised separately. The integers of a neuron are added, and the sum is clamped like one
        contribution, because the accumulator has room for one.

        Raises
        ------
        StimulusError
            A stimulus that no engine takes.
        """
        return self._usual(stimulus) or self._usual(_in_order(stimulus)) or self._any(stimulus)

    def _usual(self, stimulus: Stimulus | None) -> PackedStimulus | None:
        """Pack a common stimulus: uint32 ids, ascending, each once, and float32 amounts; ``None`` for any other.

        This is the fast path: a closed loop packs a stimulus before every burst. It raises nothing.
        """
        if not isinstance(stimulus, Stimulus):
            return None
        ids, amounts, forced, early = stimulus.ids, stimulus.amounts, stimulus.forced, stimulus.memories_early
        if {type(ids), type(amounts), type(forced), type(early)} != {np.ndarray} or early.shape != (0,):
            return None
        units = np.empty(ids.shape, self._dtype)
        try:
            found = pack_usual()(ids, amounts, forced, *self._limits, units)
        except TypeError:  # other types than it is compiled for
            return None
        if found == _UNSUITED:
            return None
        return PackedStimulus(ids.copy(), units, forced.copy(), False, found != _ALL_POSITIVE)

    def _any(self, stimulus: Stimulus) -> PackedStimulus:
        ids, places, amounts, forced = check_stimulus(stimulus, self._network, self._options)
        if len(forced):
            forced = np.unique(forced)
        if not len(ids):
            return PackedStimulus(ids, np.empty(0, self._dtype), forced, False, False)
        integers, clamped = self._point.quantise(amounts)
        sums, outside = self._point.add_up(integers, places, len(ids))
        may_cancel = bool((integers <= 0).any())
        return PackedStimulus(ids, sums.astype(self._dtype), forced, clamped or outside, may_cancel)


def _in_order(stimulus: Stimulus) -> Stimulus | None:
    """``stimulus`` with uint32 ids in ascending order; ``None`` if its arrays cannot be sorted so."""
    if not isinstance(stimulus, Stimulus):
        return None
    ids, amounts, forced = stimulus.ids, stimulus.amounts, stimulus.forced
    for given in (ids, forced):
        if not isinstance(given, np.ndarray) or given.ndim != 1 or given.dtype.kind not in "iu":
            return None
        if given.size and not 0 <= given.min() <= given.max() <= _LAST_ID:
            return None
    if not isinstance(amounts, np.ndarray) or amounts.shape != ids.shape:
        return None
    order = np.argsort(ids, kind="stable")
    in_order = np.sort(forced).astype(np.uint32)
    return Stimulus(ids[order].astype(np.uint32), amounts[order], in_order, stimulus.memories_early)


class StimulusChecks(NamedTuple):
    """Compiled checks of ids, uint32 (Q,), and amounts, float32 (Q,).

    ``ascend(ids, limits, valid)``: whether all are valid neurons, ascending, each once. ``within(amounts, limits)``:
    whether all are allowed amounts that are not clamped.
    """

    ascend: Compiled
    within: Compiled


def make_checks(compiler: Compiler) -> StimulusChecks:
    """The checks, compiled by ``compiler``. Their loops have no early exit, so they are vectorised."""

    @compiler
    def ascend(ids: Any, limits: Any, valid: Any) -> Any:
        count = len(ids)
        if count == 0:
            return True
        wrong = False
        for entry in range(1, count):
            wrong |= ids[entry] <= ids[entry - 1]
        if wrong or ids[count - 1] >= limits[NEURONS]:
            return False
        if len(valid):
            for entry in range(count):
                wrong |= not valid[ids[entry]]
        return not wrong

    @compiler
    def within(amounts: Any, limits: Any) -> Any:
        """Compares magnitudes by their bits, which have the same order, with NaN last."""
        bits, most, fractions = amounts.view(np.uint32), np.uint32(0), False
        for entry in range(len(bits)):
            most = max(most, bits[entry] & np.uint32(0x7FFFFFFF))
        if limits[FRACTIONS] == 0.0:
            for entry in range(len(amounts)):
                fractions |= np.rint(amounts[entry]) != amounts[entry]
        largest = np.float64(np.uint32(most).view(np.float32))
        return not fractions and largest <= limits[LARGEST] and np.rint(largest * limits[SCALE]) <= limits[CLAMP]

    return StimulusChecks(ascend, within)


@cache
def pack_usual() -> Compiled:
    """``pack(ids, amounts, forced, limits, valid, units)``: check a common stimulus and fill ``units``.

    Arrays are contiguous: ids uint32, amounts float32, ``units`` int32 or int64 (Q,). Others raise a ``TypeError``.
    """
    from numba import boolean, float32, float64, int32, int64, types, uint32

    from burstproof.engine.compiler import compiler, inner_compiler, names_of
    from burstproof.engine.disk import keep_on_disk

    def read(dtype: Any) -> Any:
        return types.Array(dtype, 1, "C", readonly=True)

    with names_of("packing"):
        pack: Any = compiler(_make_pack(make_checks(inner_compiler)))
    keep_on_disk(pack, "packing")
    for units in (int32, int64):
        pack.compile((*map(read, (uint32, float32, uint32, float64, boolean)), units[::1]))
    pack.disable_compile()
    return pack  # type: ignore[no-any-return]


def _make_pack(checks: StimulusChecks) -> Compiled:
    ascend, within = checks

    def pack(ids: Any, amounts: Any, forced: Any, limits: Any, valid: Any, units: Any) -> int:
        if len(ids) != len(amounts):
            return _UNSUITED
        if not ascend(ids, limits, valid) or not ascend(forced, limits, valid) or not within(amounts, limits):
            return _UNSUITED
        scale, least = limits[SCALE], np.int64(1)
        for entry in range(len(ids)):
            whole = np.int64(np.rint(np.float64(amounts[entry]) * scale))
            least = min(least, whole)
            units[entry] = whole
        return _ALL_POSITIVE if least == 1 else _SOME_LOW

    return pack
