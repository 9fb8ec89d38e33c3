"""CPU kernels that Python calls, compiled for what a network uses.

``run_batch`` runs whole bursts on one core. With several threads, or with queues, each thread runs ``run_thread``.
``flush_lists`` and ``flush_queues`` move contributions under way into the ring before a state is read. A shard runs a
burst in two halves: ``fire`` for its own neurons, then, after the exchange, ``receive`` for what fired in all shards.
Within a shard neurons are numbered locally; sources keep their ids in the whole network.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from burstproof.engine.compiler import compiler, names_of
from burstproof.engine.cpu.arrays import Counters, Floats, Ids
from burstproof.engine.cpu.held import Held, content_of
from burstproof.engine.cpu.key import KernelKey
from burstproof.engine.cpu.parts import Parts, make_parts
from burstproof.engine.cpu.recall import RecallParts, make_recall
from burstproof.engine.cpu.share import make_flush_queues, make_run_thread
from burstproof.engine.cpu.synapses import make_propagate
from burstproof.engine.disk import keep_on_disk
from burstproof.engine.profile import BATCH_PATH_CANDIDATES
from burstproof.engine.rules import Compiled


class Kernels(NamedTuple):
    """Compiled kernels; for the signatures see the functions of the same names."""

    run_batch: Compiled
    flush_lists: Compiled
    run_thread: Compiled
    flush_queues: Compiled
    fire: Compiled
    receive: Compiled
    derive: Compiled


@cache
def kernels_for(key: KernelKey) -> Kernels:
    """The kernels for ``key``; numba compiles each at its first call."""
    with names_of(key):
        parts, propagate, recall = make_parts(key), make_propagate(key), make_recall(key)
        kernels = Kernels(
            run_batch=_make_run_batch(key, parts, propagate, recall),
            flush_lists=recall.flush_lists,
            run_thread=make_run_thread(key, parts, recall),
            flush_queues=make_flush_queues(key),
            fire=_make_fire(key, parts),
            receive=_make_receive(key, parts, propagate),
            derive=parts.derive,
        )
    for kernel in kernels:
        keep_on_disk(kernel, key)
    return kernels


def _make_run_batch(key: KernelKey, parts: Parts, propagate: Compiled, recall: RecallParts) -> Compiled:
    begin, count_candidates, dynamics = parts.begin, parts.count_candidates, parts.dynamics
    finish, learn, read_signals, adapt = parts.finish, parts.learn, parts.read_signals, parts.adapt
    join_trains, advance_trains = parts.join_trains, parts.advance_trains
    emulate, plastic, learn_first = key.features.emulate_batch_path, key.plastic, key.learns_first
    trains, modulators, adapts = key.extras.trains, key.extras.modulators, key.extras.adapts
    recalled, collect, keep_list = key.recalled, recall.collect, recall.keep_list

    @compiler
    def run_batch(
        held: Held,
        burst: int,
        bursts: int,
        counters: Counters,
        last: Ids,
        ids: Ids,
        potentials: Floats,
        ends: Counters,
        candidates: Counters,
    ) -> int:
        """Run up to ``bursts`` bursts from number ``burst`` on, as long as the output has room for N more firings.

        ``held`` contains a ``Model``; ``last`` is the fired list of the burst before; ``ids``, ``potentials``, ``ends``
        and ``candidates`` are those of ``Output``. Returns the number of bursts done.
        """
        model = content_of(held)
        ring, plan, static, computed, rules = model.ring, model.plan, model.static, model.computed, model.plastic
        parameters, neurons, s, x = model.parameters, model.neurons, model.scalars, model.extras
        used = 0
        for k in range(bursts):
            if len(ids) - used < s.neurons:
                return k
            number = burst + k
            base = (number % s.slots) * s.neurons
            sums = ring[base : base + s.neurons]
            if recalled:
                collect(0, number, model.recall, ring, s)
                sums = model.recall.sums
            fired, fired_potentials = ids[used:], potentials[used:]
            begin(k, sums, plan, parameters, neurons, last, s, 0, s.neurons)
            batch = False
            if emulate and s.emulate_batch:
                batch = count_candidates(sums) >= BATCH_PATH_CANDIDATES
            count, candidates[k] = dynamics(
                0, s.neurons, number, batch, sums, parameters, neurons, s.unit, fired, fired_potentials
            )
            if trains:
                count = join_trains(count, fired, fired_potentials, last, x, neurons)
            count = finish(number, k, count, fired, fired_potentials, plan, neurons, s, 0, s.neurons)
            last = fired[:count]
            if trains:
                advance_trains(last, fired_potentials[:count], x, parameters, neurons)
            if plastic and learn_first:
                learn(number, rules, computed, neurons, s, counters, 0, 1)
            if recalled:
                keep_list(0, number, last, model.recall, counters)
            else:
                propagate(number, last, fired_potentials[:count], ring, static, computed, s, counters)
            if plastic and not learn_first:
                learn(number, rules, computed, neurons, s, counters, 0, 1)
            if modulators:
                read_signals(number, last, fired_potentials[:count], x)
            if adapts:
                adapt(number, last, x, parameters, 0, s.neurons)
            used += count
            ends[k] = used
        return bursts

    return run_batch


def _make_fire(key: KernelKey, parts: Parts) -> Compiled:
    begin, dynamics, finish = parts.begin, parts.dynamics, parts.finish
    join_trains, advance_trains, trains = parts.join_trains, parts.advance_trains, key.extras.trains

    @compiler
    def fire(held: Held, number: int, batch: bool, last: Ids, ids: Ids, potentials: Floats) -> tuple[int, int]:
        """Dynamics of the shard in burst ``number``; writes its firings, forced ones too, by ascending local number.

        ``batch``: whether the batch path is emulated. ``last``: local numbers of what fired in the burst before.
        Returns the number of firings in ``ids`` and ``potentials``, and the number of candidates.
        """
        model = content_of(held)
        ring, plan, parameters, neurons, s = model.ring, model.plan, model.parameters, model.neurons, model.scalars
        base = (number % s.slots) * s.neurons
        sums = ring[base : base + s.neurons]
        begin(0, sums, plan, parameters, neurons, last, s, 0, s.neurons)
        count, candidates = dynamics(0, s.neurons, number, batch, sums, parameters, neurons, s.unit, ids, potentials)
        if trains:
            count = join_trains(count, ids, potentials, last, model.extras, neurons)
        count = finish(number, 0, count, ids, potentials, plan, neurons, s, 0, s.neurons)
        if trains:
            advance_trains(ids[:count], potentials[:count], model.extras, parameters, neurons)
        return count, candidates

    return fire


def _make_receive(key: KernelKey, parts: Parts, propagate: Compiled) -> Compiled:
    learn, remember, plastic, learn_first = parts.learn, parts.remember, key.plastic, key.learns_first
    read_signals, adapt, modulators, adapts = parts.read_signals, parts.adapt, key.extras.modulators, key.extras.adapts

    @compiler
    def receive(held: Held, number: int, ids: Ids, potentials: Floats, own: Ids, counters: Counters) -> None:
        """Propagation, plasticity and signals of burst ``number`` in the shard.

        ``ids``: what fired in all shards, ids in the whole network, in any order. ``held`` contains a ``Model``.
        ``own``: local numbers of what fired in this shard.
        """
        model = content_of(held)
        neurons, computed, s = model.neurons, model.computed, model.scalars
        if plastic:
            remember(number, ids, neurons, s.longest_window)
        if plastic and learn_first:
            learn(number, model.plastic, computed, neurons, s, counters, 0, 1)
        propagate(number, ids, potentials, model.ring, model.static, computed, s, counters)
        if plastic and not learn_first:
            learn(number, model.plastic, computed, neurons, s, counters, 0, 1)
        if modulators:
            read_signals(number, ids, potentials, model.extras)
        if adapts:
            adapt(number, own, model.extras, model.parameters, 0, s.neurons)

    return receive
