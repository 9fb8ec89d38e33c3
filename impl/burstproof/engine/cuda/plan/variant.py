"""Which kernels a network needs: the key under which compiled kernels are kept."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
import numpy.typing as npt

from burstproof.engine.cuda.plan.block_size import LONG_ROW, FusedShape, fused_shape, least_sum_bits
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
"""Words from the length of one queue to that of the next: all blocks reserve at once, and each line by itself."""
MOST_RECALLED = 64
"""Bursts whose fired lists are read again, at most."""


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
        Blocks that own neurons, and consecutive neurons of each: a multiple of the fused shape's chunk.
    low_bits : int
        A sum of 64 bits lies in two words of 32, the first of which adds up so many low bits; 0 where 32 bits are
        enough.
    entry_bits : int
        Width of an entry of a queue: 32; 64 where its contribution needs more than 16 and there is no palette; 16, all
        of them for the target, where all contributions are equal.
    part : int
        Entries that a row delivers in one burst, in the mean.
    bin_room : int
        Entries of an owner that a block holds in shared memory, before they go to its queue.
    word : Word
    shape : FusedShape
        What the variant has instead without queues.
    rows_put_off : int
        Rows that a block puts off to buckets at a time (``kernels.buckets``); 0 where there are none, since no delay is
        above 1, or fired lists are read again.
    notes_parts : bool
        Whether a thread writes down, for each entry of a row in turn, which row that is: all rows are short.
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

    @property
    def entry_bytes(self) -> int:
        """Bytes of an entry."""
        return self.entry_bits // 8

    @property
    def bin_bytes(self) -> int:
        """Shared memory that the bins of a block take."""
        return self.owners * self.bin_room * self.entry_bytes

    @property
    def shared_bytes(self) -> int:
        """Shared memory that the sums of an owner take."""
        return self.span * (8 if self.low_bits else 4)


@dataclass(frozen=True)
class Variant:
    """What the kernels are specialised for.

    Attributes
    ----------
    features : Features
        What the rules of section 3 need.
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
        Plastic synapses are all computed ones, in their order.
    short_windows : bool
        Histories in words reach back as far as the plastic mappings look.
    plastic_all_window : bool
        The profile's rule of plasticity; weights then change before the propagation.
    restart : Restart
    count_ahead : bool
        Candidates are counted before the dynamics, since the batch path is emulated and can be reached.
    uniform_rows : bool
        All static contributions of a source are equal and kept once per source.
    equal_rows : bool
        All static contributions are equal: none is read.
    word : Word
        A neuron's cell in the FCL: how wide, and whether a candidate's mark lies in it, since its sum may be 0.
    streamed : bool
        Synapses lie in host memory: rows are read in whole lines of the link.
    long_rows : int
        Most entries that a warp of the fused burst sends: longer rows go in pieces to helpers. 0: no row is long.
    row_length : int
        Static entries of every source where all have as many, else 0: then offsets need not be read.
    tiles, tile_share : int
        Passes in which the fused burst propagates since a slot of the FCL exceeds the cache, or 0; threads per firing.
    recalled : int
        Bursts whose fired lists are read again, as many as the largest delay, where delays are kept on the sender's
        side (``kernels.recall``); 0 where arrivals wait in a ring of slots, or in a calendar.
    queues : OwnerQueues or None
        How contributions are delivered by queues per owner; ``recalled`` is then at least 1.
    calendar, calendar_bits : int
        Buckets that arrivals of later bursts wait in, a power of two and no fewer than the largest delay
        (``kernels.calendar``), and the width of their words; 0 where there are none.
    calendar_tiles : int
        Tiles of each bucket (``kernels.tiled_calendar``); 0 where a bucket has room for every synapse.
    target_bits : int
        An entry of a row is one word of 32 bits (``plan.entries``), so many of which are its target; 0 where targets
        and contributions are columns of their own.
    palette : bool
        Distinct contributions are kept once, in a table: an entry has the place of its contribution there, above its
        target if it is one word, else in a column of 16 bits (``placed``).
    may_sleep : bool
        Candidates that their draw keeps from firing are told before the columns are read: that pays where these exceed
        the cache.
    together : bool
        Neurons have records, though none sleeps: in bursts of few neurons a column more is a load more to wait for.
    uniform : frozenset of str
        Parameters (``plan.columns.PARAMETERS``) that are unused, or one value for all neurons.
    narrow : frozenset of str
        Columns of 16 bits, parameters or ``countdowns`` and ``counts``, that take 8: no value can exceed 255.
    extras : ExtrasKey
        Features of FEATURES.md.
    few_classes : bool
        Modulators and classes of neurons are so few that each block may have tables of them.
    powered : bool
        There may be a power neuron.
    overlapped : bool
        The device brings up a kernel's blocks while the last blocks of the kernel before it run (9.0 and newer).
    fused : FusedShape or None
        Block of the kernel that does a burst in one piece, where one can: static contributions only, no batch path.
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
    overlapped: bool
    fused: FusedShape | None
    streamed: bool
    long_rows: int
    row_length: int
    equal_rows: bool
    tiles: int
    tile_share: int
    recalled: int = 0
    queues: OwnerQueues | None = None
    calendar: int = 0
    calendar_bits: int = 0
    calendar_tiles: int = 0
    target_bits: int = 0
    palette: bool = False
    may_sleep: bool = False
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
        """There are no other shards; see ``ShardVariant``."""
        return False

    @property
    def defers_learning(self) -> bool:
        """Whether what a synapse learnt is worked out when its source fires next (``kernels.deferred``)."""
        return self.plastic and self.short_windows and not self.plastic_all_window and not self.extras.modes

    @property
    def rings(self) -> bool:
        """Whether arrivals of different delays go to different slots."""
        return self.delays and not self.recalled and not self.calendar

    @property
    def sleeps(self) -> bool:
        """Whether candidates may sleep (``kernels.neuron``): what features make of their columns has a bound, too.

        The columns of twins change.
        """
        return self.may_sleep and not self.extras.replays

    @property
    def record(self) -> Record:
        """Parameters of a neuron that lie together."""
        recorded = self.sleeps or (self.together and not self.extras.replays)
        return record_of(self.uniform, self.narrow) if recorded else NO_RECORD

    @property
    def tables(self) -> bool:
        """Whether blocks of a burst in one kernel have tables of the classes of neurons (``kernels.classes``).

        The host writes of no driver: where memories drive modulators it does.
        """
        fused = self.fused is not None and self.queues is None
        return fused and self.few_classes and self.extras.adapts and not self.extras.replays

    @property
    def makes_factors(self) -> bool:
        """Whether these blocks work out the factors of modulators, too."""
        return self.tables and self.extras.area_modulators

    @property
    def noted(self) -> type[np.signedinteger]:
        """Scalar type of a bucket's words."""
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
        """Whether the column of contributions has places in the palette."""
        return self.palette and not self.target_bits

    @property
    def column(self) -> type[np.integer]:
        """Scalar type of the column of contributions."""
        return np.uint16 if self.placed else self.contribution

    @property
    def read_contribution(self) -> type[np.integer]:
        """Scalar type of what is read of that column: over the link in words of two."""
        return np.int32 if self.streamed and packed_contributions(self) else self.column

    @property
    def read_delay(self) -> type[np.integer]:
        """Scalar type of what is read of the delays: over the link in words of four."""
        return np.int32 if self.streamed and self.delays else np.uint8

    @property
    def target(self) -> type[np.integer]:
        """Scalar type of a target, or of an entry of a row that is one word."""
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
        """Scalar type of what a neuron with features is."""
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
    """Fired lists that are kept to be read again: a power of two, so that burst numbers may wrap around."""
    return 1 << max(variant.recalled - 1, 0).bit_length()


