"""Checking a Stimulus against a network and its declared bounds; its integers for an engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from burstproof.engine.options import EngineOptions
from burstproof.engine.state import Stimulus, StimulusPlan
from burstproof.errors import InputError, StimulusError, refuse_first
from burstproof.network.fixed_point import FixedPoint
from burstproof.network.model import Network

_LAST_ID = np.iinfo(np.uint32).max

FORCED_POTENTIAL = np.float32(100.0)
"""Potential with which a forced firing joins the fired list (SEMANTICS section 4)."""


@dataclass(frozen=True, eq=False)
class PackedStimulus:
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
        Whether an amount is 0 or negative, so that the sum of a candidate may be 0 because of it.
    forced_potentials : float32 (R,) or None
        Potentials of the forced firings; ``None``: all have ``FORCED_POTENTIAL``.
    """

    ids: npt.NDArray[np.uint32]
    amounts: npt.NDArray[Any]
    forced: npt.NDArray[np.uint32]
    clamped: bool
    may_cancel: bool
    forced_potentials: npt.NDArray[np.float32] | None = None


def coming_bursts(done: int, bursts: int) -> range:
    """Numbers of the ``bursts`` bursts that follow burst ``done``.

    Raises
    ------
    InputError
        Fewer than 0 bursts, or no whole number.
    """
    if not isinstance(bursts, int | np.integer) or isinstance(bursts, bool):
        raise InputError("not a number of bursts", where="run", got=bursts, allowed="a whole number, 0 or more")
    if bursts < 0:
        raise InputError("a number of bursts below 0", where="run", got=bursts, allowed="0 or more")
    return range(done + 1, done + 1 + int(bursts))


def planned(plan: StimulusPlan, coming: range) -> list[int]:
    """Which of the bursts ``coming`` the plan names; takes as long as the shorter of the two."""
    return [b for b in plan if b in coming] if len(plan) < len(coming) else [b for b in coming if b in plan]


def pack_stimulus(
    stimulus: Stimulus, network: Network, options: EngineOptions, fixed_point: FixedPoint
) -> PackedStimulus:
    """Check ``stimulus`` as ``check_stimulus`` does, and quantise it.

    Each amount is quantised on its own, then the integers of one neuron are added, and their sum is clamped as one
    contribution is: the accumulator has room for one stimulus.
    """
    plain = _pack_plain(stimulus, network, options, fixed_point)
    plain = plain or _pack_plain(_in_order(stimulus), network, options, fixed_point)
    if plain is not None:
        return plain
    ids, places, amounts, forced = check_stimulus(stimulus, network, options)
    if len(forced):
        forced = np.unique(forced)
    if not len(ids):
        return PackedStimulus(ids, np.empty(0, fixed_point.dtype), forced, False, False)
    integers, clamped = fixed_point.quantise(amounts)
    sums, outside = fixed_point.add_up(integers, places, len(ids))
    may_cancel = bool((integers <= 0).any())
    return PackedStimulus(ids, sums.astype(fixed_point.dtype), forced, clamped or outside, may_cancel)


def _in_order(stimulus: Stimulus) -> Stimulus | None:
    """``stimulus`` with ids of uint32, ascending; ``None`` if its arrays are not such as can be put in order."""
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


def _pack_plain(
    stimulus: Stimulus | None, network: Network, options: EngineOptions, point: FixedPoint
) -> PackedStimulus | None:
    """The usual stimulus in few steps: uint32 ids, ascending, each once, with float32 amounts; ``None`` for any other.

    Nothing is refused here. A closed loop packs one before every burst.
    """
    if not isinstance(stimulus, Stimulus):
        return None
    ids, amounts, forced, early = stimulus.ids, stimulus.amounts, stimulus.forced, stimulus.memories_early
    if not isinstance(early, np.ndarray) or early.shape != (0,):
        return None
    valid, count = network.neurons.valid_mask, len(ids)
    if not _is_plain(ids, valid) or not _is_plain(forced, valid) or np.shape(amounts) != (count,):
        return None
    bound = options.max_stimulus
    if getattr(amounts, "dtype", None) != np.float32 or not bound * point.scale <= point.clamp_float:
        return None
    if np.count_nonzero(np.abs(amounts) <= np.float64(bound)) < count:
        return None
    if not options.fractional_stimulus and np.count_nonzero(np.rint(amounts) == amounts) < count:
        return None
    integers = np.rint(amounts.astype(np.float64) * point.scale).astype(point.dtype)
    may_cancel = int(np.count_nonzero(integers > 0)) < count
    return PackedStimulus(ids.copy(), integers, forced.copy(), False, may_cancel)


def _is_plain(ids: npt.NDArray[np.uint32], valid: npt.NDArray[np.bool_]) -> bool:
    """Whether ``ids`` are a uint32 array of valid neurons, ascending, each once."""
    if not isinstance(ids, np.ndarray) or ids.dtype != np.uint32 or ids.ndim != 1:
        return False
    count = len(ids)
    if not count:
        return True
    ascending = count == 1 or np.count_nonzero(ids[1:] > ids[:-1]) == count - 1
    return bool(ascending and ids[-1] < len(valid) and np.count_nonzero(valid[ids]) == count)


