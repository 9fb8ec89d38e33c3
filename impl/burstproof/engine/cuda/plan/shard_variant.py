"""Which kernels a shard needs: the engine's variant, and what only a shard has."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from burstproof.engine.cuda.plan.block_size import GROUP, WARP
from burstproof.engine.cuda.plan.columns import Record
from burstproof.engine.cuda.plan.variant import OwnerQueues, Variant
from burstproof.engine.features.key import ExtrasKey
from burstproof.engine.precision import Precision

_BLOCK = 256
_MIDDLE, _LARGE = 200_000, 1_500_000
_ONE_PASS = 300_000
_FULL_BLOCK, _FEW_REGISTERS, _REGISTERS, _ALL_REGISTERS = 512, 32, 40, 1 << 16


@dataclass(frozen=True)
class ShardVariant:
    """What the kernels of a shard are specialised for.

    Attributes
    ----------
    variant : Variant
        As for one device. ``fused`` is not ``None`` if all contributions are constants: one kernel sends them, or one
        a tile.
    spaced_ids : bool
        The ids of the shard's neurons are evenly spaced, so they need no table.
    carries_potentials : bool
        Shards exchange potentials with the ids, since contributions or signals depend on them.
    threads, per_thread : int
        Threads of a block of the dynamics, and neurons that each takes at a time.
    share : int
        Threads that send one row, a power of two up to 32.
    overlapped : bool
        The blocks of each kernel of the fused form may start while the previous kernel ends.
    merged : bool
        One kernel does a whole burst (``kernels.burst``), or all but its sending (``kernels.owners``).
    row_words : int
        Words of a padded row (``padded_rows``), or 0 if rows are found by offsets; only if ``merged``.
    exchanges : bool
        There are other shards; a network on one device is one shard without an exchange.
    early : bool
        The next kernel's blocks may start as soon as a merged burst has.
    persistent : bool
        The burst is one turn of a kernel that stays on the device: a block takes chunk after chunk.
    """

    variant: Variant
    spaced_ids: bool
    carries_potentials: bool
    threads: int
    per_thread: int
    share: int
    overlapped: bool = False
    merged: bool = False
    row_words: int = 0
    exchanges: bool = True
    early: bool = True
    persistent: bool = False

    @property
    def apart(self) -> bool:
        """Whether stimulus has an array of its own: a cell of the FCL may lack room for it, or be other shards' too."""
        return self.exchanges or not self.merged or self.variant.word.packed or self.queues is not None

    @property
    def alone(self) -> bool:
        """Whether a burst's kernel ends with the burst and waits for no other shard in it."""
        waits = self.exchanges and self.queues is None
        return self.merged and not (waits or self.persistent)

    @property
    def eager(self) -> bool:
        """Whether a block loads all, both slots included, before it knows which slot the burst consumes.

        Bursts of few neurons wait for loads. A block has one chunk then.
        """
        other_slots = self.variant.rings or self.variant.recalled
        return self.alone and not (self.strides or self.early or other_slots)

    @property
    def strides(self) -> bool:
        """Whether a block takes several chunks in one burst, and puts their rows into several tiles together."""
        return self.variant.calendar_tiles > 1 and not self.persistent

    @property
    def ahead(self) -> bool:
        """Whether a block loads the state of its neurons before it knows its slot, and the slot after that.

        A block that empties buckets in tiles has no registers for it.
        """
        return self.alone and self.early and not self.variant.calendar_tiles

    @property
    def words_ahead(self) -> bool:
        """Whether a block also loads the slot's words before it empties a bucket of the calendar, not after."""
        return self.ahead and self.variant.calendar > 0

    @property
    def marks_ahead(self) -> bool:
        """Whether the state loaded ahead includes marks: owners of neurons with features have no registers for them."""
        return self.eager or (self.ahead and (self.queues is None or not self.extras))

    @property
    def leaks_ahead(self) -> bool:
        """Whether it includes the factors that leaks leave of a potential."""
        ahead = self.marks_ahead and not self.extras
        return ahead and self.variant.features.decays and "decays" not in self.uniform

    @property
    def records_ahead(self) -> bool:
        """Whether owners load records one neuron ahead, if the burst needs them: candidates may sleep."""
        return self._plain_owners and self.variant.sleeps and self.record.tells_sleepers and not self.sleepers

    @property
    def sleepers(self) -> bool:
        """Whether owners step candidates that sleep apart from the few others (``kernels.sleepers``).

        A warp has whole groups then, all of one chunk.
        """
        single, whole = self.variant.features.storage.precision is Precision.FP32, self.chunk % (GROUP * WARP) == 0
        return self._plain_owners and self.variant.few_awake and single and whole and not self.variant.count_ahead

    @property
    def _plain_owners(self) -> bool:
        return self.queues is not None and not self.extras and self.marks_ahead

    @property
    def registers(self) -> int | None:
        """Most registers of a thread; ``None`` for no limit.

        An owner's block takes all registers of a multiprocessor. Otherwise a limit is set if more blocks are resident
        with it and nothing spills: for neurons with features, if a thread has one, and for words that are loaded ahead
        of a bucket. Blocks of 512 threads can fill a multiprocessor of 9.0.
        """
        if self.merged and self.queues is not None:
            return _ALL_REGISTERS // self.threads
        can_fill = self.ahead and self.marks_ahead and self.overlapped and self.threads >= _FULL_BLOCK
        if self.alone and not self.strides and self.extras.by_neuron and self.per_thread == 1:
            return _FEW_REGISTERS if can_fill and not self.words_ahead else _REGISTERS
        waits = can_fill and self.words_ahead and not self.extras
        return _FEW_REGISTERS if waits else None

    @property
    def recalled(self) -> int:
        """Bursts whose fired lists are read again."""
        return self.variant.recalled

    @property
    def queues(self) -> OwnerQueues | None:
        """Queues per owner, if contributions are delivered through them."""
        return self.variant.queues

    @property
    def calendar(self) -> int:
        """Buckets of later bursts; 0 without a calendar."""
        return self.variant.calendar

    @property
    def defers_learning(self) -> bool:
        """Whether learning is deferred."""
        return self.variant.defers_learning

    @property
    def extras(self) -> ExtrasKey:
        """Features that the kernels have."""
        return self.variant.extras

    @property
    def tables(self) -> bool:
        """Whether each block has tables of the classes of neurons."""
        return self.variant.tables and self.merged and not self.exchanges

    @property
    def makes_factors(self) -> bool:
        """Whether each block computes the factors of its burst."""
        return self.tables and self.extras.area_modulators

    @property
    def uniform(self) -> frozenset[str]:
        """Parameters that are unused, or one value for all neurons."""
        return self.variant.uniform

    @property
    def record(self) -> Record:
        """Layout of a neuron's record: the parameters that lie together."""
        return self.variant.record

    @property
    def narrow(self) -> frozenset[str]:
        """Columns of 16 bits that take 8."""
        return self.variant.narrow

    def dtype(self, name: str) -> type[np.generic]:
        """The variant's scalar type called ``name``; padded rows are read in pairs of words."""
        return np.uint64 if name == "target" and self.row_words else self.variant.dtype(name)

    @property
    def fused(self) -> bool:
        """Whether all contributions are constants."""
        return self.variant.fused is not None

    @property
    def collects(self) -> bool:
        """Whether the shards' lists become one before they are sent: by several kernels, or tile by tile."""
        return not self.fused or self.variant.tiles > 0

    @property
    def can_pad(self) -> bool:
        """Whether a padded row could do: its header has room for one contribution, and for no delay."""
        variant = self.variant
        return variant.uniform_rows and variant.contribution_bits == 16 and not variant.delays

    @property
    def chunk(self) -> int:
        """Neurons that a block takes at a time."""
        return self.threads * self.per_thread


