"""The tuples of ``args`` read: dtypes of their fields, which of them a variant has no use for, a launch's values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin, get_type_hints

import numpy as np
import numpy.typing as npt

from burstproof.engine.cuda import args
from burstproof.engine.cuda.args import (
    AT_CALL,
    Chunks,
    Deferred,
    Exchange,
    Extras,
    Identity,
    Modulation,
    Parameters,
    Recall,
    Transmission,
)
from burstproof.engine.cuda.plan.columns import PARAMETERS, column_dtype, uniform_dtype

if TYPE_CHECKING:
    from burstproof.engine.cuda.plan.shard_variant import ShardVariant
    from burstproof.engine.cuda.plan.variant import Variant


def made(kind: type, *values: int) -> Any:
    """A tuple of numbers of the declared types."""
    return kind(*(field.dtype.type(value) for field, value in zip(fields_of(kind).values(), values, strict=True)))


@dataclass(frozen=True)
class Field:
    """An argument: a one-dimensional array of ``dtype``, or one number; ``buffer`` if it is called otherwise."""

    dtype: np.dtype[Any]
    array: bool
    buffer: str = ""


def _field(hint: Any, variant: Variant | ShardVariant | None) -> Field:
    chosen = ""
    if get_origin(hint) is Annotated:
        hint, chosen = get_args(hint)
    origin, parts = get_origin(hint), get_args(hint)
    array = origin in (np.ndarray, npt.NDArray)
    if chosen:
        assert variant is not None, "a dtype that depends on the variant"
        return Field(np.dtype(variant.dtype(chosen)), array)
    # NDArray[t] stands for ndarray[shape, dtype[t]]; since NumPy 2.5 it is an alias that keeps its own name.
    kind = get_args(parts[1])[0] if origin is np.ndarray else parts[0] if array else hint
    return Field(np.dtype(kind), array)


@cache
def _hints(declared: Any) -> dict[str, Any]:
    found = get_type_hints(declared, include_extras=True)
    found.pop("return", None)
    return found


def is_tuple(kind: Any) -> bool:
    """Whether an annotation names one of these tuples."""
    return isinstance(kind, type) and issubclass(kind, tuple)


def is_absent(kind: type, variant: Variant | ShardVariant | None) -> bool:
    """Whether kernels of ``variant`` have no use for a tuple: it is empty then."""
    if variant is None:
        return False
    if kind is Recall:
        return variant.recalled == variant.calendar == 0
    if kind is Deferred:
        return not variant.defers_learning
    if kind is Extras:
        return not variant.extras.by_neuron
    if kind is Modulation:
        return not variant.extras.modulators
    if kind is Transmission:
        return not (variant.extras.transmits or variant.extras.degenerates)
    if kind is Chunks:
        return variant.exchanges and variant.queues is None
    return kind in (Exchange, Identity) and not variant.exchanges


def _parameter(name: str, variant: Variant | ShardVariant) -> Field:
    if name in variant.uniform:
        return Field(uniform_dtype(name), array=False)
    if name in variant.record.places:
        return Field(np.dtype(np.uint32), array=True, buffer="records")
    return Field(column_dtype(name, variant.narrow), array=True)


def fields_of(declared: Any, variant: Variant | ShardVariant | None = None) -> dict[str, Any]:
    """What a kernel takes or a tuple holds, by name: a ``Field`` or a tuple's type; ``variant`` chooses dtypes."""
    if declared is Parameters:
        assert variant is not None, "which parameters are columns depends on the variant"
        return {name: _parameter(name, variant) for name in PARAMETERS}
    return {name: hint if is_tuple(hint) else _field(hint, variant) for name, hint in _hints(declared).items()}


_FIELDS = {
    name: hint
    for kind in tuple(vars(args).values())
    if is_tuple(kind) and kind is not Parameters
    for name, hint in _hints(kind).items()
    if not is_tuple(hint)
}


def dtype_of(name: str, variant: Variant) -> np.dtype[Any]:
    """Dtype of the field called ``name``."""
    return _field(_FIELDS[name], variant).dtype


def bind(declared: Any, variant: Variant | ShardVariant | None, value: Callable[[str, Field], Any]) -> tuple[Any, ...]:
    """The arguments of a launch of a kernel, but for one of ``AT_CALL``: each field is ``value(name, field)``.

    Of a tuple's type: what the tuple holds.
    """
    return tuple(
        value(kind.buffer or name, kind) if isinstance(kind, Field) else _tuple_of(kind, variant, value)
        for name, kind in fields_of(declared, variant).items()
        if kind not in AT_CALL
    )


def _tuple_of(kind: type, variant: Variant | ShardVariant | None, value: Callable[[str, Field], Any]) -> Any:
    return () if is_absent(kind, variant) else kind(*bind(kind, variant, value))
