"""Loads of what a chunk of neurons needs for its burst: all at once, or the state before the slot is known."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from burstproof.device.dependent_launch import make_stay
from burstproof.device.numba_cuda import SIMULATED, cuda
from burstproof.engine.cuda.args import Added, Fcl, Floats, Ids, Network, Neurons, State
from burstproof.engine.cuda.kernels.cells import make_load
from burstproof.engine.cuda.kernels.features import Traits, make_find_traits
from burstproof.engine.cuda.kernels.identity import make_in_register
from burstproof.engine.cuda.kernels.neuron_values import make_record
from burstproof.engine.cuda.kernels.storage import make_widen
from burstproof.engine.cuda.plan.shard_variant import ShardVariant
from burstproof.engine.cuda.plan.variant import Variant


class Loaded(NamedTuple):
    """What a thread has loaded of its neurons, in local memory: words of the FCL, potentials, countdowns and counts.

    ``other`` are the words of the second slot, if they are loaded before the slot is known (``ShardVariant.eager``).
    ``mark`` and ``traits`` are loaded only with ``ShardVariant.marks_ahead``, ``decay`` only with ``leaks_ahead``, the
    words of ``record`` only with ``eager``. With ``sleepers`` these are the columns of an owner's next four neurons.
    """

    word: Added
    other: Added
    v: Floats
    rc: npt.NDArray[np.int32]
    cc: npt.NDArray[np.int32]
    mark: Ids
    decay: Floats
    traits: Traits
    record: Ids


def make_fetch_early(shard: ShardVariant, threads: int, per_thread: int) -> Callable[..., Any]:
    """``fetch_early(first, fcl, neurons, network, loaded)``: load a chunk before the burst's slot is known.

    If the shard is ``eager``, words of both slots, state and record; if ``ahead``, the state alone; otherwise nothing.
    All loads are issued before anything else.
    """
    if shard.ahead:
        return _make_fetch_state(shard, threads, per_thread)
    if not shard.eager:
        return _fetch_nothing()
    variant, block, nothing = shard.variant, np.uint32(threads), shard.variant.word.added(0)
    load, stay, fetch_neuron = make_load(variant), make_stay(), make_fetch_neuron(shard)
    words, (record_of, _) = variant.record.words, make_record(variant)

    def fetch_early(first: np.uint32, fcl: Fcl, neurons: Neurons, network: Network, loaded: Loaded) -> None:
        for p in range(per_thread):
            neuron = np.uint32(first + np.uint32(cuda.threadIdx.x) + np.uint32(p) * block)
            loaded.word[p], loaded.other[p] = nothing, nothing
            if neuron < network.neurons:
                cell = np.uint64(neuron)
                loaded.word[p], loaded.other[p] = load(cell, fcl), load(np.uint64(cell + np.uint64(fcl.stride)), fcl)
                record = record_of(neurons.parameters, neuron)
                for word in range(words):
                    loaded.record[p * words + word] = record[word]
            fetch_neuron(neuron, p, neurons, network, loaded)
        stay()

    return cuda.jit(device=True)(fetch_early)  # type: ignore[no-any-return]


def _fetch_nothing() -> Callable[..., Any]:
    def fetch_nothing(first: np.uint32, fcl: Fcl, neurons: Neurons, network: Network, loaded: Loaded) -> None:
        return

    return cuda.jit(device=True)(fetch_nothing)  # type: ignore[no-any-return]


def make_fetch_elsewhere() -> Callable[..., Any]:
    """``fetch_elsewhere(first, base, ...)`` loads nothing: the chunk is fetched earlier or later in the burst."""

    def fetch_elsewhere(
        first: np.uint32, base: np.uint64, fcl: Fcl, neurons: Neurons, network: Network, loaded: Loaded
    ) -> None:
        return

    return cuda.jit(device=True)(fetch_elsewhere)  # type: ignore[no-any-return]


def make_fetch_neuron(shard: ShardVariant, *, bounded: bool = True) -> Callable[..., Any]:
    """``fetch_neuron(neuron, p, neurons, network, loaded)``: load what a neuron's burst needs to begin, but no word.

    Without ``ShardVariant.marks_ahead`` the mark is 0. Beyond the last neuron potential, countdown, count and mark are
    0; without ``bounded`` the function must not be called for such a neuron.
    """
    variant, silent = shard.variant, np.float32(0)
    features, widen = variant.features, make_widen(variant.features.storage)
    refractory, counts_decide = features.refractory_periods, features.counts_decide
    mixed, leaks_ahead = features.restarts and shard.marks_ahead, shard.leaks_ahead
    featured, find_traits = variant.extras.by_neuron and shard.marks_ahead, make_find_traits(variant)

    def keep_traits(place: int, found: Traits, loaded: Loaded) -> None:
        traits = loaded.traits
        traits.kind[place], traits.rate[place], traits.leak[place] = found.kind, found.rate, found.leak

    keep_traits = cuda.jit(device=True)(keep_traits)

    def fetch_neuron(neuron: np.uint32, p: int, neurons: Neurons, network: Network, loaded: Loaded) -> None:
        state = neurons.state
        loaded.v[p], loaded.rc[p], loaded.cc[p] = silent, np.int32(0), np.int32(0)
        loaded.mark[p] = np.uint32(0)
        if not bounded or neuron < network.neurons:
            loaded.v[p] = widen(state.potentials[neuron])
            if refractory:
                loaded.rc[p] = np.int32(state.countdowns[neuron])
            if counts_decide:
                loaded.cc[p] = np.int32(state.counts[neuron])
            if mixed:
                loaded.mark[p] = np.uint32(state.marks[neuron])
            if leaks_ahead:
                loaded.decay[p] = neurons.parameters.decays[neuron]
            if featured:
                keep_traits(p, find_traits(neuron, neurons.extras), loaded)

    return cuda.jit(device=True)(fetch_neuron)  # type: ignore[no-any-return]


@cache
def make_hand_over() -> Callable[..., Any]:
    """``hand_over(p, place, loaded)``: copy a neuron's loads from entry ``p`` to entry ``place``."""

    def hand_over(p: int, place: int, loaded: Loaded) -> None:
        traits = loaded.traits
        loaded.v[place], loaded.rc[place], loaded.cc[place] = loaded.v[p], loaded.rc[p], loaded.cc[p]
        loaded.mark[place], loaded.decay[place] = loaded.mark[p], loaded.decay[p]
        traits.kind[place], traits.rate[place], traits.leak[place] = traits.kind[p], traits.rate[p], traits.leak[p]

    return cuda.jit(device=True)(hand_over)  # type: ignore[no-any-return]


