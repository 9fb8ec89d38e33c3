"""The kernels of this room as stage 1 compiles them: every source file in builds that common shapes use."""

from __future__ import annotations

from burstproof.compile.entry import Entry
from burstproof.tensor.array.dtypes import BFLOAT16, COMPLEX128, FLOAT32
from burstproof.tensor.lattices import golden, lattices
from burstproof.tensor.ops import adamw, cross_entropy, elementwise, embedding, linear
from burstproof.tensor.ops.kernels import column_entry
from burstproof.tensor.ops.nn import row_entry
from burstproof.tensor.ops.row_plan import RowPlan

_ROWS = RowPlan(vector=4, items=4, threads=256)
_PARAMETER_ROWS = RowPlan(vector=4, items=2, threads=512, staged=True, hoist=True)
_GRADIENT_ROWS = RowPlan(vector=4, items=4, threads=256, staged=True)

CATALOGUE: tuple[Entry, ...] = (
    row_entry("softmax_forward", FLOAT32, _ROWS),
    row_entry("softmax_backward", FLOAT32, _ROWS),
    row_entry("layer_norm_forward", FLOAT32, _PARAMETER_ROWS),
    row_entry("layer_norm_backward", FLOAT32, _GRADIENT_ROWS),
    column_entry("bias_gelu_forward", BFLOAT16, 8, True),
    column_entry("bias_gelu_backward", BFLOAT16, 8, True),
    column_entry("reduce_columns", FLOAT32, 1, True),
    elementwise.entry("relu(a * b + c) * s", ("a", "b", "c"), ("s",), FLOAT32, 4),
    elementwise.entry("a / b", ("a", "b"), (), COMPLEX128, 1),
    linear.entry("add_columns", BFLOAT16, 8),
    linear.entry("sum_rows", BFLOAT16, 8),
    cross_entropy.entry(BFLOAT16, 8),
    adamw.entry(BFLOAT16),
    embedding.entry("embed", BFLOAT16, 8),
    embedding.entry("embed_backward_tokens", BFLOAT16, 8),
    embedding.entry("embed_backward_places", BFLOAT16, 8),
    lattices.NEAREST,
    *golden.RECURRENCES.values(),
    golden.FRACTION,
    golden.ROTATION,
)
"""Rows of 4096 float32, columns of bfloat16, fused chains, training in bfloat16, E8 and the golden ratio."""
