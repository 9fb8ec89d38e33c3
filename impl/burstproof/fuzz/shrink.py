"""The smallest form of a case in which an engine still differs from the reference, by bounded trying."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
import numpy.typing as npt

from burstproof.engine.protocol import CreateEngine
from burstproof.engine.replay import replay
from burstproof.engine.state import Recording
from burstproof.engine.trace import Trace, trace_of_run
from burstproof.errors import BurstproofError, EnvironmentInvalidError, InputError
from burstproof.fuzz import reduce
from burstproof.fuzz.case import FuzzCase
from burstproof.fuzz.compare import Difference, compare, reference_run
from burstproof.network.schema import LEARNT_FIELDS, STATE_FIELDS

MOST_TRIES = 2000
"""Cases tried for one shrinking; more than a hundred neurons and a thousand synapses take about a thousand."""

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Shrunk:
    """A failing case in its smallest form found.

    Attributes
    ----------
    case : FuzzCase
    difference : Difference
    trace : Trace
        What the reference does in it, with every state.
    replays : bool
        Whether replaying the trace on the engine shows a disagreement too. Where it does not, only the whole state
        does (what is under way, candidates), or it takes the runs and hand-over of the case.
    tries : int
        Cases tried.
    """

    case: FuzzCase
    difference: Difference
    trace: Trace
    replays: bool
    tries: int


def recorded(case: FuzzCase, name: str) -> Trace:
    """The trace of ``case`` on the reference, with the state of the network's own rows after every burst."""
    steps = reduce.in_steps(case, case.bursts)
    stretches = list(reference_run(steps))
    recordings = [stretch.recording for stretch in stretches]
    names = ("bursts", "fired_counts", "candidate_counts", "fired_ids", "fired_potentials")
    whole = Recording(*(np.concatenate([getattr(r, item) for r in recordings]) for item in names))
    trace = trace_of_run(case.network, case.options, whole, case.plan, stretches[-1].state, name)
    fields = (*STATE_FIELDS, *(LEARNT_FIELDS if case.network.plastic_mappings else ()))
    rows = dict.fromkeys(STATE_FIELDS, case.network.neuron_count)
    rows |= dict.fromkeys(LEARNT_FIELDS, case.network.synapse_count)
    return replace(trace, states={f: np.stack([getattr(s.state, f)[: rows[f]] for s in stretches]) for f in fields})


def shrink(case: FuzzCase, create: CreateEngine, name: str, tries: int = MOST_TRIES) -> Shrunk:
    """Shrink ``case``, in which the engine that ``create`` makes differs from the reference.

    Parameters
    ----------
    case : FuzzCase
    create : callable
        Makes the engine under test.
    name : str
        Name of the trace.
    tries : int
        Most cases to try.

    Raises
    ------
    InputError
        The engine agrees with the reference.
    """
    if compare(case, create) is None:
        raise InputError("the engine agrees with the reference in this case", where=name)
    steps = reduce.in_steps(case, case.bursts)
    differs: Differs = _replay_differs
    if not _replay_differs(steps, create):
        differs = _compare_differs
        steps = steps if _compare_differs(steps, create) else case
    search = _Search(steps, create, differs, tries)
    search.run()
    difference = compare(search.case, create)
    assert difference is not None
    trace = recorded(search.case, name)
    return Shrunk(search.case, difference, trace, differs is _replay_differs, tries - search.left)


Differs = Callable[[FuzzCase, CreateEngine], bool]


def _compare_differs(case: FuzzCase, create: CreateEngine) -> bool:
    return compare(case, create) is not None


def _replay_differs(case: FuzzCase, create: CreateEngine) -> bool:
    """Whether a reader of the trace would see that the engine differs."""
    trace = recorded(case, "")
    try:
        return not replay(trace, create).agrees
    except EnvironmentInvalidError:
        raise
    except Exception:  # a crash is a finding like any other
        return True


class _Search:
    """The smallest failing case so far, and how many may still be tried."""

    def __init__(self, case: FuzzCase, create: CreateEngine, differs: Differs, tries: int) -> None:
        self.case = case
        self.left = tries
        self._create = create
        self._differs = differs
        self._smaller = False

    def run(self) -> None:
        """Drop and simplify until nothing more can go."""
        self._smaller = True
        while self._smaller and self.left:
            self._smaller = False
            self._drop_bursts()
            self._drop(lambda case: len(case.network.plastic_mappings), reduce.with_mappings)
            self._drop(lambda case: case.network.neuron_count, reduce.with_neurons)
            self._drop(lambda case: case.network.synapse_count, reduce.with_synapses)
            self._drop(lambda case: reduce.input_count(case.plan), reduce.with_inputs)
            self._simplify()

    def _try(self, candidate: FuzzCase) -> bool:
        """Whether ``candidate`` fails too; then it is the case from now on."""
        if not self.left:
            return False
        self.left -= 1
        try:
            fails = self._differs(candidate, self._create)
        except BurstproofError:  # refused by the reference, or not for this machine
            return False
        if fails:
            self.case = candidate
            self._smaller = True
        return fails

    def _drop_bursts(self) -> None:
        """Bursts from the end, then from the start."""
        if any(bursts > 1 for bursts in self.case.runs) or self.case.handover is not None:
            while len(self.case.runs) > 1 and self._try(replace(self.case, runs=self.case.runs[:-1])):
                pass
            return
        low, high = 0, self.case.bursts  # differs at high, not at low
        while high - low > 1 and self.left:
            middle = (low + high) // 2
            low, high = (low, middle) if self._try(reduce.in_steps(self.case, middle)) else (middle, high)
        for left in (1, 2, 3, 5, 8):
            if left < self.case.bursts:
                later = reduce.advanced(self.case, self.case.bursts - left)
                if not np.isnan(later.network.neurons.membrane_potentials).any() and self._try(later):
                    return

    def _drop(self, count: Callable[[FuzzCase], int], without: Callable[[FuzzCase, Mask], FuzzCase]) -> None:
        """Leave out runs of things, half of them first, single ones last."""
        size = max(1, count(self.case) // 2)
        while size and self.left:
            start = 0
            while start < count(self.case) and self.left:
                kept = np.ones(count(self.case), np.bool_)
                kept[start : start + size] = False
                start += 0 if self._try(without(self.case, kept)) else size
            size //= 2

    def _simplify(self) -> None:
        """Set one thing after the other to its usual value."""
        index = 0
        while self.left:
            candidate = next(islice(reduce.plainer(self.case), index, None), None)
            if candidate is None:
                return
            index += 0 if self._try(candidate) else 1