def shard_variant(
    variant: Variant, neurons: int, entries: int, sources: int, *, spaced_ids: bool, mp_driven: bool, block: int = 0
) -> ShardVariant:
    """The variant of a shard of ``neurons`` neurons, with ``entries`` synapses from ``sources`` sources."""
    return ShardVariant(
        variant,
        spaced_ids=spaced_ids,
        carries_potentials=mp_driven or variant.extras.modulators,
        threads=block or (512 if _MIDDLE < neurons <= _LARGE else 256),
        per_thread=4 if neurons > _LARGE else 1,
        share=row_share(entries / max(sources, 1)),
    )


def whole(variant: Variant, block: int = _BLOCK) -> ShardVariant:
    """A whole network on one device, ``block`` threads a block unless a burst is one kernel."""
    fused = variant.fused
    return ShardVariant(
        variant,
        spaced_ids=True,
        carries_potentials=False,
        threads=fused.threads if fused else block,
        per_thread=fused.per_thread if fused else 1,
        share=WARP,
        overlapped=variant.overlapped,
        merged=fused is not None,
        exchanges=False,
        early=fused is not None and fused.early,
    )


def merged_shape(neurons: int) -> tuple[int, int]:
    """Threads of a block, and neurons of each at a time, of a merged burst: the fastest on four H200s."""
    if neurons <= _ONE_PASS:
        return 128, 2
    return (256, 2) if neurons <= _LARGE else (256, 4)


def merged_share(share: int) -> int:
    """Threads that send a row in a merged burst, whose blocks do more beside: the best for rows of 25 and 50."""
    return max(1, share // 2)


def padded_share(words: int) -> int:
    """Threads that send a padded row of so many words: each loads two or three pairs of words at once."""
    return max(1, (1 << ((words // 2).bit_length() - 1)) // 2)


def row_share(mean_row: float) -> int:
    """Threads that send a row of ``mean_row`` entries: about two for each, the best of 4, 8 and 16 for rows of 25."""
    share = 1
    while share < WARP and 2 * share < mean_row:
        share *= 2
    return share
