"""Deferred plasticity: a weight is updated when it is needed, not in every burst (SEMANTICS section 5).

A weight is needed when its source fires. Until then it is enough to know in which recent bursts both ends fired: a
history word per neuron (``plan.histories``). So a burst updates the rows of what fired, and one in ``period`` of all
other rows in turn, so that no row waits longer than the words reach back. All steps are those of learning burst by
burst, in the same order.

A *past* is a history word shifted so that its highest bit is the present burst: bit 63 - i stands for i bursts ago. All
sets of bursts are bit masks of this form.
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
"""Integer weights below it stay exact, whatever the bursts of one word add."""
_TOGETHER = 4
"""Entries of a row that a thread loads at once."""
_ALL = (1 << 64) - 1


class RowRule(NamedTuple):
    """One mapping's rule of plasticity, with what all synapses of a row have in common under it.

    Attributes
    ----------
    source_fired : uint64
        Bursts in whose window the source fired.
    learning : uint64
        Bursts in which the mapping learns; 0 without a mapping.
    depresses : uint64
        All bits set if the firing of one end alone is a step of depression, 0 if that step is 0.
    window : int64
    potentiation, depression : float32
        Size of each step.
    """

    source_fired: np.uint64
    learning: np.uint64
    depresses: np.uint64
    window: np.int64
    potentiation: np.float32
    depression: np.float32


@cache
def make_past() -> Callable[..., Any]:
    """``past(word, burst)`` -> uint64 past of a neuron whose history is ``word``."""
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
    """``note_past(neuron, burst, history)``: record in the neuron's history word that it fires."""
    past, newest, high = make_past(), np.uint64(_NEWEST), np.uint64(_ALL - _OLD)

    def note_past(neuron: np.uint32, burst: np.int64, history: History) -> None:
        before = np.uint64(past(history.histories[neuron], burst) & high)
        history.histories[neuron] = np.uint64(before | newest | np.uint64(burst & np.int64(_OLD)))

    return cuda.jit(device=True)(note_past)  # type: ignore[no-any-return]


@cache
def make_waiting() -> Callable[..., Any]:
    """``waiting(source_past, source, burst, settles, control, deferred)`` -> uint64 bursts that a row has missed.

    Its weights have yet to learn from these. With ``settles`` the present burst is included; during a burst, which uses
    the weights from before it, it is not. The row was last updated when its source fired, when its turn came, or when
    all rows were, whichever was latest.
    """
    newest, everything = np.uint64(_NEWEST), np.uint64(_ALL)

    def waiting(
        source_past: np.uint64, source: np.uint32, burst: np.int64, settles: bool, control: Longs, deferred: Deferred
    ) -> Any:
        period = np.int64(deferred.period)
        back = np.int64((burst - np.int64(source)) % period)
        found, fired = everything, source_past
        if not settles:
            found, fired = np.uint64(everything ^ newest), np.uint64(source_past & (everything ^ newest))
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
    """``within(past, window)`` -> uint64 bursts in whose window the neuron fired."""

    def within(past: np.uint64, window: np.int64) -> Any:
        width, found = np.int64(1), np.uint64(past)
        while 2 * width <= window:
            found = np.uint64(found | (found << np.uint64(width)))
            width = 2 * width
        return np.uint64(found | (found << np.uint64(window - width)))

    return cuda.jit(device=True)(within)  # type: ignore[no-any-return]


@cache
def make_row_rule() -> Callable[..., Any]:
    """``row_rule(rule, source_past, burst, deferred)`` -> RowRule of mapping ``rule - 1``, or of none if that is -1."""
    within, nothing, everything, none = make_within(), np.float32(0), np.uint64(_ALL), np.uint64(0)

    def row_rule(rule: np.uint32, source_past: np.uint64, burst: np.int64, deferred: Deferred) -> Any:
        place = np.uint32(max(rule, np.uint32(1)) - np.uint32(1))
        window, potentiation = deferred.rule_windows[place], deferred.potentiations[place]
        depression = deferred.depressions[place]
        age = np.int64(burst - deferred.rule_begins[place])
        learning, depresses = everything, none
        if rule == np.uint32(0) or age < 0:
            learning = none
        elif age < 63:
            learning = np.uint64(everything << np.uint64(np.int64(63) - age))
        if depression > nothing:
            depresses = everything
        return RowRule(within(source_past, window), learning, depresses, window, potentiation, depression)

    return cuda.jit(device=True)(row_rule)  # type: ignore[no-any-return]


