"""Plasticity worked out late: what a synapse learnt is deferred until its weight is needed (SEMANTICS section 5).

A weight matters when its source fires. Until then it is enough to know in which bursts both ends fired: a word for each
neuron (``plan.histories``). So a burst looks at the rows of what fired, and at one row in ``period`` of all others, so
that no row waits longer than the words remember. All steps are those of learning burst by burst, in the same order.

A word, shifted so that its highest bit is the present burst, is called a *past*: bit 63 - i tells of i bursts ago.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from burstproof.device.numba_cuda import cuda
from burstproof.engine.cuda.args import ComputedRows, Deferred, Floats, History, Identity, Longs, Steering
from burstproof.engine.cuda.kernels.control import BURST, HISTORY, SETTLED
from burstproof.engine.cuda.kernels.identity import make_id_of
from burstproof.engine.cuda.plan.block_size import WARP
from burstproof.engine.cuda.plan.histories import BURSTS
from burstproof.engine.cuda.plan.shard_variant import ShardVariant

_NEWEST, _OLD = 1 << 63, 255
_EXACT = 1 << 22
"""Whole weights below it stay exact, whatever a word's bursts add."""
_TOGETHER = 4
"""Entries of a row that a thread reads at a time."""
_ALL = (1 << 64) - 1


class Lesson(NamedTuple):
    """What a row's synapses of one mapping have in common.

    Attributes
    ----------
    before : uint64
        Bursts in whose window the source fired.
    begun : uint64
        Bursts in which the mapping learns; none without a mapping.
    alone : uint64
        All bits where one end's firing is a step, too; none where the step of depression is 0.
    window : int64
    raised, lowered : float32
    """

    before: np.uint64
    begun: np.uint64
    alone: np.uint64
    window: np.int64
    raised: np.float32
    lowered: np.float32


@cache
def make_past() -> Callable[..., Any]:
    """``past(word, burst)`` -> uint64."""
    low, high, bursts = np.uint64(_OLD), np.uint64(_ALL - _OLD), np.uint64(BURSTS)

    def past(word: np.uint64, burst: np.int64) -> Any:
        age = np.uint64((burst - np.int64(word & low)) & np.int64(_OLD))
        found = np.uint64(0)
        if age < bursts:
            found = np.uint64((word & high) >> age)
        return found

    return cuda.jit(device=True)(past)  # type: ignore[no-any-return]


@cache
def make_note_past() -> Callable[..., Any]:
    """``note_past(neuron, burst, history)``: the neuron fires."""
    past, newest, high = make_past(), np.uint64(_NEWEST), np.uint64(_ALL - _OLD)

    def note_past(neuron: np.uint32, burst: np.int64, history: History) -> None:
        before = np.uint64(past(history.histories[neuron], burst) & high)
        history.histories[neuron] = np.uint64(before | newest | np.uint64(burst & np.int64(_OLD)))

    return cuda.jit(device=True)(note_past)  # type: ignore[no-any-return]


@cache
def make_waiting() -> Callable[..., Any]:
    """``waiting(own, source, burst, settles, control, deferred)`` -> uint64: the bursts that a row has to catch up on.

    ``own`` is the past of its source. ``settles`` takes the present burst in; a burst that goes on with the weights as
    they were before it does not. The row was brought up to date when its source last fired, when its turn last came,
    and when all were.
    """
    newest, everything = np.uint64(_NEWEST), np.uint64(_ALL)

    def waiting(
        own: np.uint64, source: np.uint32, burst: np.int64, settles: bool, control: Longs, deferred: Deferred
    ) -> Any:
        period = np.int64(deferred.period)
        back = np.int64((burst - np.int64(source)) % period)
        found, fired = everything, own
        if not settles:
            found, fired = np.uint64(everything ^ newest), np.uint64(own & (everything ^ newest))
            if back == 0:
                back = period
        for step in (1, 2, 4, 8, 16, 32):
            fired = np.uint64(fired | (fired >> np.uint64(step)))
        found = np.uint64(found & (everything ^ (fired >> np.uint64(1))))
        found = np.uint64(found & (everything << np.uint64(np.int64(63) - back)))
        settled = np.int64(burst - control[SETTLED])
        if settled == 0:
            found = np.uint64(0)
        elif settled < 64:
            found = np.uint64(found & (everything << np.uint64(np.int64(64) - settled)))
        return found

    return cuda.jit(device=True)(waiting)  # type: ignore[no-any-return]


