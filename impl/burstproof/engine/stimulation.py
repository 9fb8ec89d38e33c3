"""Stimulus plans built from parts: amounts or forced firings, for neurons or cortical areas, in many bursts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.engine.options import EngineOptions
from burstproof.engine.state import NO_PLAN, Stimulus, StimulusPlan
from burstproof.errors import StimulusError, refuse_first
from burstproof.network.model import Network

Bursts = int | Iterable[int] | str
"""Burst numbers: one, several, or a string like ``1-100/10,150``."""

MOST_BURSTS = 10_000_000
"""Most bursts ahead that a string of burst numbers may name."""


@dataclass(frozen=True, eq=False)
class Part:
    """In ``bursts`` (ascending), ``neurons`` get ``amount``, one for all or one each; ``None`` forces them to fire."""

    bursts: range | npt.NDArray[np.int64]
    neurons: npt.NDArray[np.uint32]
    amount: float | npt.NDArray[np.float32] | None


def plan_of(parts: Sequence[Part]) -> StimulusPlan:
    """The plan of all ``parts`` together; bursts with the same parts share one Stimulus."""
    if not parts:
        return NO_PLAN
    active: dict[int, list[int]] = {}
    for index, part in enumerate(parts):
        for burst in part.bursts:
            active.setdefault(int(burst), []).append(index)
    shared = {key: stimulus_of([parts[i] for i in key]) for key in {tuple(v) for v in active.values()}}
    return {burst: shared[tuple(indexes)] for burst, indexes in sorted(active.items())}


def stimulus_of(parts: Sequence[Part]) -> Stimulus:
    """The stimulus of several parts in one burst."""
    none = np.empty(0, np.uint32)
    added = [(part.neurons, part.amount) for part in parts if part.amount is not None]
    amounts = (np.broadcast_to(np.float32(amount), neurons.shape) for neurons, amount in added)
    return Stimulus(
        ids=np.concatenate([none, *(neurons for neurons, _ in added)]),
        amounts=np.concatenate([np.empty(0, np.float32), *amounts]),
        forced=np.concatenate([none, *(part.neurons for part in parts if part.amount is None)]),
    )


def stimulus_bounds(plan: StimulusPlan, default: EngineOptions) -> tuple[float, bool]:
    """The ``max_stimulus`` and ``fractional_stimulus`` that ``plan`` needs, at least those of ``default``."""
    largest, fractional = default.max_stimulus, default.fractional_stimulus
    for stimulus in {id(item): item for item in plan.values()}.values():
        if len(stimulus.ids):
            amounts = np.asarray(stimulus.amounts, np.float32)
            _, places = np.unique(stimulus.ids, return_inverse=True)
            totals = np.bincount(places, weights=np.abs(amounts.astype(np.float64)))
            largest = max(largest, float(totals.max()))
            fractional = fractional or bool((np.rint(amounts) != amounts).any())
    return largest, fractional


def chosen_neurons(network: Network, ids: Any, area: str | None) -> npt.NDArray[np.uint32]:
    """The neurons given by either ``ids`` or ``area``, (Q,) uint32.

    Raises
    ------
    StimulusError
        Neither or both are given, or an id that is no neuron.
    NetworkError
        No such area.
    """
    if (ids is None) == (area is None):
        given = "neither" if ids is None else "both"
        raise StimulusError("name neurons by ids or by area", got=given, allowed="one of ids=, area=")
    if area is not None:
        return network.ids_of(area)
    if isinstance(ids, str):
        return numbers_in(ids, 0, network.neuron_count - 1, "ids").astype(np.uint32)
    try:
        found = np.atleast_1d(np.asarray(ids))
    except ValueError:
        found = np.empty((0, 0))
    if found.shape == (0,):
        return np.empty(0, np.uint32)
    if found.ndim != 1 or found.dtype.kind not in "iu":
        cure = "np.flatnonzero(mask) gives the ids of a mask"
        raise StimulusError("not neuron ids", where="ids", got=ids, allowed="whole numbers in one dimension", cure=cure)
    outside = (found < 0) | (found >= network.neuron_count)
    allowed, cure = f"0...{network.neuron_count - 1}", "area=NAME takes the neurons of an area"
    refuse_first(StimulusError, outside, found, "no such neuron", "ids", allowed, cure)
    return found.astype(np.uint32)


class Stimulation(Mapping[int, Stimulus]):
    """A stimulus plan built by ``add`` and ``force``, which return the object itself.

    All engines and ``Session.run`` accept it as a ``StimulusPlan``. Parts for the same burst add up.

    Parameters
    ----------
    network : Network
        The network of the neurons and areas. Its first burst is number ``network.burst_count + 1``.

    Examples
    --------
    ``Stimulation(network).add(20, area="input", bursts=range(1, 101, 10)).force(ids=[4, 5], bursts=3)``
    """

    def __init__(self, network: Network) -> None:
        if not isinstance(network, Network):
            raise StimulusError("not a network", where="Stimulation", got=network, cure="Pass a bp.Network")
        self.network = network
        self._parts: list[Part] = []
        self._plan: StimulusPlan | None = NO_PLAN

    def add(
        self,
        amount: float | npt.ArrayLike,
        *,
        bursts: Bursts,
        ids: Any = None,
        area: str | None = None,
    ) -> Stimulation:
        """Add ``amount`` to the sums of neurons.

        Parameters
        ----------
        amount : float or (Q,) array
            In units of the potential, float32; one for all neurons, or one each.
        bursts : int, iterable of int or str
            Absolute burst numbers: ``5``, ``range(1, 101, 10)``, ``"1-100/10,150"``.
        ids : (Q,) integers or str, optional
            Neuron ids: ``[4, 5]``, ``"0-24"``.
        area : str, optional
            Name or cortical id of an area: all its valid neurons. Give either ``ids`` or ``area``.

        Raises
        ------
        StimulusError
            A past burst, a neuron that does not exist, an amount that is not finite, or a number of amounts that is not
            that of the neurons.
        NetworkError
            No such area.
        """
        neurons = chosen_neurons(self.network, ids, area)
        return self._with(bursts, neurons, checked_amount(amount, len(neurons)))

    def force(self, *, bursts: Bursts, ids: Any = None, area: str | None = None) -> Stimulation:
        """Force neurons to fire, whatever their state; parameters and errors as for ``add``."""
        return self._with(bursts, chosen_neurons(self.network, ids, area), None)

    def _with(
        self, bursts: Bursts, neurons: npt.NDArray[np.uint32], amount: npt.NDArray[np.float32] | None
    ) -> Stimulation:
        first = self.network.burst_count + 1
        if isinstance(bursts, str):
            bursts = numbers_in(bursts, first, first + MOST_BURSTS, "bursts").tolist()
        numbers: list[Any] = [bursts]
        if isinstance(bursts, Iterable) and not isinstance(bursts, bytes | Mapping):
            numbers = list(np.atleast_1d(bursts) if isinstance(bursts, np.ndarray) else bursts)
        wrong = [number for number in numbers if not _is_burst(number, first)]
        if wrong:
            allowed = f"{first} or more, a number, several or a text like '1-100/10,150'"
            raise StimulusError("not a burst to come", where="bursts", got=wrong[0], allowed=allowed)
        self._parts.append(Part(np.unique(np.array(numbers, np.int64)), neurons, amount))
        self._plan = None
        return self

    @property
    def plan(self) -> StimulusPlan:
        """All parts as a plan with one Stimulus per burst."""
        if self._plan is None:
            self._plan = plan_of(self._parts)
        return self._plan

    def __getitem__(self, burst: int) -> Stimulus:
        return self.plan[burst]

    def __iter__(self) -> Iterator[int]:
        return iter(self.plan)

    def __len__(self) -> int:
        return len(self.plan)

    def __repr__(self) -> str:
        if not self.plan:
            return "Stimulation(empty)"
        return f"Stimulation({len(self)} bursts, {min(self)} to {max(self)})"


def checked_plan(plan: StimulusPlan, where: str) -> StimulusPlan:
    """``plan``, if it maps burst numbers to stimuli; other entries would be ignored silently.

    Raises
    ------
    StimulusError
        It does not.
    """
    if isinstance(plan, Stimulation):
        return plan
    allowed = "a Stimulation, or a mapping of burst numbers to Stimulus"
    if not isinstance(plan, Mapping):
        raise StimulusError("not a stimulus by burst", where=where, got=plan, allowed=allowed)
    for burst, stimulus in plan.items():
        if not _is_burst(burst, 1) or not isinstance(stimulus, Stimulus):
            raise StimulusError("not a stimulus by burst", where=where, got={burst: stimulus}, allowed=allowed)
    return plan


def _is_burst(number: object, first: int) -> bool:
    """Whether ``number`` is a burst from ``first`` on."""
    if not isinstance(number, int | np.integer) or isinstance(number, bool):
        return False
    return bool(first <= number <= np.iinfo(np.int64).max)


def checked_amount(amount: float | npt.ArrayLike, neurons: int) -> npt.NDArray[np.float32]:
    """``amount`` as float32, () or (``neurons``,).

    Raises
    ------
    StimulusError
        Not finite in float32, or another shape.
    """
    try:
        given = np.asarray(amount)
    except ValueError:
        given = np.array(None)
    with np.errstate(over="ignore"):
        found = given.astype(np.float32) if given.dtype.kind in "biuf" else np.array(np.nan, np.float32)
    if found.shape not in ((), (neurons,)):
        cure = "Give one amount for all neurons, or one for each"
        raise StimulusError(
            "amounts and neurons differ in length", where="amount", got=found.shape, allowed=f"({neurons},)", cure=cure
        )
    if not np.isfinite(found).all():
        cure = "Give finite numbers below 3.4e38"
        raise StimulusError("an amount is not a finite float32", where="amount", got=amount, cure=cure)
    return found


def parse_stimulations(
    network: Network, bursts: int, stimulate: Sequence[str] = (), force: Sequence[str] = ()
) -> tuple[Part, ...]:
    """Parse the ``--stimulate`` and ``--force`` arguments of a run of ``bursts`` bursts over ``network``.

    ``BURSTS:NEURONS=AMOUNT`` adds AMOUNT to the fire candidate list, ``BURSTS:NEURONS`` forces neurons to fire
    (SEMANTICS section 4). BURSTS is a list of numbers and ranges, ``3,10-20,100-200/10`` (every tenth), numbered as in
    the record. NEURONS is such a list of ids, or ``@AREA`` with the id or the name of a cortical area.

    Raises
    ------
    StimulusError
        An argument of another form, a burst outside the run, a neuron that does not exist.
    NetworkError
        An area that does not exist.
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


