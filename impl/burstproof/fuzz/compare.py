"""An engine beside the reference: the first place where the two part."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.engine.protocol import CreateEngine, Engine
from burstproof.engine.reference import ReferenceEngine
from burstproof.engine.state import NO_STIMULUS, EngineState, Recording
from burstproof.errors import EnvironmentInvalidError
from burstproof.fuzz.case import FuzzCase
from burstproof.network.schema import LEARNT_FIELDS


@dataclass(frozen=True)
class Difference:
    """The first disagreement of an engine with the reference.

    Attributes
    ----------
    burst : int
        Number of the burst, or of the last one of the run after which states differ.
    quantity : str
        ``fired list``, ``candidates``, ``error``, ``scale`` or a field of the state.
    where : str
        Which neuron or synapse, or empty.
    expected, got : str
    """

    burst: int
    quantity: str
    where: str
    expected: str
    got: str

    def __str__(self) -> str:
        place = f", {self.where}" if self.where else ""
        return f"burst {self.burst}{place}, {self.quantity}: expected {self.expected}, got {self.got}"


@dataclass(frozen=True, eq=False)
class Stretch:
    """What the reference did in one run of a case, and its state then.

    ``before`` is the state before it where engines are made anew: that of the network, or one to take over.
    """

    recording: Recording
    state: EngineState
    before: EngineState | None


def reference_run(case: FuzzCase) -> Iterator[Stretch]:
    """What is expected, run by run.

    Raises
    ------
    BurstproofError
        The reference refuses the network or the stimulus.
    """
    engine: Engine = ReferenceEngine.create(case.network, case.options)
    for number, bursts in enumerate(case.runs):
        before = engine.state() if number in (0, case.handover) else None
        if number and before is not None:
            engine = ReferenceEngine.create(case.network, case.options)
            engine.restore(before)
        yield Stretch(_advance(engine, bursts, case), engine.state(), before)


def compare(case: FuzzCase, create: CreateEngine) -> Difference | None:
    """Run ``case`` on the reference and on the engine that ``create`` makes; ``None`` if they agree throughout.

    Raises
    ------
    BurstproofError
        The reference refuses the case.
    EnvironmentInvalidError
        The engine cannot run such a network here.
    """
    subject = _Subject(case, create)
    try:
        for stretch in reference_run(case):
            found = subject.follow(stretch)
            if found is not None:
                return found
        return None
    finally:
        subject.close()


class _Subject:
    """The engine under test, which follows the reference run by run."""

    def __init__(self, case: FuzzCase, create: CreateEngine) -> None:
        self._case = case
        self._create = create
        self._engine: Engine | None = None

    def follow(self, stretch: Stretch) -> Difference | None:
        """Do what the reference did, and compare; any error of the engine is a disagreement."""
        first = int(stretch.recording.bursts[0])
        try:
            found = self._begin(stretch.before) if stretch.before is not None else None
            assert self._engine is not None
            if found is not None:
                return found
            got = _advance(self._engine, len(stretch.recording.bursts), self._case)
            found = recording_difference(stretch.recording, got)
            return found or state_difference(stretch.state, self._engine.state())
        except EnvironmentInvalidError:
            raise
        except Exception as error:  # a crash is a finding like any other
            return Difference(first, "error", "", "none", f"{type(error).__name__}: {error}")

    def _begin(self, before: EngineState) -> Difference | None:
        """Make the engine; one after the first takes over the state."""
        restores = self._engine is not None
        self.close()
        self._engine = engine = self._create(self._case.network, self._case.options)
        if engine.fixed_point != before.fixed_point:
            return Difference(before.burst_count, "scale", "", str(before.fixed_point), str(engine.fixed_point))
        if restores:
            engine.restore(before)
        return state_difference(before, engine.state())

    def close(self) -> None:
        if self._engine is not None:
            self._engine.close()
            self._engine = None


def _advance(engine: Engine, bursts: int, case: FuzzCase) -> Recording:
    """Run ``bursts`` bursts; a single one as a step."""
    if bursts != 1:
        return engine.run(bursts, case.plan)
    burst = engine.step(case.plan.get(engine.burst_count + 1, NO_STIMULUS))
    numbers, fired, candidates = np.array([[burst.number], [len(burst.fired_ids)], [burst.candidates]], np.int64)
    return Recording(numbers, fired, candidates, burst.fired_ids, burst.fired_potentials)


def recording_difference(expected: Recording, got: Recording) -> Difference | None:
    """The first burst in which two recordings differ, and how."""
    if not np.array_equal(expected.bursts, got.bursts):
        first = int(expected.bursts[0])
        return Difference(first, "burst numbers", "", str(expected.bursts.tolist()), str(got.bursts.tolist()))
    rows = [np.concatenate([[0], np.cumsum(r.fired_counts)]) for r in (expected, got)]
    for index, number in enumerate(expected.bursts.tolist()):
        parts = [slice(row[index], row[index + 1]) for row in rows]
        ids = expected.fired_ids[parts[0]], got.fired_ids[parts[1]]
        if not np.array_equal(*ids):
            return _fired_difference(number, *ids)
        potentials = expected.fired_potentials[parts[0]], got.fired_potentials[parts[1]]
        found = array_difference(number, "potential at firing", *potentials, ids[0])
        if found is not None:
            return found
        candidates = int(expected.candidate_counts[index]), int(got.candidate_counts[index])
        if candidates[0] != candidates[1]:
            return Difference(number, "candidates", "", str(candidates[0]), str(candidates[1]))
    return None


def _fired_difference(number: int, expected: npt.NDArray[np.uint32], got: npt.NDArray[np.uint32]) -> Difference:
    only_one = np.setxor1d(expected, got)
    if not len(only_one):
        return Difference(number, "fired list", "", str(expected.tolist()), str(got.tolist()))
    words = "does not fire", "fires"
    neuron = only_one[0]
    return Difference(
        number, "fired list", f"neuron {neuron}", words[bool(neuron in expected)], words[bool(neuron in got)]
    )


def state_difference(expected: EngineState, got: EngineState) -> Difference | None:
    """The first field in which two states differ bit for bit, and where."""
    for name in expected.differences(got):
        mine, theirs = attrgetter(name)(expected), attrgetter(name)(got)
        if not isinstance(mine, np.ndarray):
            return Difference(expected.burst_count, name.replace("_", " "), "", str(mine), str(theirs))
        return array_difference(expected.burst_count, name, mine, theirs)
    return None


def array_difference(
    burst: int, name: str, expected: npt.NDArray[Any], got: npt.NDArray[Any], ids: npt.NDArray[Any] | None = None
) -> Difference | None:
    """The first place where two arrays of one dtype differ bit for bit (NaN equals NaN); ``ids`` name their rows."""
    quantity = name.replace("_", " ")
    if expected.shape != got.shape or expected.dtype != got.dtype:
        shapes = (f"{a.dtype} {a.shape}" for a in (expected, got))
        return Difference(burst, quantity, "", *shapes)
    different = expected != got
    if expected.dtype.kind == "f":
        bits = f"u{expected.dtype.itemsize}"
        different = expected.view(bits) != got.view(bits) if name not in LEARNT_FIELDS else different
        different &= ~(np.isnan(expected) & np.isnan(got))
    if not different.any():
        return None
    place = tuple(int(axis[0]) for axis in np.nonzero(different))
    item = place[-1] if ids is None else int(ids[place[-1]])
    kind = "synapse" if name in LEARNT_FIELDS else "neuron"
    where = f"{kind} {item}" if len(place) == 1 else f"{kind} {item}, {place[0] + 1} bursts ahead"
    return Difference(burst, quantity, where, str(expected[place]), str(got[place]))
