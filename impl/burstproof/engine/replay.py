"""Replay of a trace on an engine: how many bursts agree, and the first disagreement."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.engine.feature_state import columns_of
from burstproof.engine.options import EngineOptions
from burstproof.engine.precision import Precision, precision_named
from burstproof.engine.profile import profile_named
from burstproof.engine.protocol import CreateEngine, Progress
from burstproof.engine.reference import ReferenceEngine
from burstproof.engine.replay_features import pairs, words_of
from burstproof.engine.state import NO_STIMULUS, Burst, EngineState
from burstproof.engine.trace import Trace
from burstproof.errors import InputError, TraceError
from burstproof.network.fixed_point import FixedPoint
from burstproof.network.schema import LEARNT_FIELDS, STATE_FIELDS

RECORDING_TOLERANCE = 1e-5
"""Potentials agree with a recording if |a - b| <= this x max(1, |b|) (SEMANTICS section 7)."""


@dataclass(frozen=True)
class Disagreement:
    """The first difference between an engine and a trace.

    ``item`` is a neuron id, a synapse row, or for a created synapse source x 2^32 + target.
    """

    burst: int
    quantity: str
    item: int
    expected: str
    got: str

    def __str__(self) -> str:
        numbered = self.quantity in (*LEARNT_FIELDS, "postsynaptic_potentials")
        what = f"synapse {self.item}" if numbered else words_of(self.quantity, self.item)
        return (
            f"burst {self.burst}, {what}, {self.quantity.replace('_', ' ')}: expected {self.expected}, got {self.got}"
        )


@dataclass(frozen=True)
class Replay:
    """The result of a replay.

    Attributes
    ----------
    trace, backend, profile : str
    bursts : int
        Bursts in the trace.
    fired_agree, state_agree : int
        Bursts whose fired list agrees, and bursts whose whole recorded state agrees, fired list included.
    firings : int
        Firings in the trace.
    worst_difference : float
        Largest |a - b| / max(1, |b|) over all compared potentials.
    first : Disagreement or None
    sums : str
        Scale and width of the engine's sums.
    clamped : bool
        Whether a contribution was clamped.
    """

    trace: str
    backend: str
    profile: str
    bursts: int
    firings: int
    fired_agree: int
    state_agree: int
    worst_difference: float
    first: Disagreement | None
    sums: str
    clamped: bool

    @property
    def agrees(self) -> bool:
        """Whether all bursts agree in everything that the trace records."""
        return self.first is None and self.fired_agree == self.state_agree == self.bursts


def trace_options(trace: Trace, options: EngineOptions | None = None, *, emulate: bool = True) -> EngineOptions:
    """Options for the replay of ``trace``.

    A record of this package contains its settings. A recording of the real engine is replayed under the profile of
    ``options``, and with ``emulate`` the batch path is emulated.

    Raises
    ------
    InputError
        A record without settings.
    """
    base = options or EngineOptions()
    if not trace.exact:
        return replace(base, emulate_batch_path=emulate)
    settings = trace.settings
    missing = base.rules().keys() - {"precision", *settings}
    if missing:
        raise InputError(
            "the record does not say how it was made",
            where=f"{trace.name}.json: settings",
            got=sorted(missing),
            cure="Record it again",
        )
    return replace(
        base,
        profile=profile_named(str(settings["profile"])),
        emulate_batch_path=bool(settings["emulate_batch_path"]),
        max_stimulus=float(settings["max_stimulus"]),
        fractional_stimulus=bool(settings["fractional_stimulus"]),
        precision=precision_named(str(settings.get("precision", Precision.FP32.value))),
    )


def replay(
    trace: Trace,
    create_engine: CreateEngine,
    options: EngineOptions | None = None,
    *,
    emulate: bool = True,
    progress: Progress | None = None,
) -> Replay:
    """Run ``trace`` on a new engine and compare every burst.

    A recording that begins in the middle of a run lacks the weights behind the contributions under way at its start. So
    of its first burst only fired list, countdowns and counts are compared, and then the recorded state is restored
    (golden/README.md). If all sums are integers (scale 2^0), potentials must be equal, not only close.

    Raises
    ------
    TraceError
        A trace without a burst.
    """
    if not len(trace.bursts):
        cure = "Record one burst or more"
        raise TraceError("the trace holds no burst, so there is nothing to compare", where=trace.name, cure=cure)
    chosen = trace_options(trace, options, emulate=emulate)
    with create_engine(trace.network, chosen) as engine:
        if trace.at_start is not None:
            engine.restore(_state_at_start(trace, chosen))
        comparison = _Comparison(trace, exact=trace.exact or engine.fixed_point.k == 0)
        for index, number in enumerate(trace.bursts.tolist()):
            burst = engine.step(trace.plan.get(number, NO_STIMULUS))
            last = index == len(trace.bursts) - 1
            state = engine.state() if trace.states or (last and trace.end) else None
            unknown_past = index == 0 and trace.at_start is not None
            comparison.add(index, burst, state, unknown_past=unknown_past)
            if unknown_past and state is not None:
                engine.restore(replace(state, **{name: values[index] for name, values in trace.states.items()}))
            if progress is not None:
                progress(1)
        return comparison.result(engine.backend, chosen.profile.name, engine.fixed_point, engine.state().clamped)


def _state_at_start(trace: Trace, options: EngineOptions) -> EngineState:
    """The state before the first recorded burst, with the contributions of the recorded firings under way."""
    start = trace.at_start
    assert start is not None
    specification = ReferenceEngine.create(trace.network, options)
    state = specification.state()
    was_candidate = np.zeros(trace.network.neuron_count, np.bool_)
    was_candidate[start.candidates] = True
    last_fired, streak = state.last_fired.copy(), state.fire_streak.copy()
    history = min(1, max((m.window for m in trace.network.plastic_pairs), default=1) - 1)
    if history:
        last_fired[start.ids] = state.burst_count
        streak[start.ids] = 1
    order = np.argsort(start.ids)
    return specification.inject(
        replace(
            state,
            was_candidate=was_candidate & ~trace.network.neurons.mp_charge_accumulation,
            fired_ids=start.ids[order],
            fired_potentials=start.potentials[order],
            last_fired=last_fired,
            fire_streak=streak,
            history_bursts=history,
        )
    )


class _Comparison:
    """Counts agreeing bursts and keeps the first disagreement."""

    def __init__(self, trace: Trace, *, exact: bool) -> None:
        self._trace = trace
        self._exact = exact
        self._first: Disagreement | None = None
        self._fired_agree = 0
        self._state_agree = 0
        self._worst = 0.0
        self._offsets = np.searchsorted(
            trace.fired_burst, np.concatenate([trace.bursts, trace.bursts[-1:] + 1]), side="left"
        )

    def add(self, index: int, burst: Burst, state: EngineState | None, *, unknown_past: bool) -> None:
        """Compare burst ``index`` of the trace."""
        rows = slice(self._offsets[index], self._offsets[index + 1])
        ids, potentials = self._trace.fired_id[rows], self._trace.fired_mp[rows]
        found = self._fired(burst, ids)
        self._fired_agree += found is None
        if found is None and not unknown_past:
            found = self._values(burst.number, "potential_at_firing", ids, potentials, burst.fired_potentials)
        if state is not None:
            found = found or self._state(index, state, unknown_past)
            if not self._trace.exact:
                found = found or self._features(index, burst.number, state)
        self._state_agree += found is None
        self._first = self._first or found

    def _fired(self, burst: Burst, expected: npt.NDArray[np.uint32]) -> Disagreement | None:
        if np.array_equal(expected, burst.fired_ids):
            return None
        missing = np.setdiff1d(expected, burst.fired_ids)
        extra = np.setdiff1d(burst.fired_ids, expected)
        if not len(missing) and not len(extra):
            lists = (str(ids.tolist()[:20]) for ids in (expected, burst.fired_ids))
            return Disagreement(burst.number, "fired_list", int(expected[0]), *lists)
        neuron = int(min(np.concatenate([missing, extra])))
        fires, quiet = "fires", "does not fire"
        return Disagreement(
            burst.number,
            "fired_list",
            neuron,
            fires if neuron in missing else quiet,
            quiet if neuron in missing else fires,
        )

    def _state(self, index: int, state: EngineState, unknown_past: bool) -> Disagreement | None:
        number = int(self._trace.bursts[index])
        last = index == len(self._trace.bursts) - 1
        columns = {name: getattr(state, name) for name in (*STATE_FIELDS, *LEARNT_FIELDS)}
        columns |= columns_of(state.features) if last and state.features is not None else {}
        for name, column in columns.items():
            if unknown_past and name not in STATE_FIELDS[1:]:
                continue
            recorded = [self._trace.states[name][index]] if name in self._trace.states else []
            if last and name in self._trace.end:
                recorded.append(self._trace.end[name])
            for expected in recorded:  # recordings hold twins, which come last in a column, in other arrays
                got = column if self._trace.exact else column[: len(expected)]
                found = self._values(number, name, np.arange(len(expected)), expected, got)
                if found is not None:
                    return found
        return None

    def _features(self, index: int, number: int, state: EngineState) -> Disagreement | None:
        """Compare what a recording holds of features."""
        trace = self._trace
        for pair in pairs(trace.recorded, index, number, trace.network, state):
            found = self._values(number, pair.quantity, pair.items, pair.expected, pair.got)
            if found is not None:
                return found
        return None

    def _values(
        self,
        number: int,
        quantity: str,
        items: npt.NDArray[Any],
        expected: npt.NDArray[Any],
        got: npt.NDArray[Any],
    ) -> Disagreement | None:
        if expected.shape != got.shape:
            return Disagreement(number, quantity, min(len(expected), len(got)), str(len(expected)), str(len(got)))
        different = expected != got
        if expected.dtype.kind == "f":
            if self._trace.exact and not quantity.endswith("eligibility_traces"):
                different |= np.signbit(expected) != np.signbit(got)
            different &= ~(np.isnan(expected) & np.isnan(got))
            if not self._exact:
                different &= ~self._tolerated(expected, got)
        if not different.any():
            return None
        row = int(np.flatnonzero(different)[0])
        return Disagreement(number, quantity, int(items[row]), str(expected[row]), str(got[row]))

    def _tolerated(self, expected: npt.NDArray[np.float32], got: npt.NDArray[np.float32]) -> npt.NDArray[np.bool_]:
        with np.errstate(invalid="ignore"):
            wanted = expected.astype(np.float64)
            difference = np.abs(got.astype(np.float64) - wanted) / np.maximum(1.0, np.abs(wanted))
        self._worst = max(self._worst, float(np.max(difference, initial=0.0)))
        return difference <= RECORDING_TOLERANCE

    def result(self, backend: str, profile: str, fixed_point: FixedPoint, clamped: bool) -> Replay:
        """The result of the comparison."""
        return Replay(
            trace=self._trace.name,
            backend=backend,
            profile=profile,
            bursts=len(self._trace.bursts),
            firings=len(self._trace.fired_id),
            fired_agree=self._fired_agree,
            state_agree=self._state_agree,
            worst_difference=self._worst,
            first=self._first,
            sums=str(fixed_point),
            clamped=clamped,
        )
