"""What the host writes for a launch, value by value, beside what the kernel's signature and its machine code take."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numba import types
from numba.np.numpy_support import as_dtype

from burstproof.compile.numba_cubin import Capability, compile_kernel
from burstproof.compile.resources import parameter_bytes_of, resources_by_kernel
from burstproof.device.dependent_launch import flattened
from burstproof.engine.cuda.args import AT_CALL
from burstproof.engine.cuda.fields import Field, bind, fields_of
from burstproof.engine.cuda.kernels.catalogue import catalogue
from burstproof.engine.cuda.kernels.closed_loop import can_persist, closed_loop_spec, persistent_variant
from burstproof.engine.cuda.kernels.spec import KernelSpec
from burstproof.engine.cuda.plan.shard_variant import ShardVariant, whole
from burstproof.engine.cuda.plan.variant import Variant

_ELEMENTS = 3
"""Of every array; no leaf has this number."""


class _Array:
    """An array on a device as far as a launch looks at it."""

    size = _ELEMENTS

    def __init__(self, dtype: np.dtype[Any], address: int) -> None:
        self.dtype = dtype
        self.__cuda_array_interface__ = {"data": (address, False)}


def kernels_of(chosen: Variant | ShardVariant) -> Iterator[tuple[KernelSpec, ShardVariant]]:
    """Every kernel of ``chosen`` with the variant that its arguments are bound for; the one that stays, too."""
    shard = chosen if isinstance(chosen, ShardVariant) else whole(chosen)
    yield from ((spec, shard) for spec in catalogue(chosen))
    if isinstance(chosen, Variant) and can_persist(chosen):
        yield closed_loop_spec(chosen), persistent_variant(chosen)


class Numbers(dict[str, int]):
    """A number for every name, small enough for any dtype; equal names have equal numbers."""

    def __missing__(self, name: str) -> int:
        return self.setdefault(name, _ELEMENTS + 1 + len(self))


def written(spec: KernelSpec, shard: ShardVariant, numbers: Numbers) -> list[Any]:
    """The values of a launch: an array has the number of its name for an address, a number is that of its name."""

    def value(name: str, field: Field) -> Any:
        return _Array(field.dtype, numbers[name]) if field.array else field.dtype.type(numbers[name])

    values = bind(spec.function, shard, value)
    last = [kind for kind in fields_of(spec.function, shard).values() if kind in AT_CALL]
    return flattened((*values, *(kind(*bind(kind, shard, value)) for kind in last)))


def taken(spec: KernelSpec, shard: ShardVariant, numbers: Numbers) -> list[Any]:
    """The same values as numba's signature of the kernel has them: leaf by leaf in the order of its types."""
    recorded = frozenset(shard.record.places)
    fields = zip(fields_of(spec.function), spec.signature.args, strict=True)
    return [value for name, kind in fields for value in _leaves(name, kind, numbers, recorded)]


def _leaves(name: str, kind: Any, numbers: Numbers, recorded: frozenset[str]) -> Iterator[Any]:
    """Parameters that are ``recorded`` lie in one array."""
    if isinstance(kind, types.BaseTuple):
        for field, part in zip(getattr(kind, "fields", ()), kind.types, strict=True):
            yield from _leaves(field, part, numbers, recorded)
    elif isinstance(kind, types.Array):
        item, array = as_dtype(kind.dtype).itemsize, "records" if name in recorded else name
        yield from (0, 0, _ELEMENTS, item, numbers[array], _ELEMENTS, item)
    else:
        yield as_dtype(kind).type(numbers[name])


def bytes_of(values: list[Any]) -> tuple[int, ...]:
    """Bytes that each value takes in a launch: a Python number takes a word."""
    return tuple(8 if isinstance(value, int) else value.dtype.itemsize for value in values)


def bytes_taken(spec: KernelSpec, capability: Capability) -> tuple[int, ...]:
    """Bytes of each parameter as the machine code of the kernel has them."""
    image = compile_kernel(spec.name, spec.function, spec.signature, capability, spec.registers)
    (name,) = resources_by_kernel(image)
    return parameter_bytes_of(image, name)
