"""Flash attention on a CUDA device: which kernels there are, with which tiles, and how they are launched.

Nothing here is checked; ``attention`` is the door. Strided arrays reach the kernels as addresses and element strides,
so that queries, keys and values may lie interleaved in one array, as a transformer's projection writes them.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cache
from math import e, log2
from typing import Any, Literal, NamedTuple

import numpy as np

from burstproof.compile.entry import Entry
from burstproof.compile.parameters import struct_of
from burstproof.compile.source import CudaSource, SourceOptions
from burstproof.tensor.array.dtypes import BFLOAT16, FLOAT16, FLOAT32
from burstproof.tensor.array.protocol import Array

HEADS: tuple[int, ...] = (32, 64, 128)
"""Head sizes that the kernels are built for."""

TENSOR_CORES = (8, 0)
"""Lowest compute capability with bfloat16 tensor cores and asynchronous copies to shared memory."""

Pass = Literal["forward", "keys", "queries"]


class Strides(NamedTuple):
    """Element strides of batch, head and row, as in the sources: those of k are of v, too, and those of out of dout."""

    q_batch: int
    q_head: int
    q_row: int
    k_batch: int
    k_head: int
    k_row: int
    out_batch: int
    out_head: int
    out_row: int


_LAST = f"{struct_of(Strides, 'int64')} int32 int32 float32"
_PARAMETERS: dict[str, str] = {
    "forward": "uint64 " * 4 + "float32[] " + _LAST,
    "delta": "uint64 uint64 float32[] int64 int64 int64 int32",
    "keys": "uint64 " * 4 + "float32[] float32[] uint64 uint64 " + _LAST,
    "queries": "uint64 " * 4 + "float32[] float32[] uint64 " + _LAST,
}
_FUNCTIONS = {"forward": "forward", "delta": "delta", "keys": "backward_keys", "queries": "backward_queries"}
_PLAIN_KIND = {FLOAT32: 0, FLOAT16: 2, BFLOAT16: 3}


@dataclass(frozen=True)
class Tile:
    """How a flash kernel divides its work.

    Attributes
    ----------
    warps : int
        Warps of a block.
    strips : int
        Strips of 16 rows that a warp owns.
    block : int
        Rows of a streamed tile.
    resident : int
        Blocks for which the compiler leaves registers on a multiprocessor.
    hold : bool
        Whether the operand that stays is kept in registers.
    """

    warps: int
    strips: int
    block: int
    resident: int = 2
    hold: bool = True

    @property
    def own(self) -> int:
        """Rows that a block owns."""
        return self.warps * self.strips * 16


TILES: dict[tuple[Pass, int], Tile] = {
    ("forward", 32): Tile(4, 2, 96),
    ("forward", 64): Tile(4, 2, 64),
    ("forward", 128): Tile(4, 1, 64),
    ("keys", 32): Tile(4, 2, 64),
    ("keys", 64): Tile(4, 1, 64),
    ("keys", 128): Tile(4, 1, 32, hold=False),
    ("queries", 32): Tile(4, 1, 64),
    ("queries", 64): Tile(4, 1, 32),
    ("queries", 128): Tile(4, 1, 32),
}
"""Tiles by pass and head size, as measured on an H200."""


def shared_bytes(which: Pass, head: int, tile: Tile) -> int:
    """Dynamic shared memory of a flash kernel: what the block owns, and two stages of what it streams."""
    row = head * 2
    if which == "forward":
        return tile.own * row + 4 * tile.block * row
    floats = 4 * tile.block * 4 if which == "keys" else 0
    return 2 * tile.own * row + 4 * tile.block * row + floats


@cache
def flash_entry(which: Pass | Literal["delta"], head: int, causal: bool, bfloat: bool) -> Entry:
    """A tensor-core kernel; ``which`` is a pass, or ``delta`` for the row sums before the backward passes."""
    tile = TILES["keys" if which == "delta" else which, head]
    file = "flash_forward.cu" if which == "forward" else "flash_backward.cu"
    values = {
        "HEAD": head,
        **{name.upper(): int(value) for name, value in asdict(tile).items()},
        "CAUSAL": int(causal),
        "BFLOAT": int(bfloat),
    }
    options = SourceOptions(defines=tuple((name, str(value)) for name, value in values.items()))
    source = CudaSource.beside(__file__, "flash_instructions.cuh", "flash_tiles.cuh", file, options=options)
    shared = 0 if which == "delta" else shared_bytes(which, head, tile)
    function = f"flash_{_FUNCTIONS[which]}"
    return Entry(source, function, _PARAMETERS[which], tile.warps * 32, shared, minimum=TENSOR_CORES)


@cache
def plain_entry(which: Pass | Literal["delta"], head: int, causal: bool, kind: int) -> Entry:
    """A kernel in float32 arithmetic; ``kind`` as in element.cuh."""
    rows = plain_rows(head)
    values = {"KIND": kind, "HEAD": head, "TILE": rows, "CAUSAL": int(causal), "HINTS": 0}
    options = SourceOptions(defines=tuple((name, str(value)) for name, value in values.items()))
    source = CudaSource.beside(__file__, "../ops/element.cuh", "attention_plain.cu", options=options)
    return Entry(source, f"plain_{_FUNCTIONS[which]}", _PARAMETERS[which], rows * 8)


def plain_rows(head: int) -> int:
    """Rows of a tile of the float32 kernels: four tiles fit 48 KiB of shared memory."""
    return 16 if head == 128 else 32


CATALOGUE: tuple[Entry, ...] = (
    *(flash_entry(which, 64, True, True) for which in ("forward", "delta", "keys", "queries")),
    *(plain_entry(which, 64, True, 0) for which in ("forward", "delta", "keys", "queries")),
)
"""What stage 1 compiles for every capability: the causal kernels of GPT-2's head size."""


