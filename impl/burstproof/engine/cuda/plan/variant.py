"""What kernels are specialised for: a ``Variant``, the key under which compiled kernels are kept."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
import numpy.typing as npt

from burstproof.engine.cuda.plan.block_size import ENQUEUE_THREADS, LONG_ROW, FusedShape, fused_shape, least_sum_bits
from burstproof.engine.cuda.plan.columns import NO_RECORD, Record, record_of
from burstproof.engine.cuda.plan.histories import LONGEST_DEFERRED, MOST_RULES
from burstproof.engine.cuda.plan.word import Word, largest_sum, marked_word
from burstproof.engine.features.key import NO_KEY, ExtrasKey
from burstproof.engine.layout import Layout, PlasticRules, StaticRows
from burstproof.engine.options import EngineOptions
from burstproof.engine.profile import BATCH_PATH_CANDIDATES, LARGE_NETWORK_NEURONS
from burstproof.engine.rules import Features
from burstproof.network.fixed_point import FixedPoint

_CHUNK = 1 << 24
SPACING = 32
"""Words from the length of one queue to that of the next, a cache line: all blocks reserve places at once."""
MOST_RECALLED = 64
"""Most bursts whose fired lists are read again (``kernels.recall``)."""


class Restart(Enum):
    """Which non-accumulating neurons restart from 0 at the start of a burst (SEMANTICS section 6)."""

    NONE = "none"
    CANDIDATES = "candidates"
    ALL = "all"
    FIRED = "fired"


_ENTRIES: dict[int, type[np.unsignedinteger]] = {16: np.uint16, 32: np.uint32, 64: np.uint64}


@dataclass(frozen=True)
class OwnerQueues:
    """Queues per owner (``plan.queues``).

    Attributes
    ----------
    owners, span : int
        Number of blocks that own neurons, and of consecutive neurons that each owns: a multiple of the block's chunk.
    low_bits : int
        A 64-bit sum is kept in two 32-bit words. The first adds up so many low bits of each contribution. 0: one word.
    entry_bits : int
        Width of a queue entry: 16 if all contributions are equal, so that an entry is a target alone; 64 if a
        contribution needs more than 16 bits and there is no palette; otherwise 32.
    part : int
        Mean number of entries that a row delivers in one burst.
    bin_room : int
        Entries of one owner that a block collects in shared memory before they go to the owner's queue.
    word, shape : Word, FusedShape
        Those of the variant without queues.
    rows_put_off : int
        Rows whose entries a block puts into buckets at a time (``kernels.buckets``). 0 without buckets: no delay
        exceeds 1, or fired lists are read again.
    notes_parts : bool
        Before a block loads entries, it notes in shared memory which row each belongs to: that pays if rows are short.
        Otherwise it notes the row of every 2^n-th entry, and each thread goes on from there.
    most_parts : int
        Most rows whose entries a block takes at a time; with delays, parts of rows.
    """

    owners: int
    span: int
    low_bits: int
    entry_bits: int
    part: int
    bin_room: int
    word: Word
    shape: FusedShape
    rows_put_off: int = 0
    notes_parts: bool = False
    most_parts: int = 1024

    @property
    def entry_bytes(self) -> int:
        """Bytes of an entry."""
        return self.entry_bits // 8

    @property
    def bin_bytes(self) -> int:
        """Bytes of shared memory for the bins of a block, and an entry for each of its threads behind them."""
        return (self.owners * self.bin_room + ENQUEUE_THREADS) * self.entry_bytes

    @property
    def shared_bytes(self) -> int:
        """Bytes of shared memory for the sums of an owner."""
        return self.span * (8 if self.low_bits else 4)


@dataclass(frozen=True)
class Variant:
    """What the kernels are specialised for.

    Attributes
    ----------
    features : Features
        What the rules of SEMANTICS section 3 need.
    accumulator_bits : int
        Width of a sum, 32 or 64.
    contribution_bits : int
        Width of a stored static contribution: 16, 32 or 64.
    offset_bits : int
        Width of a row offset: 32, or 64 from 2^32 synapses on.
    delays : bool
        Some delay is above 1: every synapse carries one.
    clamps : bool
        Some static contribution was clamped.
    computed : bool
        Some contributions are computed when the source fires.
    round_mp_driven : bool
        The profile rounds and caps mp-driven psp.
    plastic : bool
        There are plastic mappings.
    learns_in_order : bool
        Plastic synapse i is computed entry i, so no position is read.
    short_windows : bool
        One word of firing history per neuron reaches back as far as every plastic mapping looks (``plan.histories``).
    plastic_all_window : bool
        The profile's rule of plasticity; weights then change before the propagation.
    restart : Restart
    count_ahead : bool
        Candidates are counted before the dynamics: the batch path is emulated, and the network can reach it.
    uniform_rows : bool
        All static contributions of a source are equal and kept once per source.
    word : Word
        Format of a neuron's cell in the FCL.
    fused : FusedShape or None
        Block of the fused burst. ``None``: a burst takes several kernels, since contributions are computed, or
        candidates are counted ahead.
    overlapped : bool
        The device starts a kernel's blocks while the last blocks of the previous kernel run (9.0 and newer).
    streamed : bool
        Synapses lie in host memory: rows are read in whole lines of the link.
    long_rows : int
        Most entries that a warp of the fused burst sends: longer rows go in pieces to helpers. 0: no row is long.
    row_length : int
        Static entries of every source if all have equally many, so that no offset is read; else 0.
    equal_rows : bool
        All static contributions are equal: none is read.
    tiles : int
        Passes in which the fused burst sends rows, each for a range of targets (``kernels.tiles``); 0: one pass.
    tile_share : int
        Threads that send the entries of a row for one pass, or for one delay.
    recalled : int
        Bursts whose fired lists are read again: as many as the largest delay, if delays are kept on the sender's side
        (``kernels.recall``) or there are queues. 0 with a ring of slots or a calendar.
    queues : OwnerQueues or None
        Queues per owner, if contributions are delivered through them; ``recalled`` is then at least 1.
    calendar, calendar_bits : int
        Buckets for contributions to later bursts (``kernels.calendar``), a power of two and at least the largest delay,
        and the width of their words; 0 without a calendar.
    calendar_tiles : int
        Tiles of each bucket (``kernels.tiled_calendar``); 0 if a bucket has room for every synapse.
    target_bits : int
        Low bits of a row's entry that hold its target, if an entry is one 32-bit word (``plan.entries``); 0 if
        targets and contributions are columns of their own.
    palette : bool
        A table holds each distinct contribution once. An entry has the place in this table: above its target if it is
        one word, else in a column of 16 bits (``placed``).
    may_sleep : bool
        The excitability draw comes before the parameters are read: candidates that it keeps silent need none. This pays
        if the columns exceed the cache.
    few_awake : bool
        The excitability draw keeps most candidates silent, whatever their parameters.
    together : bool
        Parameters lie in records although no candidate sleeps: a small burst waits for loads, and a column costs one.
    uniform : frozenset of str
        Parameters (``plan.columns.PARAMETERS``) that are unused, or one value for all neurons.
    narrow : frozenset of str
        Columns of 16 bits that take 8, parameters or ``countdowns`` and ``counts``: no value can exceed 255.
    extras : ExtrasKey
        Features of FEATURES.md.
    few_classes : bool
        Modulators and classes of neurons are few enough for tables in each block's shared memory.
    powered : bool
        There may be a power neuron.
    """

    features: Features
    accumulator_bits: int
    contribution_bits: int
    offset_bits: int
    delays: bool
    clamps: bool
    computed: bool
    round_mp_driven: bool
    plastic: bool
    learns_in_order: bool
    short_windows: bool
    plastic_all_window: bool
    restart: Restart
    count_ahead: bool
    uniform_rows: bool
    word: Word
    fused: FusedShape | None
    overlapped: bool = False
    streamed: bool = False
    long_rows: int = 0
    row_length: int = 0
    equal_rows: bool = False
    tiles: int = 0
    tile_share: int = 1
    recalled: int = 0
    queues: OwnerQueues | None = None
    calendar: int = 0
    calendar_bits: int = 0
    calendar_tiles: int = 0
    target_bits: int = 0
    palette: bool = False
    may_sleep: bool = False
    few_awake: bool = False
    together: bool = False
    uniform: frozenset[str] = frozenset()
    narrow: frozenset[str] = frozenset()
    extras: ExtrasKey = NO_KEY
    few_classes: bool = False
    powered: bool = True

    @property
    def accumulator(self) -> type[np.signedinteger]:
        """Scalar type of a sum."""
        return np.int32 if self.accumulator_bits == 32 else np.int64

    @property
    def exchanges(self) -> bool:
        """Whether there are other shards: never, unlike in a ``ShardVariant``."""
        return False

    @property
    def defers_learning(self) -> bool:
        """Whether a synapse learns only once its weight is needed (``kernels.deferred``)."""
        return self.plastic and self.short_windows and not self.plastic_all_window and not self.extras.modes

    @property
    def rings(self) -> bool:
        """Whether contributions of different delays go to different slots."""
        return self.delays and not self.recalled and not self.calendar

    @property
    def sleeps(self) -> bool:
        """Whether candidates may sleep: the draw decides that they stay silent before their parameters are read.

        Modulated excitabilities have a bound for each class; the columns of memories' twins change.
        """
        return self.may_sleep and not self.extras.replays

    @property
    def record(self) -> Record:
        """Layout of a neuron's record: the parameters that lie together."""
        recorded = self.sleeps or (self.together and not self.extras.replays)
        return record_of(self.uniform, self.narrow) if recorded else NO_RECORD

    @property
    def tables(self) -> bool:
        """Whether each block of the fused burst has tables of the classes of neurons (``kernels.classes``).

        Not with memories: these drive modulators, and the host would write drivers that no block sees.
        """
        fused = self.fused is not None and self.queues is None
        return fused and self.few_classes and self.extras.adapts and not self.extras.replays

    @property
    def makes_factors(self) -> bool:
        """Whether each block also computes the factors of modulators."""
        return self.tables and self.extras.area_modulators

    @property
    def noted(self) -> type[np.signedinteger]:
        """Scalar type of a word in the calendar."""
        return np.int32 if self.calendar_bits == 32 else np.int64

    @property
    def cell(self) -> type[np.integer]:
        """Scalar type of the array of cells."""
        return self.word.cell

    @property
    def added(self) -> type[np.signedinteger]:
        """Scalar type of the words that contributions are added to."""
        return self.word.added

    @property
    def contribution(self) -> type[np.signedinteger]:
        """Scalar type of a stored static contribution."""
        types: dict[int, type[np.signedinteger]] = {16: np.int16, 32: np.int32, 64: np.int64}
        return types[self.contribution_bits]

    @property
    def placed(self) -> bool:
        """Whether the column of contributions holds places in the palette."""
        return self.palette and not self.target_bits

    @property
    def column(self) -> type[np.integer]:
        """Scalar type of the column of contributions."""
        return np.uint16 if self.placed else self.contribution

    @property
    def read_contribution(self) -> type[np.integer]:
        """Scalar type in which that column is read: from host memory two contributions of 16 bits at a time."""
        return np.int32 if self.streamed and packed_contributions(self) else self.column

    @property
    def read_delay(self) -> type[np.integer]:
        """Scalar type in which delays are read: from host memory four at a time."""
        return np.int32 if self.streamed and self.delays else np.uint8

    @property
    def target(self) -> type[np.integer]:
        """Scalar type of a target, or of a row's entry that is one word."""
        return np.int32 if self.target_bits else np.uint32

    @property
    def queued(self) -> type[np.unsignedinteger]:
        """Scalar type of an entry of a queue."""
        return _ENTRIES[self.queues.entry_bits if self.queues is not None else 32]

    @property
    def potential(self) -> type[np.generic]:
        """Scalar type of a stored potential."""
        return self.features.storage.precision.dtype.type

    @property
    def countdown(self) -> type[np.unsignedinteger]:
        """Scalar type of a refractory countdown."""
        return np.uint8 if "countdowns" in self.narrow else np.uint16

    @property
    def count(self) -> type[np.unsignedinteger]:
        """Scalar type of a count of consecutive fires."""
        return np.uint8 if "counts" in self.narrow else np.uint16

    @property
    def kind(self) -> type[np.unsignedinteger]:
        """Scalar type of a neuron's kind: its class and flags (``plan.features``)."""
        return np.uint16 if self.few_classes else np.uint32

    @property
    def offset(self) -> type[np.unsignedinteger]:
        """Scalar type of a row offset."""
        return np.uint32 if self.offset_bits == 32 else np.uint64

    def dtype(self, name: str) -> type[np.generic]:
        """The scalar type called ``name`` above."""
        chosen: type[np.generic] = getattr(self, name)
        return chosen


