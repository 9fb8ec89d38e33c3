"""Which kernels a shard needs: the engine's variant, and what only a shard has."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from burstproof.engine.cuda.plan.block_size import WARP
from burstproof.engine.cuda.plan.columns import Record
from burstproof.engine.cuda.plan.variant import OwnerQueues, Variant
from burstproof.engine.features.key import ExtrasKey

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
        As for one device; ``fused`` says that all contributions are constants: one kernel sends them, or one a tile.
    spaced_ids : bool
        The ids of the shard's neurons are evenly spaced, so that they need no table.
    carries_potentials : bool
        Potentials cross with the ids, since some contributions or signals follow them.
    threads, per_thread : int
        Block of the dynamics, and neurons that a thread takes at a time.
    share : int
        Threads that send one row, a power of two up to 32.
    overlapped : bool
        Each kernel of the fused form may come up while the one before it ends.
    merged : bool
        One kernel does a whole burst (``kernels.burst``), or what owners do of it (``kernels.owners``).
    row_words : int
        Words of a padded row (``padded_rows``), or 0 where rows lie behind offsets; only if ``merged``.
    exchanges : bool
        There are other shards; a network on one device is one shard without an exchange.
    early : bool
        The next kernel's blocks may come up from the start of a burst in one kernel.
    stays : bool
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
    stays: bool = False

    @property
    def apart(self) -> bool:
        """Whether stimulus lies beside the slot: cells of the FCL may have no room for it, or be other shards' too."""
        return self.exchanges or not self.merged or self.variant.word.packed or self.queues is not None

    @property
    def alone(self) -> bool:
        """Whether a burst's kernel ends with the burst and waits for no other shard in it."""
        waits = self.exchanges and self.queues is None
        return self.merged and not (waits or self.stays)

    @property
    def eager(self) -> bool:
        """Whether a block loads all before it knows its slot: few neurons' bursts wait for loads; a chunk a block."""
        rings = self.variant.rings or self.variant.recalled
        return self.alone and not (self.strides or self.early or rings)

    @property
    def strides(self) -> bool:
        """Whether a block takes several chunks in one burst and puts off their rows together, to several tiles."""
        return self.variant.calendar_tiles > 1 and not self.stays

    @property
    def ahead(self) -> bool:
        """Whether a block loads the state of its neurons before it knows its slot, and only then what arrived.

        It has no registers for that while it empties buckets in tiles.
        """
        return self.alone and self.early and not self.variant.calendar_tiles

    @property
    def words_ahead(self) -> bool:
        """Whether it loads what arrived, too, before it empties a bucket of the calendar, not after."""
        return self.ahead and self.variant.calendar > 0

    @property
    def marks_ahead(self) -> bool:
        """Whether that state includes marks: owners of neurons with features have no registers for them."""
        return self.eager or (self.ahead and (self.queues is None or not self.extras))

    @property
    def leaks_ahead(self) -> bool:
        """Whether it includes what is left of a potential in a burst."""
        ahead = self.marks_ahead and not self.extras
        return ahead and self.variant.features.decays and "decays" not in self.uniform

    @property
    def records_ahead(self) -> bool:
        """Whether owners know, a neuron ahead, which records its burst needs: where most candidates sleep."""
        return self._owns_plain_neurons and self.marks_ahead and self.variant.sleeps and self.record.tells_sleepers

    @property
    def _owns_plain_neurons(self) -> bool:
        return self.queues is not None and not self.extras

    @property
    def registers(self) -> int | None:
        """Most registers of a thread, where a multiprocessor then holds more blocks and nothing spills.

        At capability 9.0 one of blocks of 512 has room for all its threads. Neurons with features have a limit, where a
        thread has one of them, and so have marked words that are loaded ahead of a bucket; other words need none.
        Threads of owners' blocks share all registers of a multiprocessor.
        """
        if self.merged and self.queues is not None:
            return _ALL_REGISTERS // self.threads
        alone = self.alone and not self.strides
        full = self.ahead and self.marks_ahead and self.overlapped and self.threads >= _FULL_BLOCK
        if alone and self.extras.by_neuron and self.per_thread == 1:
            return _FEW_REGISTERS if full and not self.words_ahead else _REGISTERS
        waits = full and self.words_ahead and self.variant.word.marked and not self.extras
        return _FEW_REGISTERS if waits else None

    @property
    def recalled(self) -> int:
        """Bursts whose fired lists are read again."""
        return self.variant.recalled

    @property
    def queues(self) -> OwnerQueues | None:
        """How contributions are delivered by queues per owner."""
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
        """Whether each block works out the factors of its burst."""
        return self.tables and self.extras.area_modulators

    @property
    def uniform(self) -> frozenset[str]:
        """Parameters that are unused, or one value for all neurons."""
        return self.variant.uniform

    @property
    def record(self) -> Record:
        """Parameters of a neuron that lie together."""
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
        """Whether lists are put into one before they are sent: by several kernels, or tile by tile."""
        return not self.fused or self.variant.tiles > 0

    @property
    def can_pad(self) -> bool:
        """Whether a row's header could say what all of its entries contribute, and when."""
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
    threads, per_thread = (256, 4) if neurons > _LARGE else (512 if neurons > _MIDDLE else 256, 1)
    carries = mp_driven or variant.extras.modulators
    return ShardVariant(
        variant, spaced_ids, carries, block or threads, per_thread, row_share(entries / max(sources, 1))
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
    """Threads, and neurons of each at a time, of a burst in one kernel: what four H200s were fastest with."""
    if neurons <= _ONE_PASS:
        return 128, 2
    return (256, 2) if neurons <= _LARGE else (256, 4)


def merged_share(share: int) -> int:
    """Threads that send a row in a burst in one kernel, whose blocks do more beside: the best for rows of 25 and 50."""
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