@dataclass(frozen=True)
class FlashKernels:
    """The kernels for one kind of problem on one device.

    Attributes
    ----------
    device : int
    head : int
    causal : bool
    dtype : numpy dtype
        float16, bfloat16 (uint16) or float32.
    tensor_cores : bool
        Whether the tensor-core kernels are taken.
    """

    device: int
    head: int
    causal: bool
    dtype: np.dtype[Any]
    tensor_cores: bool

    def forward(self, q: Array, k: Array, v: Array, out: Array, lse: Array, scale: float) -> None:
        """Queue the forward pass into ``out`` and ``lse``."""
        arrays = tuple(_address(array) for array in (q, k, v, out))
        self._launch("forward", (*arrays, lse), q, k, out, scale)

    def backward(
        self,
        dout: Array,
        tensors: tuple[Array, Array, Array],
        out: Array,
        lse: Array,
        gradients: tuple[Array, Array, Array],
        scale: float,
    ) -> None:
        """Queue the backward passes into ``gradients`` (dq, dk, dv); ``dout`` has the strides of ``out``."""
        import cupy

        q, k, v = tensors
        dq, dk, dv = (_address(array) for array in gradients)
        delta = cupy.empty(lse.shape, dtype=FLOAT32)
        self._delta(out, dout, delta)
        read = tuple(_address(array) for array in (q, k, v, dout))
        self._launch("keys", (*read, lse, delta, dk, dv), q, k, out, scale)
        self._launch("queries", (*read, lse, delta, dq), q, k, out, scale)

    def _delta(self, out: Array, dout: Array, delta: Array) -> None:
        batch, heads, queries, _ = out.shape
        entry = self._entry("delta")
        rows = TILES["keys", self.head].warps if self.tensor_cores else entry.block
        grid = (-(-queries // rows), heads, batch)
        entry.on(self.device)(grid, entry.block, _address(out), _address(dout), delta, *_strides(out), queries)

    def _launch(self, which: Pass, arrays: tuple[Any, ...], q: Array, k: Array, out: Array, scale: float) -> None:
        batch, heads, queries, _ = q.shape
        keys = k.shape[2]
        own = TILES[which, self.head].own if self.tensor_cores else plain_rows(self.head)
        entry = self._entry(which)
        tiles = -(-(keys if which == "keys" else queries) // own)
        grid = (heads, tiles, batch) if self.tensor_cores else (tiles, heads, batch)
        values = (Strides(*_strides(q), *_strides(k), *_strides(out)), queries, keys, scale * log2(e))
        entry.on(self.device)(grid, entry.block, *arrays, *values, shared_bytes=entry.shared_bytes)

    def _entry(self, which: Pass | Literal["delta"]) -> Entry:
        if not self.tensor_cores:
            return plain_entry(which, self.head, self.causal, _PLAIN_KIND[self.dtype])
        return flash_entry(which, self.head, self.causal, self.dtype == BFLOAT16)


def _address(array: Array) -> int:
    return int(array.data.ptr)


def _strides(array: Array) -> tuple[int, int, int]:
    """Element strides of batch, head and row."""
    size = array.itemsize
    return array.strides[0] // size, array.strides[1] // size, array.strides[2] // size
