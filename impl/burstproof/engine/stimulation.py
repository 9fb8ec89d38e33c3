"""Stimulus for many bursts, built part by part: by neuron or by cortical area, added or forced."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.engine.options import EngineOptions
from burstproof.engine.state import NO_PLAN, Stimulus, StimulusPlan
from burstproof.errors import StimulusError
from burstproof.network.model import Network


@dataclass(frozen=True, eq=False)
class Part:
    """``neurons`` get ``amount`` (one for all, or one each), or fire if it is ``None``, in ``bursts`` (ascending)."""

    bursts: range | npt.NDArray[np.int64]
    neurons: npt.NDArray[np.uint32]
    amount: float | npt.NDArray[np.float32] | None


def plan_of(parts: Sequence[Part]) -> StimulusPlan:
    """The plan that the parts make up together; bursts with the same parts share one Stimulus."""
    if not parts:
        return NO_PLAN
    active: dict[int, list[int]] = {}
    for index, part in enumerate(parts):
        for burst in part.bursts:
            active.setdefault(int(burst), []).append(index)
    shared = {key: stimulus_of([parts[i] for i in key]) for key in {tuple(v) for v in active.values()}}
    return {burst: shared[tuple(indexes)] for burst, indexes in sorted(active.items())}


def stimulus_of(parts: Sequence[Part]) -> Stimulus:
    """What several parts put into one burst."""
    none = np.empty(0, np.uint32)
    added = [(part.neurons, part.amount) for part in parts if part.amount is not None]
    amounts = (np.broadcast_to(np.float32(amount), neurons.shape) for neurons, amount in added)
    return Stimulus(
        ids=np.concatenate([none, *(neurons for neurons, _ in added)]),
        amounts=np.concatenate([np.empty(0, np.float32), *amounts]),
        forced=np.concatenate([none, *(part.neurons for part in parts if part.amount is None)]),
    )


def stimulus_bounds(plan: StimulusPlan, default: EngineOptions) -> tuple[float, bool]:
    """``max_stimulus`` and ``fractional_stimulus`` that ``plan`` needs; never less than the default."""
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
    """The neurons that ``ids`` or ``area``, one of the two, names, (Q,) uint32.

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
    found = np.atleast_1d(np.asarray(ids))
    if not found.size:
        return np.empty(0, np.uint32)
    if found.ndim != 1 or found.dtype.kind not in "iu":
        raise StimulusError("not neuron ids", where="ids", got=ids, allowed="whole numbers in one dimension")
    outside = (found < 0) | (found >= network.neuron_count)
    if outside.any():
        place = int(np.argmax(outside))
        allowed = f"0...{network.neuron_count - 1}"
        raise StimulusError("no such neuron", where=f"ids[{place}]", got=int(found[place]), allowed=allowed)
    return found.astype(np.uint32)


class Stimulation(Mapping[int, Stimulus]):
    """Stimulus by burst number, built by calls of ``add`` and ``force``, each of which returns the object itself.

    It is a ``StimulusPlan``: every engine and ``Session.run`` take it. Parts that fall on one burst add up.

    Parameters
    ----------
    network : Network
        What the neurons and areas belong to. Its first burst is number ``network.burst_count + 1``.

    Examples
    --------
    ``Stimulation(network).add(20, area="input", bursts=range(1, 101, 10)).force(ids=[4, 5], bursts=3)``
    """

    def __init__(self, network: Network) -> None:
        self.network = network
        self._parts: list[Part] = []
        self._plan: StimulusPlan | None = NO_PLAN

    def add(
        self, amount: float | npt.ArrayLike, *, bursts: int | Iterable[int], ids: Any = None, area: str | None = None
    ) -> Stimulation:
        """Add ``amount`` to what reaches the neurons.

        Parameters
        ----------
        amount : float or (Q,) array
            In units of the potential, float32: one for all neurons, or one each.
        bursts : int or iterable of int
            Absolute burst numbers: ``5``, ``range(1, 101)``, ``range(1, 101, 10)``.
        ids : (Q,) integers, optional
        area : str, optional
            Name or cortical id of an area; its valid neurons. Give ``ids`` or ``area``.

        Raises
        ------
        StimulusError
            A burst that the network has done, a neuron that does not exist, an amount that is not finite or of another
            length than the neurons.
        NetworkError
            No such area.
        """
        neurons = chosen_neurons(self.network, ids, area)
        return self._with(bursts, neurons, checked_amount(amount, len(neurons)))

    def force(self, *, bursts: int | Iterable[int], ids: Any = None, area: str | None = None) -> Stimulation:
        """Make the neurons fire, whatever their state; parameters and errors as for ``add``."""
        return self._with(bursts, chosen_neurons(self.network, ids, area), None)

    def _with(
        self, bursts: int | Iterable[int], neurons: npt.NDArray[np.uint32], amount: npt.NDArray[np.float32] | None
    ) -> Stimulation:
        numbers = [bursts] if isinstance(bursts, int | np.integer) else list(bursts)
        first = self.network.burst_count + 1
        wrong = [number for number in numbers if not isinstance(number, int | np.integer) or number < first]
        if wrong:
            raise StimulusError("not a burst to come", where="bursts", got=wrong[0], allowed=f"{first} or more")
        self._parts.append(Part(np.unique(np.array(numbers, np.int64)), neurons, amount))
        self._plan = None
        return self

    @property
    def plan(self) -> StimulusPlan:
        """All parts as one Stimulus for each burst."""
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


def checked_amount(amount: float | npt.ArrayLike, neurons: int) -> npt.NDArray[np.float32]:
    """``amount`` as float32, () or (``neurons``,).

    Raises
    ------
    StimulusError
        No finite float32, or another shape.
    """
    try:
        with np.errstate(over="ignore"):
            found = np.asarray(amount).astype(np.float32)
    except (TypeError, ValueError):
        found = np.array(np.nan, np.float32)
    if found.shape not in ((), (neurons,)):
        raise StimulusError(
            "amounts and neurons differ in length", where="amount", got=found.shape, allowed=f"({neurons},)"
        )
    if not np.isfinite(found).all():
        raise StimulusError("an amount is not a finite float32", where="amount", got=amount)
    return found
