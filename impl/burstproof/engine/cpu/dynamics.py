"""CPU kernels for the dynamics of a burst (SEMANTICS section 3), vectorised.

The rules are those of ``rules.candidate``, written without branches: all neurons take the same path, and the results
are selected at the end. Whether a neuron is a candidate is unpredictable, so a branch would cost more than the rules.
Without branches the compiler handles several neurons in one vector.
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
    """Results of one block, an entry per neuron.

    ``arrived``: whether anything arrived, ``inputs``: how much; ``fires``; ``before``: the potential before the reset.
    ``places`` are 0, 1, 2 ...: a vector of lane numbers.
    """

    places: Ids
    arrived: Array
    inputs: Floats
    fires: Array
    before: Floats


def _make_take_sum() -> Compiled:
    read = make_read()

    @inner_compiler
    def take_sum(sums: Array, place: np.uint64, unit: np.float32) -> tuple[np.bool_, np.float32]:
        """Read and clear the sum of one neuron: whether anything has arrived, and how much."""
        arrived = sums[place] != 0
        amount = choose(arrived, np.float32(read(sums, place)), _ZERO) * unit
        sums[place] = 0
        return arrived, amount

    return take_sum


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
        """Whether ``v`` is at or above the threshold and not above its limit; and whether excitability also passes."""
        above = v > (threshold_limit if limited else _CEILING)
        if ignores_limit:
            above = above & (not batch)
        in_window = (v >= threshold) & (not above)
        if not draws:
            return in_window, in_window
        drawn = (excitability > _ZERO) & (draw(neuron, burst) < excitability)
        return in_window, in_window & (drawn | (excitability >= _CERTAIN))

    return window


def _make_kept(features: Features) -> Compiled:
    clamps, full = features.clamp_potentials, np.float32(255)

    @inner_compiler
    def kept(potential: np.float32, neuron: int, n: Neurons) -> np.float32:
        """``potential``, clamped to 0...255 under the precision ``feagi-int8``."""
        if clamps:
            bounded = choose(potential < _ZERO, _ZERO, potential)
            potential = choose(n.unclamped[neuron], potential, choose(bounded > full, full, bounded))
        return potential

    return kept


def _make_block(key: KernelKey) -> Compiled:
    features = key.features
    mapped, take_sum = key.shard, _make_take_sum()
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
        burst: np.uint32,
        batch: bool,
        sums: Array,
        p: Parameters,
        n: Neurons,
        unit: np.float32,
        marks: Marks,
    ) -> None:
        """Dynamics of neurons first ... end - 1; writes ``marks``.

        64-bit sums are converted in a separate loop: in the main loop they would halve the vector width.
        """
        base, wide = np.uint32(first), np.iinfo(sums.dtype).bits == 64
        if wide:
            for j in range(np.uint64(end - first)):
                marks.arrived[j], marks.inputs[j] = take_sum(sums, np.uint64(first) + j, unit)
        for j in range(np.uint64(end - first)):
            i = np.uint64(first) + j
            arrived, x = (marks.arrived[j], marks.inputs[j]) if wide else take_sum(sums, i, unit)
            v, rc, cc = n.membrane_potentials[i], n.refractory_countdowns[i], n.consecutive_fire_counts[i]
            if restarts and restart_candidates:
                v = choose(n.was_candidate[i] & (rc == _NONE if refractory else True), _ZERO, v)
            if restarts and restart_all:
                v = choose(p.mp_charge_accumulation[i], v, _ZERO)
            if floors:
                x = choose((x < _ZERO) & (p.mp_charge_accumulation[i] if restarts else True), _ZERO, x)
            counting_down = rc > _NONE if refractory else False
            tested = arrived & (not counting_down)
            u = kept(v + x, i, n)
            neuron = n.ids[i] if mapped else base + marks.places[j]
            in_window, passes = window(
                u, p.thresholds[i], p.threshold_limits[i], p.excitabilities[i], neuron, burst, batch
            )
            limit = p.consecutive_fire_limits[i]
            finite = (limit != _NONE) & (limit != _UNLIMITED) if fires_limited else False
            exhausted = in_window & (cc >= (choose(finite, limit, _UNLIMITED) if fires_limited else _UNLIMITED))
            fired = tested & passes & (not exhausted) if counts_decide else tested & passes
            leaked = kept(u * p.decays[i], i, n)
            blocked_v = choose(batch, _ZERO if batch_zeroes else leaked, u) if batch_path else u
            remaining = choose(exhausted, blocked_v, leaked) if counts_decide else leaked
            stored = remaining if exact else rounded(remaining)
            n.membrane_potentials[i] = choose(tested, choose(fired, _ZERO, stored), v)
            counted = choose(fired & (cc < _MOST), np.uint16(cc + _ONE), cc)
            countdown = choose(counting_down & (arrived | ticks_always), np.uint16(rc - _ONE), rc)
            if refractory:
                period = p.refractory_periods[i]
                if snoozes:
                    longer = np.uint16(period + p.snooze_periods[i])
                    saturated = choose(longer < period, _MOST, longer)
                    snoozing = finite & (counted >= limit)
                    if batch_path:
                        snoozing = snoozing & (not batch)
                    period = choose(snoozing, saturated, period)
                n.refractory_countdowns[i] = choose(fired, period, countdown)
            if counts_decide:
                expired = (countdown != rc) & (countdown == _NONE) & (cc >= limit)
                resets = finite & ((tested & (not fired)) | expired)
                wraps = tested & exhausted & (not finite) & (not batch if batch_path else True)
                n.consecutive_fire_counts[i] = choose(resets | wraps, _NONE, counted)
            if restarts:
                n.was_candidate[i] = arrived & (not fired) & (not p.mp_charge_accumulation[i])
            marks.before[j] = u
            marks.fires[j] = fired
            marks.arrived[j] = arrived

    return block


def _make_undo_fire(features: Features) -> Compiled:
    refractory, restarts, batch_path = features.refractory_periods, features.restarts, features.emulate_batch_path
    batch_zeroes = features.batch_ignores_limit_and_zeroes
    kept = _make_kept(features)
    exact, rounded = features.storage.exact, make_rounded(features.storage, inner_compiler)

    @inner_compiler
    def undo_fire(neuron: int, potential: np.float32, batch: bool, p: Parameters, n: Neurons) -> None:
        """Undo the firing of a neuron whose count is 65535: it is blocked (rule 3 of section 3)."""
        if batch_path and batch:
            potential = _ZERO if batch_zeroes else kept(potential * p.decays[neuron], neuron, n)
        else:
            n.consecutive_fire_counts[neuron] = _NONE
        n.membrane_potentials[neuron] = potential if exact else rounded(potential)
        if refractory:
            n.refractory_countdowns[neuron] = _NONE
        if restarts:
            n.was_candidate[neuron] = not p.mp_charge_accumulation[neuron]

    return undo_fire


def _make_count_true() -> Compiled:
    @inner_compiler
    def count_true(eights: Array) -> np.int64:
        """Count the true ones of at most 2040 booleans, packed eight to a word in ``eights``."""
        bytewise = np.uint64(0)
        for eight in eights:
            bytewise += eight
        pairs = (bytewise & _EVEN_BYTES) + ((bytewise >> _BYTE) & _EVEN_BYTES)
        return np.int64((pairs * _SUM_OF_PAIRS) >> _TOP_PAIR)

    return count_true


def _make_can_skip() -> Compiled:
    @inner_compiler
    def can_skip(first: int, end: int, sums: Array, n: Neurons) -> bool:
        """Whether the burst changes nothing in neurons first ... end - 1: all are settled, and nothing has arrived."""
        for group in range(first // ALIGNED, (end - 1) // ALIGNED + 1):
            if not n.settled[group]:
                return False
        arrived = sums[first]
        for i in range(np.uint64(first), np.uint64(end)):
            arrived |= sums[i]
        return bool(arrived == 0)

    return can_skip


def _make_mark_settled(features: Features) -> Compiled:
    ticks = features.refractory_periods and not features.countdown_only_candidates

    @inner_compiler
    def mark_settled(first: int, end: int, candidates: int, n: Neurons) -> None:
        """Mark neurons first ... end - 1 as settled if a burst without arrivals would change nothing in them.

        That holds after a burst without ``candidates``, in which pending restarts were done, unless a countdown still
        runs. A mark that stays the same is not written, because other threads' marks share the cache line.
        """
        countdowns = np.uint16(0)
        if ticks and candidates == 0:
            for i in range(np.uint64(first), np.uint64(end)):
                countdowns |= n.refractory_countdowns[i]
        settled = (candidates == 0) & (countdowns == 0)
        for group in range(first // ALIGNED, (end - 1) // ALIGNED + 1):
            if n.settled[group] != settled:
                n.settled[group] = settled

    return mark_settled


def make_dynamics(key: KernelKey) -> Compiled:
    """``dynamics``: the dynamics of a range of neurons, in blocks; blocks in which nothing would change are skipped."""
    block, undo_fire, count_true = _make_block(key), _make_undo_fire(key.features), _make_count_true()
    can_skip, mark_settled = _make_can_skip(), _make_mark_settled(key.features)
    counts_here = not key.features.counts_decide

    @inner_compiler
    def dynamics(
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
        """Dynamics of neurons lo ... hi - 1, into ``ids`` and ``potentials``: numbers of firings and of candidates."""
        burst32 = np.uint32(burst & 0xFFFFFFFF)
        arrived, fires = on_stack(_BLOCK, np.bool_), on_stack(_BLOCK, np.bool_)
        places, inputs, before = on_stack(_BLOCK, np.uint32), on_stack(_BLOCK, np.float32), on_stack(_BLOCK, np.float32)
        for j in range(_BLOCK):
            places[j] = j
        arrived_eights, fired_eights = arrived.view(np.uint64), fires.view(np.uint64)
        fired_count = 0
        candidates = 0
        marks = Marks(places, arrived, inputs, fires, before)
        for first in range(lo, hi, _BLOCK):
            end = min(first + _BLOCK, hi)
            if can_skip(first, end, sums, n):
                continue
            arrived[end - first :] = False
            fires[end - first :] = False
            block(first, end, burst32, batch, sums, p, n, unit, marks)
            arrived_count = count_true(arrived_eights)
            mark_settled(first, end, arrived_count, n)
            candidates += arrived_count
            for eight in range(len(fired_eights)):
                if fired_eights[eight] == 0:
                    continue
                for j in range(8 * eight, 8 * eight + 8):
                    if not fires[j]:
                        continue
                    if counts_here:
                        if n.consecutive_fire_counts[first + j] == _MOST:
                            undo_fire(first + j, before[j], batch, p, n)
                            continue
                        n.consecutive_fire_counts[first + j] += 1
                    ids[fired_count] = first + j
                    potentials[fired_count] = before[j]
                    fired_count += 1
        return fired_count, candidates

    return dynamics
