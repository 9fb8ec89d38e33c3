"""Kernels of the numba CPU engine for the dynamics of a burst (SEMANTICS section 3), in vector instructions.

The rules are those of ``rules.candidate``, written without branches: every neuron takes the same path and the results
are chosen at the end. Which neuron is a candidate no processor predicts, so a branch would cost more than the rules,
and without branches the compiler works on several neurons at once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from burstproof.engine.compiler import inner_compiler
from burstproof.engine.cpu.arrays import Array, Floats, Ids, Neurons
from burstproof.engine.cpu.intrinsics import choose, on_stack
from burstproof.engine.cpu.key import KernelKey
from burstproof.engine.cpu.regions import ALIGNED
from burstproof.engine.cpu.rounding import make_rounded
from burstproof.engine.cpu.sums import make_read
from burstproof.engine.rules import Compiled, Features, make_rules
from burstproof.network.schema import NO_LIMIT, UNLIMITED_FIRES, Parameters

_BLOCK = 1024
_ZERO, _CERTAIN, _CEILING = np.float32(0), np.float32(0.999), np.float32(NO_LIMIT)
_NONE, _ONE, _MOST = np.uint16(0), np.uint16(1), np.uint16(65535)
_EVEN_BYTES, _SUM_OF_PAIRS = np.uint64(0x00FF00FF00FF00FF), np.uint64(0x0001000100010001)
_BYTE, _TOP_PAIR = np.uint64(8), np.uint64(48)
_UNLIMITED = np.uint16(UNLIMITED_FIRES)


class Marks(NamedTuple):
    """What a block finds of each of its neurons: whether it is touched and by which ``inputs``, whether it ``fires``,
    and the potential ``before`` the reset; ``places`` counts from 0."""

    places: Ids
    touches: Array
    inputs: Floats
    fires: Array
    before: Floats


def _make_take() -> Compiled:
    read = make_read()

    @inner_compiler
    def take(sums: Array, place: np.uint64, unit: np.float32) -> tuple[np.bool_, np.float32]:
        """Whether anything has arrived at a neuron, and how much; nothing is left there."""
        touched = sums[place] != 0
        amount = choose(touched, np.float32(read(sums, place)), _ZERO) * unit
        sums[place] = 0
        return touched, amount

    return take


def _make_window(features: Features) -> Compiled:
    limited, draws = features.threshold_limits, features.excitabilities
    ignores_limit = features.emulate_batch_path and features.batch_ignores_limit_and_zeroes
    draw = make_rules(features, inner_compiler).draw

    @inner_compiler
    def window(
        v: np.float32,
        threshold: np.float32,
        threshold_limit: np.float32,
        excitability: np.float32,
        neuron: np.uint32,
        burst: np.uint32,
        batch: bool,
    ) -> tuple[np.bool_, np.bool_]:
        """Whether a potential lies in the window, and whether the excitability lets it pass."""
        over = v > (threshold_limit if limited else _CEILING)
        if ignores_limit:
            over = over & (not batch)
        inside = (v >= threshold) & (not over)
        if not draws:
            return inside, inside
        drawn = (excitability > _ZERO) & (draw(neuron, burst) < excitability)
        return inside, inside & (drawn | (excitability >= _CERTAIN))

    return window


def _make_kept(features: Features) -> Compiled:
    clamps, full = features.clamp_potentials, np.float32(255)

    @inner_compiler
    def kept(potential: np.float32, neuron: int, n: Neurons) -> np.float32:
        """``potential`` of a neuron within what the precision ``feagi-int8`` keeps."""
        if clamps:
            bounded = choose(potential < _ZERO, _ZERO, potential)
            potential = choose(n.unclamped[neuron], potential, choose(bounded > full, full, bounded))
        return potential

    return kept


def _make_block(key: KernelKey) -> Compiled:
    features = key.features
    mapped, take = key.shard, _make_take()
    restarts, refractory = features.restarts, features.refractory_periods
    fires_limited, counts_decide = features.consecutive_fire_limits, features.counts_decide
    restart_all = features.restart_all and not key.restart_fired
    restart_candidates, ticks_always = not features.restart_all, not features.countdown_only_candidates
    floors = not features.negative_sum_lowers
    snoozes, batch_path = features.snooze_periods, features.emulate_batch_path
    batch_zeroes = features.batch_ignores_limit_and_zeroes
    window, kept = _make_window(features), _make_kept(features)
    exact, rounded = features.storage.exact, make_rounded(features.storage, inner_compiler)

    @inner_compiler
    def block(
        first: int,
        end: int,
        number: np.uint32,
        batch: bool,
        sums: Array,
        p: Parameters,
        n: Neurons,
        unit: np.float32,
        marks: Marks,
    ) -> None:
        """Dynamics of neurons first ... end - 1, into ``marks``.

        64-bit sums are converted in a loop of their own: in the main loop they would halve the vector width.
        """
        base, wide = np.uint32(first), np.iinfo(sums.dtype).bits == 64
        if wide:
            for j in range(np.uint64(end - first)):
                marks.touches[j], marks.inputs[j] = take(sums, np.uint64(first) + j, unit)
        for j in range(np.uint64(end - first)):
            i = np.uint64(first) + j
            touched, x = (marks.touches[j], marks.inputs[j]) if wide else take(sums, i, unit)
            v, rc, cc = n.membrane_potentials[i], n.refractory_countdowns[i], n.consecutive_fire_counts[i]
            if restarts and restart_candidates:
                v = choose(n.was_candidate[i] & (rc == _NONE if refractory else True), _ZERO, v)
            if restarts and restart_all:
                v = choose(p.mp_charge_accumulation[i], v, _ZERO)
            if floors:
                x = choose((x < _ZERO) & (p.mp_charge_accumulation[i] if restarts else True), _ZERO, x)
            blocked = rc > _NONE if refractory else False
            reached = touched & (not blocked)
            u = kept(v + x, i, n)
            neuron = n.ids[i] if mapped else base + marks.places[j]
            inside, passes = window(
                u, p.thresholds[i], p.threshold_limits[i], p.excitabilities[i], neuron, number, batch
            )
            limit = p.consecutive_fire_limits[i]
            finite = (limit != _NONE) & (limit != _UNLIMITED) if fires_limited else False
            spent = inside & (cc >= (choose(finite, limit, _UNLIMITED) if fires_limited else _UNLIMITED))
            fired = reached & passes & (not spent) if counts_decide else reached & passes
            leaked = kept(u * p.decays[i], i, n)
            held = choose(batch, _ZERO if batch_zeroes else leaked, u) if batch_path else u
            rest = choose(spent, held, leaked) if counts_decide else leaked
            left_over = rest if exact else rounded(rest)
            n.membrane_potentials[i] = choose(reached, choose(fired, _ZERO, left_over), v)
            counted = choose(fired & (cc < _MOST), np.uint16(cc + _ONE), cc)
            left = choose(blocked & (touched | ticks_always), np.uint16(rc - _ONE), rc)
            if refractory:
                pause = p.refractory_periods[i]
                if snoozes:
                    extended = np.uint16(pause + p.snooze_periods[i])
                    held_off = choose(extended < pause, _MOST, extended)
                    snoozing = finite & (counted >= limit)
                    if batch_path:
                        snoozing = snoozing & (not batch)
                    pause = choose(snoozing, held_off, pause)
                n.refractory_countdowns[i] = choose(fired, pause, left)
            if counts_decide:
                over = (left != rc) & (left == _NONE) & (cc >= limit)
                ends = finite & ((reached & (not fired)) | over)
                wraps = reached & spent & (not finite) & (not batch if batch_path else True)
                n.consecutive_fire_counts[i] = choose(ends | wraps, _NONE, counted)
            if restarts:
                n.was_candidate[i] = touched & (not fired) & (not p.mp_charge_accumulation[i])
            marks.before[j] = u
            marks.fires[j] = fired
            marks.touches[j] = touched

    return block


def _make_full(features: Features) -> Compiled:
    refractory, restarts, batch_path = features.refractory_periods, features.restarts, features.emulate_batch_path
    batch_zeroes = features.batch_ignores_limit_and_zeroes
    kept = _make_kept(features)
    exact, rounded = features.storage.exact, make_rounded(features.storage, inner_compiler)

    @inner_compiler
    def full(neuron: int, potential: np.float32, batch: bool, p: Parameters, n: Neurons) -> None:
        """Take back the firing of a neuron whose count is 65535: it is blocked (rule 3 of section 3)."""
        if batch_path and batch:
            potential = _ZERO if batch_zeroes else kept(potential * p.decays[neuron], neuron, n)
        else:
            n.consecutive_fire_counts[neuron] = _NONE
        n.membrane_potentials[neuron] = potential if exact else rounded(potential)
        if refractory:
            n.refractory_countdowns[neuron] = _NONE
        if restarts:
            n.was_candidate[neuron] = not p.mp_charge_accumulation[neuron]

    return full


def _make_count_true() -> Compiled:
    @inner_compiler
    def count_true(eights: Array) -> np.int64:
        """How many of at most 2040 booleans are true, eight of them in each word of ``eights``."""
        bytewise = np.uint64(0)
        for eight in eights:
            bytewise += eight
        pairs = (bytewise & _EVEN_BYTES) + ((bytewise >> _BYTE) & _EVEN_BYTES)
        return np.int64((pairs * _SUM_OF_PAIRS) >> _TOP_PAIR)

    return count_true


def _make_rests() -> Compiled:
    @inner_compiler
    def rests(first: int, end: int, sums: Array, n: Neurons) -> bool:
        """Whether the burst leaves neurons first ... end - 1 as they are: settled, and nothing has arrived."""
        for part in range(first // ALIGNED, (end - 1) // ALIGNED + 1):
            if not n.settled[part]:
                return False
        arrived = sums[first]
        for i in range(np.uint64(first), np.uint64(end)):
            arrived |= sums[i]
        return bool(arrived == 0)

    return rests


def _make_settle(features: Features) -> Compiled:
    ticks = features.refractory_periods and not features.countdown_only_candidates

    @inner_compiler
    def settle(first: int, end: int, candidates: int, n: Neurons) -> None:
        """Note whether a burst without arrivals would leave neurons first ... end - 1 as they are.

        It would after a burst without ``candidates``, in which those that had to restart have done so, unless a
        countdown goes on. What stays is not written: other threads' notes lie on the same cache lines.
        """
        countdowns = np.uint16(0)
        if ticks and candidates == 0:
            for i in range(np.uint64(first), np.uint64(end)):
                countdowns |= n.refractory_countdowns[i]
        settled = (candidates == 0) & (countdowns == 0)
        for part in range(first // ALIGNED, (end - 1) // ALIGNED + 1):
            if n.settled[part] != settled:
                n.settled[part] = settled

    return settle


def make_dense(key: KernelKey) -> Compiled:
    """``dense``: the dynamics of a range of neurons, block by block, but for the blocks that rest."""
    block, full, count_true = _make_block(key), _make_full(key.features), _make_count_true()
    rests, settle = _make_rests(), _make_settle(key.features)
    counts_here = not key.features.counts_decide

    @inner_compiler
    def dense(
        lo: int,
        hi: int,
        burst: int,
        batch: bool,
        sums: Array,
        p: Parameters,
        n: Neurons,
        unit: np.float32,
        ids: Ids,
        potentials: Floats,
    ) -> tuple[int, int]:
        """Dynamics of neurons lo ... hi - 1: how many fired (into ``ids``, ``potentials``) and were candidates."""
        number = np.uint32(burst & 0xFFFFFFFF)
        touches, fires = on_stack(_BLOCK, np.bool_), on_stack(_BLOCK, np.bool_)
        places, inputs, before = on_stack(_BLOCK, np.uint32), on_stack(_BLOCK, np.float32), on_stack(_BLOCK, np.float32)
        for j in range(_BLOCK):
            places[j] = j
        touched_eights, eights = touches.view(np.uint64), fires.view(np.uint64)
        fired_count = 0
        candidates = 0
        marks = Marks(places, touches, inputs, fires, before)
        for first in range(lo, hi, _BLOCK):
            end = min(first + _BLOCK, hi)
            if rests(first, end, sums, n):
                continue
            touches[end - first :] = False
            fires[end - first :] = False
            block(first, end, number, batch, sums, p, n, unit, marks)
            touched = count_true(touched_eights)
            settle(first, end, touched, n)
            candidates += touched
            for eight in range(len(eights)):
                if eights[eight] != 0:
                    for j in range(8 * eight, 8 * eight + 8):
                        if not fires[j]:
                            continue
                        if counts_here:
                            if n.consecutive_fire_counts[first + j] == _MOST:
                                full(first + j, before[j], batch, p, n)
                                continue
                            n.consecutive_fire_counts[first + j] += 1
                        ids[fired_count] = first + j
                        potentials[fired_count] = before[j]
                        fired_count += 1
        return fired_count, candidates

    return dense
