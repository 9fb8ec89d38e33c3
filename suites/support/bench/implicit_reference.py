"""A reference for networks too large to be held: targets are drawn again whenever a neuron fires."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.engine.recorder import record_steps
from burstproof.engine.state import NO_PLAN, NO_STIMULUS, Burst, EngineState, Record, Recording, Stimulus, StimulusPlan
from burstproof.engine.stimulus import FORCED_POTENTIAL, coming_bursts
from burstproof.errors import InputError
from burstproof.network.fixed_point import FixedPoint
from burstproof.network.schema import NO_LIMIT, UNLIMITED_FIRES
from burstproof.network.synthetic.laws import end_parameters
from burstproof.network.synthetic.spec import LARGEST_EXACT_WEIGHT, SyntheticSpec
from hardware.host import take_host
from suites.support.bench.implicit_kernels import loops

_NO_WEIGHTS = np.empty(0, np.float32)


class ImplicitReference:
    """Steps the network of a driven specification without its synapses: 14 bytes per neuron, and who fired.

    It knows the rules that such networks use and no others: one constant whole contribution, delay 1, excitatory,
    accumulating neurons with a threshold and its limit, leak, excitability and a refractory period. Nothing of it is
    shared with an engine but the generator of the network, the fixed-point unit of its states, and how a recording is
    put together.

    Parameters
    ----------
    spec : SyntheticSpec
        Out-degree fixed.
    point : FixedPoint
        Of the engine that it judges; states are in its units.
    threads : int
        0 takes all usable cores.

    Raises
    ------
    InputError
        The specification uses a rule that is not known here.
    """

    backend = "implicit"

    def __init__(self, spec: SyntheticSpec, point: FixedPoint, threads: int = 0) -> None:
        _check(spec)
        self.spec = spec
        self.burst_count = 0
        self._fixed_point = point
        self._unit_of_state = int(point.quantise(np.array([_contribution(spec)], np.float32))[0][0])
        self._threads = threads or take_host().usable_cores
        self._loops = loops(spec.connectivity)
        count = spec.neurons
        self._arriving = np.zeros(count, np.int32)
        self._potentials = np.zeros(count, np.float32)
        self._countdowns = np.zeros(count, np.uint16)
        self._counts = np.zeros(count, np.uint16)
        self._found = np.empty(count, np.uint32), np.empty(count, np.float32)
        self._fired = np.empty(0, np.uint32), np.empty(0, np.float32)

    def step(self, stimulus: Stimulus = NO_STIMULUS) -> Burst:
        """Run one burst; ``stimulus`` may force firings only."""
        if len(stimulus.ids):
            raise InputError("the implicit reference takes forced firings only", got=f"{len(stimulus.ids)} amounts")
        self.burst_count += 1
        held = self._countdowns[stimulus.forced]
        ids, potentials, candidates = self._dynamics()
        refractory = held > 0
        self._countdowns[stimulus.forced[refractory]] = held[refractory]
        self._fired = _joined(ids, potentials, stimulus.forced)
        self._propagate(self._fired[0])
        return Burst(self.burst_count, self._fired[0].copy(), self._fired[1].copy(), candidates)

    def run(self, bursts: int, plan: StimulusPlan = NO_PLAN, record: Record = Record.FIRED) -> Recording:
        """Run ``bursts`` bursts one by one."""
        coming = coming_bursts(self.burst_count, bursts)
        return record_steps(coming, lambda number: self.step(plan.get(number, NO_STIMULUS)), record, None)

    def _dynamics(self) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.float32], int]:
        spec = self.spec
        rule = (
            np.float32(_contribution(spec)),
            np.float32(spec.threshold),
            np.float32(spec.threshold_limit),
            np.float32(1) - np.float32(spec.leak),
            np.float32(spec.excitability),
            np.uint16(spec.refractory_period),
        )
        state = self._potentials, self._countdowns, self._counts

        def work(first: int, last: int) -> tuple[int, int, int]:
            burst = np.int64(self.burst_count)
            done = self._loops.dynamics(rule, burst, first, last, self._arriving, state, self._found)
            return first, *done

        parts = self._spread(spec.neurons, work)
        ids, potentials = (np.concatenate([a[first : first + n] for first, n, _ in parts]) for a in self._found)
        return ids, potentials, sum(candidates for _, _, candidates in parts)

    def _propagate(self, ids: npt.NDArray[np.uint32]) -> None:
        """Draw the rows of ``ids``, then let each thread count what arrives in its span of neurons."""
        spec, fan = self.spec, self.spec.synapses_per_neuron
        numbers = np.uint32(spec.seed), *end_parameters(spec)
        reached = np.empty(len(ids) * fan, np.uint32)
        self._spread(len(ids), lambda first, last: self._loops.targets(numbers, fan, ids, first, last, reached))
        self._arriving[:] = 0
        self._spread(spec.neurons, lambda low, high: self._loops.add(reached, low, high, self._arriving))

    def _spread(self, items: int, work: Callable[[int, int], Any]) -> list[Any]:
        """``work`` on equal spans of ``items``, one per thread, its results in order."""
        ends = [items * part // self._threads for part in range(self._threads + 1)]
        with ThreadPoolExecutor(self._threads) as pool:
            return list(pool.map(lambda span: work(*span), pairwise(ends)))

    def state(self) -> EngineState:
        """The canonical state, without weights."""
        none = np.zeros(self.spec.neurons, np.bool_)
        return EngineState(
            burst_count=self.burst_count,
            membrane_potentials=self._potentials.copy(),
            refractory_countdowns=self._countdowns.copy(),
            consecutive_fire_counts=self._counts.copy(),
            weights=_NO_WEIGHTS,
            eligibility_traces=_NO_WEIGHTS,
            was_candidate=none,
            pending=self._arriving[None] * np.int64(self._unit_of_state),
            pending_candidate=self._arriving[None] > 0,
            fired_ids=self._fired[0].copy(),
            fired_potentials=self._fired[1].copy(),
            last_fired=np.broadcast_to(np.int64(0), none.shape),
            fire_streak=np.broadcast_to(np.uint16(0), none.shape),
            history_bursts=0,
            clamped=False,
            fixed_point=self._fixed_point,
        )

    def restore(self, state: EngineState) -> None:
        """Continue from ``state`` of an engine over the same specification."""
        self.burst_count = state.burst_count
        self._arriving[:] = state.pending[0] // self._unit_of_state
        self._potentials[:] = state.membrane_potentials
        self._countdowns[:] = state.refractory_countdowns
        self._counts[:] = state.consecutive_fire_counts
        self._fired = state.fired_ids.copy(), state.fired_potentials.copy()


def _contribution(spec: SyntheticSpec) -> float:
    return float(np.float32(spec.weights) * np.float32(spec.postsynaptic_potential))


def _check(spec: SyntheticSpec) -> None:
    whole = not isinstance(spec.weights, tuple) and _contribution(spec).is_integer()
    known = {
        "connectivity": spec.connectivity != "fixed_in_degree",
        "weights": whole and 1 <= _contribution(spec) <= LARGEST_EXACT_WEIGHT // 1024,
        "delays": spec.delays == 1,
        "inhibitory_fraction": spec.inhibitory_fraction == 0,
        "threshold_limit": spec.threshold_limit <= float(NO_LIMIT),
        "consecutive_fire_limit": spec.consecutive_fire_limit in (0, UNLIMITED_FIRES),
        "accumulates": spec.accumulates,
    }
    for name, fine in known.items():
        if not fine:
            raise InputError(
                "the implicit reference does not know this rule",
                where=f"SyntheticSpec.{name}",
                got=getattr(spec, name),
                cure="Judge this network with an engine that holds it",
            )


def _joined(
    ids: npt.NDArray[np.uint32], potentials: npt.NDArray[np.float32], forced: npt.NDArray[np.uint32]
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.float32]]:
    """The fired list with those forced to fire who did not fire anyway, ascending."""
    extra = np.setdiff1d(forced, ids)
    every = np.concatenate([ids, extra])
    values = np.concatenate([potentials, np.full(len(extra), FORCED_POTENTIAL, np.float32)])
    order = np.argsort(every, kind="stable")
    return every[order], values[order]