def _parse(network: Network, bursts: int, option: str, text: str, when_who: str, amount: float | None) -> Part:
    when, colon, who = when_who.partition(":")
    if not colon:
        form = "BURSTS:NEURONS" if amount is None else "BURSTS:NEURONS=AMOUNT"
        raise StimulusError("no ':' between bursts and neurons", where=option, got=text, allowed=form)
    first = network.burst_count + 1
    numbers = numbers_in(when, first, network.burst_count + bursts, f"{option}: burst")
    if who.startswith("@"):
        return Part(numbers, network.ids_of(who[1:], option), amount)
    if amount is None and "=" in who:
        cure = "Leave it out, or use --stimulate"
        raise StimulusError("a forced firing takes no amount", where=option, got=text, cure=cure)
    ids = numbers_in(who, 0, network.neuron_count - 1, f"{option}: neuron")
    return Part(numbers, ids.astype(np.uint32), amount)


def numbers_in(text: str, least: int, most: int, where: str) -> npt.NDArray[np.int64]:
    """The numbers of a list like ``3,10-20,100-200/10``, ascending, each once."""
    parts = []
    for item in text.split(","):
        span, _, step_text = item.partition("/")
        low_text, dash, high_text = span.partition("-")
        texts = [low_text, high_text if dash else low_text, step_text or "1"]
        if not all(t.strip().isdecimal() and len(t) < 20 for t in texts):
            cure = "Write an area as @NAME" if where.endswith("neuron") else None
            allowed = "N, N-M or N-M/STEP"
            raise StimulusError("not a list of numbers", where=where, got=item, allowed=allowed, cure=cure)
        low, high, step = (int(t) for t in texts)
        if high < low or step < 1:
            raise StimulusError("an empty range", where=where, got=item, allowed="N-M/STEP with M >= N and STEP >= 1")
        if low < least or high > most:
            cure = "Change it, or --bursts" if where.endswith("burst") else None
            raise StimulusError("out of range", where=where, got=item, allowed=f"{least} to {most}", cure=cure)
        parts.append(np.arange(low, high + 1, step, dtype=np.int64))
    return np.unique(np.concatenate(parts))