@cache
def make_steps() -> Callable[..., Any]:
    """``steps(row_rule, target_word, burst)`` -> (uint64 bursts in which both ends fired, uint64 bursts with any step).

    ``target_word`` is the target's history. A step is a potentiation if both fired, else a depression.
    """
    past, within = make_past(), make_within()

    def steps(row_rule: RowRule, target_word: np.uint64, burst: np.int64) -> Any:
        after = within(past(target_word, burst), row_rule.window)
        both = np.uint64(row_rule.source_fired & after)
        return both, np.uint64((both | ((row_rule.source_fired | after) & row_rule.depresses)) & row_rule.learning)

    return cuda.jit(device=True)(steps)  # type: ignore[no-any-return]


@cache
def make_update_weight() -> Callable[..., Any]:
    """``update_weight(entry, weight, target_word, row_rule, bursts, burst, rows)`` -> float32 weight after ``bursts``.

    ``target_word`` is the target's history. Steps are integers. If the weight is an integer too, and either only falls
    or cannot fall below 0, the order of the steps does not matter, and they are counted.
    """
    steps_of = make_steps()
    one, nothing, exact, everything = np.uint64(1), np.float32(0), np.float32(_EXACT), np.uint64(_ALL)

    def update_weight(
        entry: np.uint64,
        weight: np.float32,
        target_word: np.uint64,
        row_rule: RowRule,
        bursts: np.uint64,
        burst: np.int64,
        rows: ComputedRows,
    ) -> Any:
        both, steps = steps_of(row_rule, target_word, burst)
        steps = np.uint64(steps & bursts)
        if steps != np.uint64(0):
            rises = np.float32(cuda.popc(np.uint64(steps & both)))
            falls = np.float32(cuda.popc(np.uint64(steps & (both ^ everything))))
            least = np.float32(weight - np.float32(row_rule.depression * falls))
            whole = abs(weight) < exact and np.float32(np.int32(weight)) == weight
            if whole and (rises == nothing or least >= nothing):
                weight = np.float32(max(least, nothing) + np.float32(row_rule.potentiation * rises))
            else:
                while steps != np.uint64(0):
                    step = np.uint64(steps & ((steps ^ everything) + one))
                    steps = np.uint64(steps ^ step)
                    if both & step != np.uint64(0):
                        weight = np.float32(weight + row_rule.potentiation)
                    else:
                        weight = max(np.float32(weight - row_rule.depression), nothing)
            rows.weights[entry] = weight
        return weight

    return cuda.jit(device=True)(update_weight)  # type: ignore[no-any-return]


