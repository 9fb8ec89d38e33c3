"""Checks of a Stimulus against a network and its declared bounds."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from burstproof.engine.options import EngineOptions
from burstproof.engine.state import Stimulus, StimulusPlan
from burstproof.errors import InputError, StimulusError, refuse_first
from burstproof.network.model import Network

_LAST_BURST = np.iinfo(np.int64).max

FORCED_POTENTIAL = np.float32(100.0)
"""Potential with which a forced firing joins the fired list (SEMANTICS section 4)."""


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
    if done + bursts > _LAST_BURST:
        raise InputError("more bursts than can be counted", where="run", got=bursts, allowed=f"{_LAST_BURST - done}")
    return range(done + 1, done + 1 + int(bursts))


def planned(plan: StimulusPlan, coming: range) -> list[int]:
    """The bursts of ``coming`` that are in ``plan``; the time depends on the shorter of the two."""
    return [b for b in plan if b in coming] if len(plan) < len(coming) else [b for b in coming if b in plan]


class Checked(NamedTuple):
    """A stimulus that passed all checks.

    Attributes
    ----------
    ids : uint32 (Q,)
        Neurons that get an amount, ascending, each once.
    places : intp (A,)
        Index in ``ids`` of each amount's neuron.
    amounts : float32 (A,)
    forced : uint32 (R,)
        As given.
    """

    ids: npt.NDArray[np.uint32]
    places: npt.NDArray[np.intp]
    amounts: npt.NDArray[np.float32]
    forced: npt.NDArray[np.uint32]


def check_stimulus(stimulus: Stimulus, network: Network, options: EngineOptions) -> Checked:
    """Check ``stimulus`` for an engine over ``network``.

    Raises
    ------
    StimulusError
        An id outside the network or not valid; ids and amounts of different lengths; an amount that is not
        finite, or fractional without ``fractional_stimulus``; a neuron whose absolute amounts add up to more
        than ``max_stimulus``; an early injection into an area that is no memory area.
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
    """Refuse early injections into areas that are no memory areas."""
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
    """Each id once, ascending, and the index of every given one among them; skips sorting if not needed."""
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
            cure="Pass whole numbers; np.flatnonzero(mask) gives those of a mask",
        )
    if not given.size:
        return np.empty(0, np.uint32)
    outside, allowed = (given < 0) | (given >= network.neuron_count), f"0...{network.neuron_count - 1}"
    cure = "Take ids of this network; network.ids_of(AREA) has those of an area"
    refuse_first(StimulusError, outside, given, "a neuron outside the network", where, allowed, cure)
    invalid, cure = ~network.neurons.valid_mask[given], "Leave it out of the stimulus"
    refuse_first(StimulusError, invalid, given, "a neuron that is not valid (valid_mask is false)", where, cure=cure)
    return given.astype(np.uint32)


def _checked_amounts(stimulus: Stimulus, count: int, options: EngineOptions) -> npt.NDArray[np.float32]:
    """The amounts as float32, finite, and integers unless fractions are declared."""
    given, cure = np.asarray(stimulus.amounts), "Give finite numbers below 3.4e38"
    if given.dtype.kind not in "biuf":
        raise StimulusError("amounts are no numbers", where="stimulus.amounts", got=stimulus.amounts, cure=cure)
    with np.errstate(over="ignore"):
        amounts = given.astype(np.float32, copy=False)
    if amounts.shape != (count,):
        raise StimulusError(
            "ids and amounts differ in length",
            where="stimulus.amounts",
            got=amounts.shape,
            allowed=f"({count},)",
            cure="Give one amount for each id, in the same order",
        )
    infinite = ~np.isfinite(amounts)
    refuse_first(StimulusError, infinite, amounts, "an amount is not finite", "stimulus.amounts", cure=cure)
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