class Checked(NamedTuple):
    """A stimulus that no engine refuses.

    Attributes
    ----------
    ids : uint32 (Q,)
        Neurons that get an amount, ascending, each once.
    places : intp (A,)
        Place of each amount's neuron among ``ids``.
    amounts : float32 (A,)
    forced : uint32 (R,)
        As given.
    """

    ids: npt.NDArray[np.uint32]
    places: npt.NDArray[np.intp]
    amounts: npt.NDArray[np.float32]
    forced: npt.NDArray[np.uint32]


def check_stimulus(stimulus: Stimulus, network: Network, options: EngineOptions) -> Checked:
    """``stimulus`` if an engine over ``network`` takes it.

    Raises
    ------
    StimulusError
        An id outside the network or not valid; ids and amounts of different lengths; an amount that is not
        finite, or fractional without ``fractional_stimulus``; a neuron whose absolute amounts add up to more
        than ``max_stimulus``; an early injection into what is no memory area.
    """
    if not isinstance(stimulus, Stimulus):
        cure = "Pass a bp.Stimulus; a Stimulation goes to run"
        raise StimulusError("not the stimulus of a burst", where="stimulus", got=stimulus, cure=cure)
    ids = _checked_ids("stimulus.ids", stimulus.ids, network)
    forced = _checked_ids("stimulus.forced", stimulus.forced, network)
    _check_early(stimulus, network)
    amounts = _checked_amounts(stimulus, len(ids), options)
    unique, places = _grouped(ids)
    if len(ids):
        _check_totals(unique, places, amounts, options)
    return Checked(unique, places, amounts, forced)


def _check_early(stimulus: Stimulus, network: Network) -> None:
    """Refuse early injections into what is no memory area."""
    early = stimulus.memories_early
    if not (isinstance(early, np.ndarray) and early.ndim == 1 and (early.dtype.kind in "ui" or not early.size)):
        problem = "memory areas must be a one-dimensional integer array"
        raise StimulusError(problem, where="stimulus.memories_early", got=early)
    if not early.size:
        return
    memories = sorted(index for index, area in network.features.areas.items() if area.memory is not None)
    strange = ~np.isin(early, memories)
    if strange.any():
        got = early[strange][0].item()
        raise StimulusError("not a memory area", where="stimulus.memories_early", got=got, allowed=str(memories))


def _grouped(ids: npt.NDArray[np.uint32]) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.intp]]:
    """Each id once, ascending, and the place of every given one among them; ids in that order need no sorting."""
    if (ids[1:] > ids[:-1]).all():
        return ids, np.arange(len(ids))
    unique, places = np.unique(ids, return_inverse=True)
    return unique, places


def _checked_ids(where: str, ids: npt.NDArray[Any], network: Network) -> npt.NDArray[np.uint32]:
    """``ids`` as uint32, all of valid neurons of ``network``."""
    given = np.asarray(ids)
    if given.ndim != 1 or (given.size and given.dtype.kind not in "ui"):
        raise StimulusError(
            "neuron ids must be a one-dimensional integer array",
            where=where,
            got=(given.dtype.name, given.shape),
        )
    if not given.size:
        return np.empty(0, np.uint32)
    outside, allowed = (given < 0) | (given >= network.neuron_count), f"0...{network.neuron_count - 1}"
    refuse_first(StimulusError, outside, given, "a neuron outside the network", where, allowed)
    invalid, cure = ~network.neurons.valid_mask[given], "Leave it out of the stimulus"
    refuse_first(StimulusError, invalid, given, "a neuron that is not valid (valid_mask is false)", where, cure=cure)
    return given.astype(np.uint32)


def _checked_amounts(stimulus: Stimulus, count: int, options: EngineOptions) -> npt.NDArray[np.float32]:
    """The amounts as float32, finite, and integers unless fractions are declared."""
    given = np.asarray(stimulus.amounts)
    if given.dtype.kind not in "biuf":
        raise StimulusError("amounts are no numbers", where="stimulus.amounts", got=stimulus.amounts)
    with np.errstate(over="ignore"):
        amounts = given.astype(np.float32, copy=False)
    if amounts.shape != (count,):
        raise StimulusError(
            "ids and amounts differ in length",
            where="stimulus.amounts",
            got=amounts.shape,
            allowed=f"({count},)",
        )
    refuse_first(StimulusError, ~np.isfinite(amounts), amounts, "an amount is not finite", "stimulus.amounts")
    if not options.fractional_stimulus:
        fractional, cure = np.rint(amounts) != amounts, "Set the engine option fractional_stimulus"
        problem = "a fractional amount, but integers were declared"
        refuse_first(StimulusError, fractional, amounts, problem, "stimulus.amounts", cure=cure)
    return amounts


def _check_totals(
    ids: npt.NDArray[np.uint32],
    places: npt.NDArray[np.intp],
    amounts: npt.NDArray[np.float32],
    options: EngineOptions,
) -> None:
    """Refuse a neuron that gets more than declared; ``places`` maps each amount to its row of ``ids``."""
    totals = np.bincount(places, weights=np.abs(amounts.astype(np.float64)), minlength=len(ids))
    if totals.max() > options.max_stimulus:
        worst = int(np.argmax(totals))
        raise StimulusError(
            "the amounts of one neuron in one burst exceed the declared bound",
            where=f"stimulus of neuron {int(ids[worst])}",
            got=float(totals[worst]),
            allowed=f"at most {options.max_stimulus!r}",
            cure="Raise the engine option max_stimulus",
        )
