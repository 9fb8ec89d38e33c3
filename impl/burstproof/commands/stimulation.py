"""The options ``--stimulate`` and ``--force``: what is put into which neurons in which bursts, as a StimulusPlan.

``--stimulate BURSTS:NEURONS=AMOUNT`` adds AMOUNT to the fire candidate list, ``--force BURSTS:NEURONS`` makes neurons
fire (SEMANTICS section 4). BURSTS is a list of numbers and ranges, ``3,10-20,100-200/10`` (every tenth); the numbers
are those of the record. NEURONS is such a list of ids, or ``@AREA`` with the id or the name of a cortical area.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from burstproof.burst.engine import NO_PLAN, EngineOptions, Stimulus, StimulusPlan
from burstproof.errors import StimulusError
from burstproof.network.model import Network

_SHOWN = 12


@dataclass(frozen=True, eq=False)
class Stimulation:
    """One option as given: ``neurons`` get ``amount``, or fire if it is ``None``, in ``bursts`` (ascending)."""

    bursts: range | npt.NDArray[np.int64]
    neurons: npt.NDArray[np.uint32]
    amount: float | None


def parse_stimulations(
    network: Network, bursts: int, stimulate: Sequence[str] = (), force: Sequence[str] = ()
) -> tuple[Stimulation, ...]:
    """The options of one run of ``bursts`` bursts over ``network``.

    Raises
    ------
    StimulusError
        A text that is none of the forms, a burst outside the run, a neuron or an area that does not exist.
    """
    found = []
    for text in stimulate:
        when_who, _, amount = text.rpartition("=")
        found.append(_parse(network, bursts, "--stimulate", text, when_who, _amount(text, amount)))
    found += [_parse(network, bursts, "--force", text, text, None) for text in force]
    return tuple(found)


def _amount(text: str, amount: str) -> float:
    """The amount of ``--stimulate``."""
    try:
        value = float(amount)
    except ValueError:
        value = math.nan
    if not abs(value) <= float(np.finfo(np.float32).max):
        raise StimulusError(
            "no finite amount after the last '='", where="--stimulate", got=text, allowed="BURSTS:NEURONS=AMOUNT"
        )
    return value


def _parse(network: Network, bursts: int, option: str, text: str, when_who: str, amount: float | None) -> Stimulation:
    when, colon, who = when_who.partition(":")
    if not colon:
        form = "BURSTS:NEURONS" if amount is None else "BURSTS:NEURONS=AMOUNT"
        raise StimulusError("no ':' between bursts and neurons", where=option, got=text, allowed=form)
    first = network.burst_count + 1
    numbers = _numbers(when, first, network.burst_count + bursts, f"{option}: burst")
    if who.startswith("@"):
        return Stimulation(numbers, _area_neurons(network, who[1:], option), amount)
    ids = _numbers(who, 0, network.neuron_count - 1, f"{option}: neuron")
    return Stimulation(numbers, ids.astype(np.uint32), amount)


def _numbers(text: str, least: int, most: int, where: str) -> npt.NDArray[np.int64]:
    """The numbers of a list like ``3,10-20,100-200/10``, ascending, each once."""
    parts = []
    for item in text.split(","):
        span, _, step_text = item.partition("/")
        low_text, dash, high_text = span.partition("-")
        texts = [low_text, high_text if dash else low_text, step_text or "1"]
        if not all(t.strip().isdecimal() and len(t) < 20 for t in texts):
            raise StimulusError("not a list of numbers", where=where, got=item, allowed="N, N-M or N-M/STEP")
        low, high, step = (int(t) for t in texts)
        if high < low or step < 1:
            raise StimulusError("an empty range", where=where, got=item, allowed="N-M/STEP with M >= N and STEP >= 1")
        if low < least or high > most:
            cure = "Change it, or --bursts" if where.endswith("burst") else None
            raise StimulusError("out of range", where=where, got=item, allowed=f"{least} to {most}", cure=cure)
        parts.append(np.arange(low, high + 1, step, dtype=np.int64))
    return np.unique(np.concatenate(parts))


def _area_neurons(network: Network, name: str, option: str) -> npt.NDArray[np.uint32]:
    """Valid neurons of the area whose id or name is ``name``."""
    found = [area.index for area in network.areas if name in (area.cortical_id, area.name)]
    if len(found) != 1:
        raise _no_area(network, name, option, len(found))
    neurons = network.neurons
    return np.flatnonzero((neurons.cortical_areas == found[0]) & neurons.valid_mask).astype(np.uint32)


def _no_area(network: Network, name: str, option: str, found: int) -> StimulusError:
    """The error for a name that stands for no area, or for several."""
    names = [area.name or area.cortical_id for area in network.areas]
    rest = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    near = difflib.get_close_matches(name, names, n=1)
    return StimulusError(
        f"{found} areas have this name" if found else "no such cortical area",
        where=option,
        got=name,
        allowed=f"the id or name of one of: {', '.join(names[:_SHOWN])}{rest}",
        cure="Name its id" if found else f"Did you mean {near[0]}?" if near else "A run without it lists all areas",
    )


def plan_of(stimulations: Sequence[Stimulation]) -> StimulusPlan:
    """The plan that the options make up together; bursts with the same options share one Stimulus."""
    if not stimulations:
        return NO_PLAN
    active: dict[int, list[int]] = {}
    for index, stimulation in enumerate(stimulations):
        for burst in stimulation.bursts:
            active.setdefault(int(burst), []).append(index)
    shared = {key: _combined([stimulations[i] for i in key]) for key in {tuple(v) for v in active.values()}}
    return {burst: shared[tuple(indexes)] for burst, indexes in sorted(active.items())}


def _combined(parts: Sequence[Stimulation]) -> Stimulus:
    """What several options put into one burst."""
    none = np.empty(0, np.uint32)
    added = [part for part in parts if part.amount is not None]
    return Stimulus(
        ids=np.concatenate([none, *(part.neurons for part in added)]),
        amounts=np.concatenate(
            [np.empty(0, np.float32), *(np.full(len(part.neurons), part.amount, np.float32) for part in added)]
        ),
        forced=np.concatenate([none, *(part.neurons for part in parts if part.amount is None)]),
    )


def stimulus_bounds(plan: StimulusPlan, default: EngineOptions) -> tuple[float, bool]:
    """``max_stimulus`` and ``fractional_stimulus`` that ``plan`` needs; never less than the default."""
    largest, fractional = default.max_stimulus, default.fractional_stimulus
    for stimulus in {id(item): item for item in plan.values()}.values():
        if len(stimulus.ids):
            _, places = np.unique(stimulus.ids, return_inverse=True)
            totals = np.bincount(places, weights=np.abs(stimulus.amounts.astype(np.float64)))
            largest = max(largest, float(totals.max()))
            fractional = fractional or bool((np.rint(stimulus.amounts) != stimulus.amounts).any())
    return largest, fractional
