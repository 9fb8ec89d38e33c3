"""The kernels of this room as stage 1 compiles them: every source file in builds that common shapes use."""

from __future__ import annotations

from burstproof.compile.entry import Entry
from burstproof.tensor.array.dtypes import BFLOAT16, COMPLEX128, FLOAT32
from burstproof.tensor.lattices import golden, lattices
from burstproof.tensor.ops.elementwise_kernels import DEFAULT, entry
from burstproof.tensor.ops.nn_kernels import column_entry, row_entry
from burstproof.tensor.ops.row_plan import RowPlan

_ROWS = RowPlan(vector=4, items=4, threads=256)
_PARAMETER_ROWS = RowPlan(vector=4, items=2, threads=512, staged=True, hoist=True)
_GRADIENT_ROWS = RowPlan(vector=4, items=4, threads=256, staged=True)

CATALOGUE: tuple[Entry, ...] = (
    row_entry("softmax.cu", "softmax_forward", FLOAT32, _ROWS),
    row_entry("softmax.cu", "softmax_backward", FLOAT32, _ROWS),
    row_entry("layer_norm.cu", "layer_norm_forward", FLOAT32, _PARAMETER_ROWS),
    row_entry("layer_norm.cu", "layer_norm_backward", FLOAT32, _GRADIENT_ROWS),
    column_entry("bias_gelu_forward", BFLOAT16, 8, True),
    column_entry("bias_gelu_backward", BFLOAT16, 8, True),
    column_entry("reduce_columns", FLOAT32, 1, True),
    entry("relu(a * b + c) * s", ("a", "b", "c"), ("s",), FLOAT32, 4, DEFAULT),
    entry("a / b", ("a", "b"), (), COMPLEX128, 1, DEFAULT),
    lattices.NEAREST,
    *golden.RECURRENCES.values(),
    golden.FRACTION,
    golden.ROTATION,
)
"""Rows of 4096 float32, columns of bfloat16, a fused chain, complex division, E8 and the golden ratio."""
