"""Parameters of a neuron: columns, numbers if all neurons share one value, or fields of the neuron's record."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.device.numba_cuda import SIMULATED, cuda
from burstproof.engine.cuda.args import Ids, Parameters
from burstproof.engine.cuda.plan.columns import PARAMETERS
from burstproof.engine.cuda.plan.variant import Variant

_AT_ONCE = 4
"""Most words that one instruction loads."""


def make_value(variant: Variant, name: str) -> Callable[..., Any]:
    """``value(parameter, neuron)``: parameter ``name`` of a neuron; if all neurons share it, it is a number."""

    def common(parameter: np.generic, neuron: np.uint32) -> Any:
        return parameter

    def own(parameter: npt.NDArray[Any], neuron: np.uint32) -> Any:
        return parameter[neuron]

    if name in variant.record.places:
        return _make_recorded(variant, name)
    return cuda.jit(device=True)(common if name in variant.uniform else own)  # type: ignore[no-any-return]


def make_record(variant: Variant) -> tuple[Callable[..., Any], tuple[np.uint32, ...]]:
    """``record(parameters, neuron)``: the words of a neuron's record, loaded together; and those of an empty record.

    If thresholds lie in records, that of the empty record is NaN, which no potential reaches.
    """
    words, places = variant.record.words, variant.record.places
    if not words:
        return _without_record(), (np.uint32(0),)
    read, many, field = _make_read(words), np.uint64(words), next(iter(places))
    position, nothing = Parameters._fields.index(field), [np.uint32(0)] * words
    if variant.record.tells_sleepers:
        nothing[places["thresholds"].word] = np.float32(np.nan).view(np.uint32)

    def record(parameters: Parameters, neuron: np.uint32) -> Any:
        return read(parameters[position], np.uint64(np.uint64(neuron) * many))

    return cuda.jit(device=True)(record), tuple(nothing)


@cache
def _without_record() -> Callable[..., Any]:
    nothing = (np.uint32(0),)

    def without_record(parameters: Parameters, neuron: np.uint32) -> Any:
        return nothing

    return cuda.jit(device=True)(without_record)  # type: ignore[no-any-return]


def make_kept_record(variant: Variant, kept: bool) -> Callable[..., Any]:
    """``kept_record(p, words)``: the ``p``-th record of the ``words`` loaded ahead, or the empty record."""
    _, nothing = make_record(variant)
    many = variant.record.words

    def none(p: int, words: Ids) -> Any:
        return nothing

    def one(p: int, words: Ids) -> Any:
        return (words[p],)

    def two(p: int, words: Ids) -> Any:
        return words[2 * p], words[2 * p + 1]

    def four(p: int, words: Ids) -> Any:
        return words[4 * p], words[4 * p + 1], words[4 * p + 2], words[4 * p + 3]

    four = cuda.jit(device=True)(four)

    def eight(p: int, words: Ids) -> Any:
        return four(2 * p, words) + four(2 * p + 1, words)

    made = {1: one, 2: two, 4: four, 8: eight}[many] if kept else none
    return made if made is four else cuda.jit(device=True)(made)


def make_recorded_value(variant: Variant, name: str) -> Callable[..., Any]:
    """``value(record, parameter, neuron)``: parameter ``name``, from the record if it lies there."""
    if name not in variant.record.places:
        alone = make_value(variant, name)

        def own(record: Any, parameter: Any, neuron: np.uint32) -> Any:
            return alone(parameter, neuron)

        return cuda.jit(device=True)(own)  # type: ignore[no-any-return]
    place = variant.record.places[name]
    word, shift, mask = place.word, np.uint32(place.shift), np.uint32((1 << place.bits) - 1)

    def real(record: Any, parameter: Any, neuron: np.uint32) -> Any:
        return np.uint32(record[word]).view(np.float32)

    def number(record: Any, parameter: Any, neuron: np.uint32) -> Any:
        return np.int32(np.uint32(record[word] >> shift) & mask)

    return cuda.jit(device=True)(real if PARAMETERS[name].kind == "f" else number)  # type: ignore[no-any-return]


@cache
def _make_read(words: int) -> Callable[..., Any]:
    """``read(records, at)``: ``words`` words from ``at``, a multiple of ``words``, in loads of up to 16 bytes."""

    def once(records: Ids, at: np.uint64) -> Any:
        return (records[at],)

    if words == 1:
        return cuda.jit(device=True)(once)  # type: ignore[no-any-return]
    if words <= _AT_ONCE:
        return _make_load(words)
    load, half = _make_load(_AT_ONCE), np.uint64(_AT_ONCE)

    def twice(records: Ids, at: np.uint64) -> Any:
        return load(records, at) + load(records, np.uint64(at + half))

    return cuda.jit(device=True)(twice)  # type: ignore[no-any-return]


def _make_load(words: int) -> Callable[..., Any]:
    """``load(records, at)``: two or four words in one instruction."""
    if SIMULATED:
        return cuda.jit(device=True)(_two_words if words == 2 else _four_words)  # type: ignore[no-any-return]
    from llvmlite import ir  # type: ignore[import-untyped]
    from numba.core import types

    results = ", ".join(f"${one}" for one in range(words))
    text = f"ld.global.v{words}.u32 {{{results}}}, [${words}];"
    constraints = ",".join(["=r"] * words + ["l"])

    def load(typingctx: Any, records: Any, at: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            data = context.make_array(signature.args[0])(context, builder, args[0]).data
            address = builder.ptrtoint(builder.gep(data, [args[1]]), ir.IntType(64))
            kind = ir.FunctionType(ir.LiteralStructType([ir.IntType(32)] * words), [address.type])
            loaded = builder.call(ir.InlineAsm(kind, text, constraints), [address])
            found = [builder.extract_value(loaded, one) for one in range(words)]
            return context.make_tuple(builder, signature.return_type, found)

        return types.UniTuple(types.uint32, words)(records, types.uint64), code  # type: ignore[attr-defined]

    return cuda.extending.intrinsic(load)  # type: ignore[no-any-return]


def _two_words(records: Ids, at: np.uint64) -> Any:
    return records[at], records[np.uint64(at + np.uint64(1))]


def _four_words(records: Ids, at: np.uint64) -> Any:
    first, third = np.uint64(at + np.uint64(1)), np.uint64(at + np.uint64(3))
    return records[at], records[first], records[np.uint64(first + np.uint64(1))], records[third]


def _make_recorded(variant: Variant, name: str) -> Callable[..., Any]:
    """``value(records, neuron)`` of an integer in records: a load of its own, for few neurons."""
    place, words = variant.record.places[name], np.uint64(variant.record.words)
    word, shift, mask = np.uint64(place.word), np.uint32(place.shift), np.uint32((1 << place.bits) - 1)

    def number(records: Ids, neuron: np.uint32) -> Any:
        return np.int32(np.uint32(records[np.uint64(np.uint64(neuron) * words + word)] >> shift) & mask)

    return cuda.jit(device=True)(number)  # type: ignore[no-any-return]