@cache
def make_within() -> Callable[..., Any]:
    """``within(past, window)`` -> uint64: the bursts in whose window of bursts the neuron fired."""

    def within(past: np.uint64, window: np.int64) -> Any:
        width, found = np.int64(1), np.uint64(past)
        while 2 * width <= window:
            found = np.uint64(found | (found << np.uint64(width)))
            width = 2 * width
        return np.uint64(found | (found << np.uint64(window - width)))

    return cuda.jit(device=True)(within)  # type: ignore[no-any-return]


@cache
def make_lesson() -> Callable[..., Any]:
    """``lesson(rule, own, burst, deferred)`` -> Lesson of 1 + a mapping, or of none; ``own`` is the source's past."""
    within, nothing, everything, none = make_within(), np.float32(0), np.uint64(_ALL), np.uint64(0)

    def lesson(rule: np.uint32, own: np.uint64, burst: np.int64, deferred: Deferred) -> Any:
        place = np.uint32(max(rule, np.uint32(1)) - np.uint32(1))
        window, raised = deferred.rule_windows[place], deferred.potentiations[place]
        lowered = deferred.depressions[place]
        learning = np.int64(burst - deferred.rule_begins[place])
        begun, alone = everything, none
        if rule == np.uint32(0) or learning < 0:
            begun = none
        elif learning < 63:
            begun = np.uint64(everything << np.uint64(np.int64(63) - learning))
        if lowered > nothing:
            alone = everything
        return Lesson(within(own, window), begun, alone, window, raised, lowered)

    return cuda.jit(device=True)(lesson)  # type: ignore[no-any-return]


@cache
def make_steps() -> Callable[..., Any]:
    """``steps(lesson, word, burst)`` -> uint64 twice: bursts of potentiation, bursts with any step.

    ``word`` is that of the target.
    """
    past, within = make_past(), make_within()

    def steps(lesson: Lesson, word: np.uint64, burst: np.int64) -> Any:
        after = within(past(word, burst), lesson.window)
        both = np.uint64(lesson.before & after)
        return both, np.uint64((both | ((lesson.before | after) & lesson.alone)) & lesson.begun)

    return cuda.jit(device=True)(steps)  # type: ignore[no-any-return]


@cache
def make_learnt() -> Callable[..., Any]:
    """``learnt(entry, weight, word, lesson, bursts, burst, rows)`` -> float32: a weight, brought up to date.

    ``word`` is that of the target, ``bursts`` are those to catch up on. Steps are whole numbers: where the weight is
    one, too, and only falls, or never falls below 0, their order does not matter and they are counted.
    """
    steps_of = make_steps()
    one, nothing, exact, everything = np.uint64(1), np.float32(0), np.float32(_EXACT), np.uint64(_ALL)

    def learnt(
        entry: np.uint64,
        weight: np.float32,
        word: np.uint64,
        lesson: Lesson,
        bursts: np.uint64,
        burst: np.int64,
        rows: ComputedRows,
    ) -> Any:
        both, steps = steps_of(lesson, word, burst)
        steps = np.uint64(steps & bursts)
        if steps != np.uint64(0):
            rises = np.float32(cuda.popc(np.uint64(steps & both)))
            falls = np.float32(cuda.popc(np.uint64(steps & (both ^ everything))))
            least = np.float32(weight - np.float32(lesson.lowered * falls))
            whole = abs(weight) < exact and np.float32(np.int32(weight)) == weight
            if whole and (rises == nothing or least >= nothing):
                weight = np.float32(max(least, nothing) + np.float32(lesson.raised * rises))
            else:
                while steps != np.uint64(0):
                    step = np.uint64(steps & ((steps ^ everything) + one))
                    steps = np.uint64(steps ^ step)
                    if both & step != np.uint64(0):
                        weight = np.float32(weight + lesson.raised)
                    else:
                        weight = max(np.float32(weight - lesson.lowered), nothing)
            rows.weights[entry] = weight
        return weight

    return cuda.jit(device=True)(learnt)  # type: ignore[no-any-return]