@cache
def make_rows_due() -> Callable[..., Any]:
    """``rows_due(control, deferred)`` -> int64 number of rows whose turn it is in this burst: every ``period``-th one.

    One thread also lengthens the history by a burst: a state tells by it when rules begin.
    """

    def rows_due(control: Longs, deferred: Deferred) -> Any:
        if cuda.grid(1) == 0 and control[HISTORY] < np.int64(deferred.longest) - 1:
            control[HISTORY] += 1
        period = np.int64(deferred.period)
        first = np.int64(control[BURST] % period)
        return np.int64((np.int64(deferred.sources) - first + period - 1) // period)

    return cuda.jit(device=True)(rows_due)  # type: ignore[no-any-return]


@cache
def make_update_row(shard: ShardVariant) -> Callable[..., Any]:
    """``update_row(turn, lane, control, rows, deferred, identity)``: update the row of a turn, by a warp.

    If its source fires in this burst, it is left to the warp that sends the row. A history word without a firing is
    cleared.
    """
    past, waiting, update_weight, id_of = make_past(), make_waiting(), make_update_weight(), make_id_of(shard)
    rule_of_row = make_row_rule()
    newest, nothing, warp, span = np.uint64(_NEWEST), np.uint64(0), np.uint64(WARP), np.uint64(WARP * _TOGETHER)

    def update_row(
        turn: np.int64, lane: np.uint32, control: Longs, rows: ComputedRows, deferred: Deferred, identity: Identity
    ) -> None:
        burst, period = control[BURST], np.int64(deferred.period)
        source = np.uint32(burst % period + turn * period)
        source_past = past(deferred.histories[source], burst)
        if source_past & newest == nothing:
            if source_past == nothing and lane == np.uint32(0):
                deferred.histories[source] = nothing
            bursts = waiting(source_past, source, burst, False, control, deferred)
            targets = cuda.local.array(_TOGETHER, np.uint32)
            weights = cuda.local.array(_TOGETHER, np.float32)
            rules = cuda.local.array(_TOGETHER, np.uint32)
            target_words = cuda.local.array(_TOGETHER, np.uint64)
            entry = np.uint64(np.uint64(rows.computed_offsets[source]) + np.uint64(lane))
            end = np.uint64(rows.computed_offsets[np.uint32(source + np.uint32(1))])
            rule, row_rule = np.uint32(0), rule_of_row(np.uint32(0), source_past, burst, deferred)
            while entry < end:
                for part in range(_TOGETHER):
                    at = np.uint64(entry + np.uint64(part) * warp)
                    targets[part], weights[part], rules[part] = np.uint32(0), np.float32(0), np.uint32(0)
                    if at < end:
                        targets[part], weights[part] = rows.computed_targets[at], rows.weights[at]
                        rules[part] = deferred.learning_rules[at]
                for part in range(_TOGETHER):
                    target_words[part] = deferred.histories[id_of(targets[part], identity)]
                for part in range(_TOGETHER):
                    at = np.uint64(entry + np.uint64(part) * warp)
                    if at < end and rules[part] != rule:
                        rule = rules[part]
                        row_rule = rule_of_row(rule, source_past, burst, deferred)
                    if at < end:
                        update_weight(at, weights[part], target_words[part], row_rule, bursts, burst, rows)
                entry = np.uint64(entry + span)

    return cuda.jit(device=True)(update_row)  # type: ignore[no-any-return]


def make_settle(shard: ShardVariant) -> Callable[..., None]:
    """``settle(...)``: bring all weights up to date and write all eligibility traces; a warp takes a row.

    A trace is the step of the present burst, so it is not needed before. The host then notes that all rows are settled.
    """
    past, waiting, rule_of_row, update_weight = make_past(), make_waiting(), make_row_rule(), make_update_weight()
    steps_of, id_of = make_steps(), make_id_of(shard)
    lanes, newest, nothing = np.uint32(WARP - 1), np.uint64(_NEWEST), np.uint64(0)

    def settle(
        steering: Steering, rows: ComputedRows, deferred: Deferred, identity: Identity, eligibility: Floats
    ) -> None:
        control, thread = steering.control, np.uint32(cuda.grid(1))
        burst = control[BURST]
        source = np.uint32(thread // np.uint32(WARP))
        while source < deferred.sources:
            source_past = past(deferred.histories[source], burst)
            bursts = waiting(source_past, source, burst, True, control, deferred)
            entry = np.uint64(np.uint64(rows.computed_offsets[source]) + np.uint64(thread & lanes))
            end = np.uint64(rows.computed_offsets[np.uint32(source + np.uint32(1))])
            while entry < end:
                target_word = deferred.histories[id_of(rows.computed_targets[entry], identity)]
                row_rule = rule_of_row(np.uint32(deferred.learning_rules[entry]), source_past, burst, deferred)
                update_weight(entry, rows.weights[entry], target_word, row_rule, bursts, burst, rows)
                if row_rule.learning & newest != nothing:
                    both, steps = steps_of(row_rule, target_word, burst)
                    change = np.float32(0)
                    if both & newest != nothing:
                        change = row_rule.potentiation
                    elif steps & newest != nothing:
                        change = np.float32(-row_rule.depression)
                    eligibility[entry] = change
                entry = np.uint64(entry + np.uint64(WARP))
            source = np.uint32(source + np.uint32(np.uint32(cuda.gridsize(1)) // np.uint32(WARP)))

    return settle
