"""The laws of synthetic networks as scalar functions, compiled by numba for the CPU and for CUDA alike."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from burstproof.errors import NetworkError
from burstproof.network.synthetic.counter_random import Compiled, Compiler, CounterRandom, make_counter_random
from burstproof.network.synthetic.spec import SyntheticSpec

END_STREAM, VALUE_STREAM, TYPE_STREAM, SECOND_END_STREAM, START_STREAM, FAN_STREAM, PARAMETER_STREAM, DELAY_STREAM = (
    range(8)
)


class EndParameters(NamedTuple):
    """Numbers of a connectivity: ``neurons`` and two that depend on it, all uint64.

    ``distance``: ``first`` = m = round(4096 sqrt(3) distance_scale), ``second`` = m // 2048 + 2, the largest offset.
    The sum u of four 32-bit words, cut to 26 bits, has the standard deviation 2^24 / sqrt(3), so that u m / 2^36 has
    ``distance_scale``; with m < 2^36 everything stays below 2^63.
    ``block``: ``first`` = neurons per block, ``second`` = inside_fraction x 2^32. Otherwise both 0.
    """

    neurons: np.uint64
    first: np.uint64
    second: np.uint64


def end_parameters(spec: SyntheticSpec) -> EndParameters:
    """The numbers that ``make_end`` functions take for ``spec``."""
    first = second = 0
    if spec.connectivity == "distance":
        first = round(4096 * math.sqrt(3) * spec.distance_scale)
        second = first // 2048 + 2
    elif spec.connectivity == "block":
        first, second = spec.block_size, probability_bound(spec.inside_fraction)
    return EndParameters(np.uint64(spec.neurons), np.uint64(first), np.uint64(second))


def probability_bound(probability: float) -> int:
    """The bound b for which a 32-bit word is below b with this probability."""
    return round(probability * 2.0**32)


def make_end(connectivity: str, random: CounterRandom, compiler: Compiler) -> Compiled:
    """``end(seed, neurons, first, second, row, item)`` -> uint32: the other end of one synapse.

    ``row`` is the source and the result its ``item``-th target, except with ``fixed_in_degree``, where ``row`` is
    the target and the result its ``item``-th source.
    """
    words, below = random.words, random.below
    end_stream, second_stream = np.uint32(END_STREAM), np.uint32(SECOND_END_STREAM)
    cut, to_offset, to_mean = np.uint64(8), np.uint64(36), np.uint64(25)
    half_unit = np.uint64(1 << 35)

    @compiler
    def anywhere(
        seed: np.uint32, neurons: np.uint64, first: np.uint64, second: np.uint64, row: np.uint32, item: np.uint32
    ) -> np.uint32:
        one, two = words(seed, end_stream, row, item)
        return np.uint32(below(one, two, neurons))

    @compiler
    def nearby(
        seed: np.uint32, neurons: np.uint64, first: np.uint64, second: np.uint64, row: np.uint32, item: np.uint32
    ) -> np.uint32:
        one, two = words(seed, end_stream, row, item)
        three, four = words(seed, second_stream, row, item)
        total = (np.uint64(one) + np.uint64(two) + np.uint64(three) + np.uint64(four)) >> cut
        offset = (total * first + half_unit + (second << to_offset) - (first << to_mean)) >> to_offset
        place = np.uint64(row) + offset + neurons - second
        if place >= neurons:
            place = place - neurons
        if place >= neurons:
            place = place - neurons
        return np.uint32(place)

    @compiler
    def in_block(
        seed: np.uint32, neurons: np.uint64, first: np.uint64, second: np.uint64, row: np.uint32, item: np.uint32
    ) -> np.uint32:
        one, two = words(seed, end_stream, row, item)
        choice, _ = words(seed, second_stream, row, item)
        if np.uint64(choice) >= second:
            return np.uint32(below(one, two, neurons))
        start = np.uint64(row) // first * first
        return np.uint32(start + below(one, two, min(first, neurons - start)))

    return {"distance": nearby, "block": in_block}.get(connectivity, anywhere)


class Values(NamedTuple):
    """Compiled scalar functions of what a synapse carries.

    ``integer(seed, which, low, span, row, item)`` -> uint64 in low...low + span - 1; ``which`` 0 is the weight, 1 the
    delay. ``chosen(seed, stream, bound, row, item)`` -> bool with probability bound / 2^32.
    """

    integer: Compiled
    chosen: Compiled


def make_values(random: CounterRandom, compiler: Compiler) -> Values:
    """Compile the functions with ``compiler``."""
    words = random.words
    value_stream, half, zero = np.uint32(VALUE_STREAM), np.uint64(32), np.uint32(0)

    @compiler
    def integer(
        seed: np.uint32, which: np.uint32, low: np.uint64, span: np.uint64, row: np.uint32, item: np.uint32
    ) -> np.uint64:
        one, two = words(seed, value_stream, row, item)
        word = one if which == zero else two
        return low + ((np.uint64(word) * span) >> half)

    @compiler
    def chosen(seed: np.uint32, stream: np.uint32, bound: np.uint64, row: np.uint32, item: np.uint32) -> np.bool_:
        one, _ = words(seed, stream, row, item)
        return np.uint64(one) < bound

    return Values(integer, chosen)


class SynapseGenerator(NamedTuple):
    """Scalar functions of (source, item), both uint32, for the ``item``-th outgoing synapse of ``source``.

    ``target`` -> uint32, ``weight`` -> float32, ``type`` -> uint8 (1 inhibitory), ``delay`` -> uint8.
    """

    target: Compiled
    weight: Compiled
    type: Compiled
    delay: Compiled


def make_generator(spec: SyntheticSpec, compiler: Compiler) -> SynapseGenerator:
    """The synapses of ``spec`` as functions with its numbers built in, for a device that makes them itself.

    Parameters
    ----------
    spec : SyntheticSpec
        Any connectivity with a fixed out-degree.
    compiler : callable
        ``numba.njit`` or ``cuda.jit(device=True)``.

    Raises
    ------
    NetworkError
        ``fixed_in_degree``: the rows of its sources have different lengths.
    """
    if spec.connectivity == "fixed_in_degree":
        raise NetworkError(
            "this connectivity has no synapses numbered by source",
            where="SyntheticSpec.connectivity",
            got=spec.connectivity,
            allowed="uniform, distance, block",
            cure="Build the network with synthesize and upload it",
        )
    random = make_counter_random(compiler)
    end, values = make_end(spec.connectivity, random, compiler), make_values(random, compiler)
    neurons, first, second = end_parameters(spec)
    integer, chosen = values.integer, values.chosen
    seed, zero, one = np.uint32(spec.seed), np.uint32(0), np.uint32(1)
    type_stream, type_bound = np.uint32(TYPE_STREAM), np.uint64(probability_bound(spec.inhibitory_fraction))

    @compiler
    def target(source: np.uint32, item: np.uint32) -> np.uint32:
        other: np.uint32 = end(seed, neurons, first, second, source, item)
        return other

    @compiler
    def synapse_type(source: np.uint32, item: np.uint32) -> np.uint8:
        return np.uint8(chosen(seed, type_stream, type_bound, source, zero))

    weight = _value(spec.weights, np.float32, zero, seed, integer, compiler)
    delay = _value(spec.delays, np.uint8, one, seed, integer, compiler)
    return SynapseGenerator(target, weight, synapse_type, delay)


def integer_law(law: float | tuple[int, int]) -> tuple[np.uint64, np.uint64]:
    """Low end and number of values of a uniform law, (0, 0) for a fixed one."""
    if not isinstance(law, tuple):
        return np.uint64(0), np.uint64(0)
    return np.uint64(law[0]), np.uint64(law[1] - law[0] + 1)


def _value(
    law: float | tuple[int, int],
    dtype: type[np.float32] | type[np.uint8],
    which: np.uint32,
    seed: np.uint32,
    integer: Compiled,
    compiler: Compiler,
) -> Compiled:
    fixed = dtype(0 if isinstance(law, tuple) else law)
    low, span = integer_law(law)

    @compiler
    def constant(source: np.uint32, item: np.uint32) -> np.float32 | np.uint8:
        return fixed

    @compiler
    def uniform(source: np.uint32, item: np.uint32) -> np.float32 | np.uint8:
        return dtype(integer(seed, which, low, span, source, item))

    return uniform if isinstance(law, tuple) else constant
