"""A kernel to compile: its signature follows from the tuples that it takes (``engine.cuda.args``)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from numba import types
from numba.np.numpy_support import from_dtype

from burstproof.compile.code import NumbaCode
from burstproof.engine.cuda.fields import Field, fields_of, is_absent
from burstproof.engine.cuda.plan.shard_variant import ShardVariant
from burstproof.engine.cuda.plan.variant import Variant


@dataclass(frozen=True, eq=False)
class KernelSpec:
    """A kernel to compile: ``function`` in Python with the numba ``signature`` that it is launched with.

    ``registers``: limit for each thread; ``None``: as many as the compiler takes.
    """

    name: str
    function: Callable[..., None]
    signature: Any
    registers: int | None = None

    @property
    def code(self) -> NumbaCode:
        """What its machine code is compiled from."""
        return NumbaCode(self.function, self.signature, self.registers)


def kernel_spec(
    name: str,
    function: Callable[..., None],
    variant: Variant | ShardVariant | None = None,
    registers: int | None = None,
) -> KernelSpec:
    """The spec of ``function``, whose signature follows from its annotations (``engine.cuda.args``)."""
    kinds = fields_of(function, variant).values()
    return KernelSpec(name, function, types.void(*(_numba_type(kind, variant) for kind in kinds)), registers)


def _numba_type(kind: Any, variant: Variant | ShardVariant | None) -> Any:
    if isinstance(kind, Field):
        scalar = from_dtype(kind.dtype)
        return types.Array(scalar, 1, "C") if kind.array else scalar
    if is_absent(kind, variant):
        return types.Tuple(())
    fields = (_numba_type(field, variant) for field in fields_of(kind, variant).values())
    return types.BaseTuple.from_types(tuple(fields), pyclass=kind)