def lists_kept(variant: Variant) -> int:
    """Fired lists kept for another reading: a power of two, so that burst numbers may wrap around."""
    return 1 << max(variant.recalled - 1, 0).bit_length()


def can_be_recalled(longest_row: int, delay: int) -> bool:
    """Whether each burst can read the fired lists of the last ``delay`` bursts again: rows are short, delays few."""
    return longest_row <= LONG_ROW and delay <= MOST_RECALLED


def in_columns(variant: Variant) -> bool:
    """Whether contributions, or their places in the palette, are a column beside the targets."""
    return not (variant.uniform_rows or variant.target_bits)


def packed_contributions(variant: Variant) -> bool:
    """Whether static contributions in host memory are read in 32-bit words of two."""
    return variant.contribution_bits == 16 and not variant.uniform_rows


def variant_of(
    layout: Layout,
    features: Features,
    options: EngineOptions,
    fixed_point: FixedPoint,
    *,
    bounded: bool = True,
    several_kernels: bool = False,
) -> Variant:
    """The variant for a packed network, before ``sizing.sized``.

    Parameters
    ----------
    bounded : bool
        Sums keep to the bound of ``fixed_point``.
    several_kernels : bool
        A burst must take several kernels, whatever its contributions are.
    """
    if not bounded:
        fixed_point = replace(fixed_point, largest_sum=(1 << (fixed_point.bits - 1)) - 1)
    profile = options.profile
    count_ahead = options.emulate_batch_path and layout.neuron_count >= BATCH_PATH_CANDIDATES
    fusible = layout.computed is None and not count_ahead and not several_kernels
    fused = fused_shape(options.cuda.block_size, layout.neuron_count)
    entries = len(layout.static.targets) + (len(layout.computed.targets) if layout.computed else 0)
    return Variant(
        features=features,
        accumulator_bits=fixed_point.bits,
        contribution_bits=layout.static.contributions.dtype.itemsize * 8,
        offset_bits=offset_bits(entries),
        delays=layout.max_delay > 1,
        clamps=layout.static.clamped_sources is not None,
        computed=layout.computed is not None,
        round_mp_driven=profile.round_mp_driven,
        plastic=layout.plastic is not None,
        learns_in_order=layout.plastic is not None and in_order(layout.plastic.positions),
        short_windows=layout.plastic is not None and short_windows(layout.plastic),
        plastic_all_window=profile.plastic_all_window,
        restart=_restart(features, layout.neuron_count),
        count_ahead=count_ahead,
        uniform_rows=fusible and uniform_rows(layout.static),
        word=word_of(layout, options, fixed_point, packable=fusible),
        fused=fused if fusible else None,
    )