def can_be_recalled(longest_row: int, delay: int) -> bool:
    """Whether each burst can read the fired lists of the last ``delay`` bursts again: rows are short, delays few."""
    return longest_row <= LONG_ROW and delay <= MOST_RECALLED


def in_columns(variant: Variant) -> bool:
    """Whether each entry of a row has its contribution, or the place of that, in a column beside the targets."""
    return not (variant.uniform_rows or variant.target_bits)


def packed_contributions(variant: Variant) -> bool:
    """Whether static contributions in host memory are read as 32-bit words of two."""
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
    """The variant for a packed network; ``bounded``: its sums keep to the bound of ``fixed_point``.

    ``several_kernels``: a burst has to be those, whatever its contributions are.
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
        overlapped=False,
        fused=fused if fusible else None,
        streamed=False,
        long_rows=0,
        row_length=0,
        equal_rows=False,
        tiles=0,
        tile_share=1,
    )


def word_of(layout: Layout, options: EngineOptions, point: FixedPoint, *, packable: bool) -> Word:
    """A cell: where no sum can be 0, and if ``packable``, the narrowest of those allowed that holds every sum.

    With delays it holds twice that, for a restored state may have filled a slot that more is to arrive in.

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
    """Whether histories in words serve for these rules."""
    return rules.longest_window <= LONGEST_DEFERRED and len(rules.windows) <= MOST_RULES


def in_order(positions: npt.NDArray[np.int64]) -> bool:
    """Whether these are the positions 0, 1, 2, ..."""
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