def _make_fetch_state(shard: ShardVariant, threads: int, per_thread: int) -> Callable[..., Any]:
    """``fetch_state(first, fcl, neurons, network, loaded)``: load what a chunk's burst needs to begin, but no words."""
    block, nothing = np.uint32(threads), shard.variant.word.added(0)
    fetch_neuron, stay, in_register = make_fetch_neuron(shard), make_stay(), make_in_register(shard.extras.by_neuron)

    def fetch_state(first: np.uint32, fcl: Fcl, neurons: Neurons, network: Network, loaded: Loaded) -> None:
        for p in range(per_thread):
            loaded.word[p] = nothing
            neuron = in_register(np.uint32(first + np.uint32(cuda.threadIdx.x) + np.uint32(p) * block))
            fetch_neuron(neuron, p, neurons, network, loaded)
        stay()

    return cuda.jit(device=True)(fetch_state)  # type: ignore[no-any-return]


def _make_fetch_words(
    variant: Variant, fetch_state: Callable[..., Any], threads: int, per_thread: int
) -> Callable[..., Any]:
    """``fetch_words(first, base, ...)``: load the words of the slot; the rest was loaded ahead.

    A simulated block takes several chunks, so it fetches each of them here.
    """
    load, block = make_load(variant), np.uint32(threads)

    def fetch_words(
        first: np.uint32, base: np.uint64, fcl: Fcl, neurons: Neurons, network: Network, loaded: Loaded
    ) -> None:
        if SIMULATED:
            fetch_state(first, fcl, neurons, network, loaded)
        for p in range(per_thread):
            neuron = np.uint32(first + np.uint32(cuda.threadIdx.x) + np.uint32(p) * block)
            if neuron < network.neurons:
                loaded.word[p] = load(np.uint64(base + np.uint64(neuron)), fcl)

    return cuda.jit(device=True)(fetch_words)  # type: ignore[no-any-return]


def make_fetch_chunk(shard: ShardVariant, threads: int, per_thread: int) -> Callable[..., Any]:
    """``fetch_chunk(first, base, fcl, neurons, network, loaded)``: load a chunk, the neurons from ``first`` on.

    What ``fetch_early`` loaded is not loaded again; of the words of both slots, one is chosen.
    """
    if shard.ahead:
        fetch_state = make_fetch_early(shard, threads, per_thread)
        return _make_fetch_words(shard.variant, fetch_state, threads, per_thread)
    if shard.eager:
        return _make_choose_words(make_fetch_early(shard, threads, per_thread), per_thread)
    variant, block = shard.variant, np.uint32(threads)
    refractory, widen = variant.features.refractory_periods, make_widen(variant.features.storage)
    load, nothing, silent = make_load(variant), variant.word.added(0), np.float32(0)

    def fetch(neuron: np.uint32, neurons: np.uint32, base: np.uint64, fcl: Fcl, state: State) -> Any:
        """Word, potential and countdown; zeros beyond the last neuron."""
        if neuron >= neurons:
            return nothing, silent, np.int32(0)
        rc = np.int32(0)
        if refractory:
            rc = np.int32(state.countdowns[neuron])
        return load(np.uint64(base + np.uint64(neuron)), fcl), widen(state.potentials[neuron]), rc

    fetch = cuda.jit(device=True)(fetch)

    def fetch_chunk(
        first: np.uint32, base: np.uint64, fcl: Fcl, neurons: Neurons, network: Network, loaded: Loaded
    ) -> None:
        thread = np.uint32(cuda.threadIdx.x)
        for p in range(per_thread):
            neuron = np.uint32(first + thread + np.uint32(p) * block)
            loaded.word[p], loaded.v[p], loaded.rc[p] = fetch(neuron, network.neurons, base, fcl, neurons.state)

    return cuda.jit(device=True)(fetch_chunk)  # type: ignore[no-any-return]


def _make_choose_words(fetch_early: Callable[..., Any], per_thread: int) -> Callable[..., Any]:
    """``choose_words(first, base, ...)``: of the words of both slots, keep those of the slot at ``base``.

    A simulated block takes several chunks, so it fetches each of them here.
    """

    def choose_words(
        first: np.uint32, base: np.uint64, fcl: Fcl, neurons: Neurons, network: Network, loaded: Loaded
    ) -> None:
        if SIMULATED:
            fetch_early(first, fcl, neurons, network, loaded)
        for p in range(per_thread):
            if base != np.uint64(0):
                loaded.word[p] = loaded.other[p]

    return cuda.jit(device=True)(choose_words)  # type: ignore[no-any-return]
