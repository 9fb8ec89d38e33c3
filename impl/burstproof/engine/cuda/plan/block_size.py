"""Threads of a block and neurons of a thread, by size class (BE-12)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from burstproof.errors import ConfigError

LONG_ROW = 1024
"""If rows are longer than this, some blocks of the fused burst send only long rows (``kernels.long_rows``)."""

PIECE = 512
"""Most entries of a long row that such a block sends at a time."""

CHUNKS_PER_SPAN = 64
"""Chunks in a span: the fused burst counts firings by chunk, and by span."""

WARP = 32
"""Threads of a warp, on every CUDA device."""

GROUP = 4
"""Neurons with consecutive indices of which a thread loads a column by one instruction (``kernels.groups``)."""

ENQUEUE_THREADS, ENQUEUE_BLOCKS, ENQUEUE_REGISTERS = 1024, 1, 64
"""Of the kernel that sorts by owner: threads of a block, blocks on a multiprocessor, registers of a thread."""
_LARGEST_BLOCK = 1024
_SMALL, _MIDDLE, _LARGE = 200_000, 700_000, 1_500_000
_SUM_BITS = (8, 16, 32)
_CALENDAR_MIDDLE, _FEW_COLUMNS = 400_000, 3


def default_block_size(neurons: int) -> int:
    """Threads per block by size class (BE-12)."""
    if neurons < 100_000:
        return 128
    return 256 if neurons <= 1_000_000 else 512


def checked_block_size(asked: int, neurons: int) -> int:
    """``asked``, or the default if it is 0.

    Raises
    ------
    ConfigError
        Not a multiple of 32 between 32 and 1024.
    """
    if asked == 0:
        return default_block_size(neurons)
    if asked % WARP or not WARP <= asked <= _LARGEST_BLOCK:
        raise ConfigError(
            "not a block size", where="cuda.block_size", got=asked, allowed="0, or a multiple of 32 in 32...1024"
        )
    return asked


@dataclass(frozen=True)
class FusedShape:
    """A block of the fused burst: ``threads``, each with ``per_thread`` neurons of the block's chunk.

    ``early``: on devices that can (``dependent_launch``), the next kernel's blocks may start as soon as this one's
    have; otherwise only as this one's end. ``neurons``: those of the network, which decide how many a thread has; 0 if
    the number of threads was asked for.
    """

    threads: int
    per_thread: int
    early: bool = True
    neurons: int = 0

    @property
    def chunk(self) -> int:
        """Neurons that a block takes at a time."""
        return self.threads * self.per_thread

    def for_columns(self, columns: int) -> FusedShape:
        """The shape for so many ``columns`` of parameters: above a few, a thread has registers for one neuron."""
        return replace(self, per_thread=2 if self.neurons > _MIDDLE and columns <= _FEW_COLUMNS else 1)

    @property
    def for_calendar(self) -> FusedShape:
        """The shape with a calendar: fewer, larger blocks wait less often for places in its buckets."""
        return replace(self, per_thread=2 if self.neurons > _CALENDAR_MIDDLE else 1)


def fused_shape(asked: int, neurons: int) -> FusedShape:
    """The shape for a network, measured on an H200, with one neuron per thread; ``asked`` threads unless 0.

    Raises
    ------
    ConfigError
        As ``checked_block_size``.
    """
    if asked:
        return FusedShape(checked_block_size(asked, neurons), 1, early=neurons > _SMALL)
    if neurons <= _SMALL:
        return FusedShape(256, 1, early=False)
    return FusedShape(512, 1, neurons=neurons)


def warp_row(neurons: int) -> int:
    """Longest row that a warp of the fused burst sends in a network with long rows, measured on an H200."""
    if neurons <= _SMALL:
        return 128
    return 384 if neurons <= _MIDDLE else LONG_ROW


def helping_threads(neurons: int) -> int:
    """Threads of a multiprocessor that send long rows; in bursts of few neurons each further block costs time."""
    return 512 if neurons <= _SMALL else 2048


def least_sum_bits(asked: int, neurons: int) -> int:
    """Least width of a neuron's sum in bits; ``asked`` unless 0.

    Narrow sums save bandwidth, but more contributions meet in a word. They pay above ``_LARGE`` neurons.

    Raises
    ------
    ConfigError
        Not a width.
    """
    if asked not in (0, *_SUM_BITS):
        raise ConfigError("not a width of a sum", where="cuda.sum_bits", got=asked, allowed="0, 8, 16 or 32")
    return asked or (8 if neurons > _LARGE else 32)