@cache
def make_turns() -> Callable[..., Any]:
    """``turns(control, deferred)`` -> int64: the rows whose turn it is in this burst: every ``period``-th one.

    One thread also moves the history on, by which a state tells when rules begin.
    """

    def turns(control: Longs, deferred: Deferred) -> Any:
        if cuda.grid(1) == 0 and control[HISTORY] < np.int64(deferred.longest) - 1:
            control[HISTORY] += 1
        period = np.int64(deferred.period)
        first = np.int64(control[BURST] % period)
        return np.int64((np.int64(deferred.sources) - first + period - 1) // period)

    return cuda.jit(device=True)(turns)  # type: ignore[no-any-return]


@cache
def make_take_turn(shard: ShardVariant) -> Callable[..., Any]:
    """``take_turn(turn, lane, control, rows, deferred, identity)``: a warp brings the row up to date whose turn it is.

    Not if its source fires in this burst: whoever sends the row does it then. A word that says nothing is cleared.
    """
    past, waiting, learnt, id_of = make_past(), make_waiting(), make_learnt(), make_id_of(shard)
    lesson_of = make_lesson()
    newest, nothing, warp, span = np.uint64(_NEWEST), np.uint64(0), np.uint64(WARP), np.uint64(WARP * _TOGETHER)

    def take_turn(
        turn: np.int64, lane: np.uint32, control: Longs, rows: ComputedRows, deferred: Deferred, identity: Identity
    ) -> None:
        burst, period = control[BURST], np.int64(deferred.period)
        source = np.uint32(burst % period + turn * period)
        own = past(deferred.histories[source], burst)
        if own & newest == nothing:
            if own == nothing and lane == np.uint32(0):
                deferred.histories[source] = nothing
            bursts = waiting(own, source, burst, False, control, deferred)
            targets = cuda.local.array(_TOGETHER, np.uint32)
            weights = cuda.local.array(_TOGETHER, np.float32)
            rules = cuda.local.array(_TOGETHER, np.uint32)
            words = cuda.local.array(_TOGETHER, np.uint64)
            entry = np.uint64(np.uint64(rows.computed_offsets[source]) + np.uint64(lane))
            end = np.uint64(rows.computed_offsets[np.uint32(source + np.uint32(1))])
            rule, lesson = np.uint32(0), lesson_of(np.uint32(0), own, burst, deferred)
            while entry < end:
                for part in range(_TOGETHER):
                    at = np.uint64(entry + np.uint64(part) * warp)
                    targets[part], weights[part], rules[part] = np.uint32(0), np.float32(0), np.uint32(0)
                    if at < end:
                        targets[part], weights[part] = rows.computed_targets[at], rows.weights[at]
                        rules[part] = deferred.learning_rules[at]
                for part in range(_TOGETHER):
                    words[part] = deferred.histories[id_of(targets[part], identity)]
                for part in range(_TOGETHER):
                    at = np.uint64(entry + np.uint64(part) * warp)
                    if at < end and rules[part] != rule:
                        rule = rules[part]
                        lesson = lesson_of(rule, own, burst, deferred)
                    if at < end:
                        learnt(at, weights[part], words[part], lesson, bursts, burst, rows)
                entry = np.uint64(entry + span)

    return cuda.jit(device=True)(take_turn)  # type: ignore[no-any-return]


def make_settle(shard: ShardVariant) -> Callable[..., None]:
    """``settle(...)``: bring all weights up to date, and write every trace; a warp for each row.

    A trace is the step of the present burst, so nobody needs it before. The host then says that all rows are settled.
    """
    past, waiting, lesson_of, learnt = make_past(), make_waiting(), make_lesson(), make_learnt()
    steps_of, id_of = make_steps(), make_id_of(shard)
    lanes, newest, nothing = np.uint32(WARP - 1), np.uint64(_NEWEST), np.uint64(0)

    def settle(
        steering: Steering, rows: ComputedRows, deferred: Deferred, identity: Identity, eligibility: Floats
    ) -> None:
        control, thread = steering.control, np.uint32(cuda.grid(1))
        burst = control[BURST]
        source = np.uint32(thread // np.uint32(WARP))
        while source < deferred.sources:
            own = past(deferred.histories[source], burst)
            bursts = waiting(own, source, burst, True, control, deferred)
            entry = np.uint64(np.uint64(rows.computed_offsets[source]) + np.uint64(thread & lanes))
            end = np.uint64(rows.computed_offsets[np.uint32(source + np.uint32(1))])
            while entry < end:
                word = deferred.histories[id_of(rows.computed_targets[entry], identity)]
                lesson = lesson_of(np.uint32(deferred.learning_rules[entry]), own, burst, deferred)
                learnt(entry, rows.weights[entry], word, lesson, bursts, burst, rows)
                if lesson.begun & newest != nothing:
                    both, steps = steps_of(lesson, word, burst)
                    change = np.float32(0)
                    if both & newest != nothing:
                        change = lesson.raised
                    elif steps & newest != nothing:
                        change = np.float32(-lesson.lowered)
                    eligibility[entry] = change
                entry = np.uint64(entry + np.uint64(WARP))
            source = np.uint32(source + np.uint32(np.uint32(cuda.gridsize(1)) // np.uint32(WARP)))

    return settle
