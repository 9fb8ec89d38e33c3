"""What CUDA C++ kernels take, read from their text; structs among it as the compiler lays them out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from burstproof.compile.parameters import Parameter
from burstproof.compile.source import CudaSource

_TYPES = {"int32": "int", "uint32": "unsigned", "int64": "long long", "float32": "float", "float64": "double"}
"""Of a field in C++."""

_KERNEL = re.compile(r"__global__(?P<before>[^;{]*?)\b(?P<name>\w+)\s*\((?P<taken>[^(){}]*)\)\s*\{")
_BOUNDS = re.compile(r"__launch_bounds__\([^)]*\)")
_COMMENT = re.compile(r"//.*")


def kernels_in(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Name and parameters (type and name) of every kernel in CUDA C++ ``text``."""
    for found in _KERNEL.finditer(_BOUNDS.sub("", _COMMENT.sub("", text))):
        taken = " ".join(found["taken"].split())
        yield found["name"], tuple(part.strip() for part in taken.split(",") if part.strip())


def asserting(source: CudaSource, struct: Parameter) -> CudaSource:
    """``source`` up to its first kernel; it compiles only if the struct has just the declared fields in their order.

    A list of values fills fields as they lie in memory; fields of one type as large as all of them leave no gaps.
    """
    name, fields = struct.struct, struct.fields
    numbers = ", ".join(str(place) for place, _ in enumerate(fields))
    lines = [
        f"static_assert(sizeof({name}) == {np.dtype(struct.dtype).itemsize * len(fields)});",
        f"constexpr {name} filled{{{numbers}}};",
        *(f"static_assert(filled.{field} == {place});" for place, field in enumerate(fields)),
        *(f"constexpr {_TYPES[struct.dtype]} {name}::*of_{field} = &{name}::{field};" for field in fields),
    ]
    return replace(source, text="\n".join((source.text.partition('extern "C" __global__')[0], *lines, "")))