def word_of(layout: Layout, options: EngineOptions, point: FixedPoint, *, packable: bool) -> Word:
    """The format of a cell: with a mark if sums can be 0, else the narrowest allowed width that holds every sum.

    Only ``packable`` sums take less than 32 bits. With delays the width holds twice the largest sum: a restored state
    may have filled a slot in which more is to arrive.

    Raises
    ------
    ConfigError
        As ``least_sum_bits``.
    """
    least = least_sum_bits(options.cuda.sum_bits, layout.neuron_count)
    if layout.needs_flags:
        return marked_word(layout, point, largest_sum(point))
    if not packable or point.bits != 32:
        return Word(point.bits)
    largest = point.largest_sum * (2 if layout.max_delay > 1 else 1)
    return next((Word(bits) for bits in (8, 16) if bits >= least and largest < 1 << bits), Word(32))


def short_windows(rules: PlasticRules) -> bool:
    """Whether these rules can learn from histories of one word per neuron."""
    return rules.longest_window <= LONGEST_DEFERRED and len(rules.windows) <= MOST_RULES


def in_order(positions: npt.NDArray[np.int64]) -> bool:
    """Whether ``positions`` are 0, 1, 2, ..."""
    return bool((positions == np.arange(len(positions))).all())


def offset_bits(entries: int) -> int:
    """Width of a row offset; 32 bits must also hold the steps beyond the last entry."""
    return 32 if entries < 2**32 - 2**14 else 64


def uniform_rows(rows: StaticRows) -> bool:
    """Whether the contributions of every source are all equal."""
    contributions, offsets = rows.contributions, rows.offsets
    for start in range(1, len(contributions), _CHUNK):
        part = slice(start, start + _CHUNK)
        changes = np.flatnonzero(contributions[part] != contributions[start - 1 : -1][:_CHUNK]) + start
        if len(changes) > len(offsets) or (offsets[np.searchsorted(offsets, changes)] != changes).any():
            return False
    return True


def _restart(features: Features, neurons: int) -> Restart:
    if not features.restarts:
        return Restart.NONE
    if not features.restart_all:
        return Restart.CANDIDATES
    return Restart.ALL if neurons < LARGE_NETWORK_NEURONS else Restart.FIRED
