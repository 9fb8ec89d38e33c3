"""Kernel arguments: named tuples of arrays and numbers. Signatures, buffer dtypes and launches follow from them.

The annotations of a kernel name the tuples that it takes, and the annotation of a field gives its dtype (``fields``).
Numba's signature (``kernels.spec``) and the dtypes of buffers (``plan.buffers``) are derived from the fields. A launch
binds buffers and numbers to fields by name (``host.launches``), so fields of one name are the same in every tuple.

The per-neuron parameters are those of ``network.schema.Parameters``: a field there has a buffer and an upload. In a
kernel a parameter is an array, or a number if all neurons share its value.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from burstproof.network.schema import Parameters as Parameters

Bytes: TypeAlias = npt.NDArray[np.uint8]
Shorts: TypeAlias = npt.NDArray[np.uint16]
Ids: TypeAlias = npt.NDArray[np.uint32]
Longs: TypeAlias = npt.NDArray[np.int64]
Words: TypeAlias = npt.NDArray[np.uint64]
Floats: TypeAlias = npt.NDArray[np.float32]
Doubles: TypeAlias = npt.NDArray[np.float64]

# Dtypes that depend on the variant: the string names a property of ``Variant``.
Cells: TypeAlias = Annotated[npt.NDArray[Any], "cell"]
Added: TypeAlias = Annotated[npt.NDArray[Any], "added"]
Noted: TypeAlias = Annotated[npt.NDArray[Any], "noted"]
Sums: TypeAlias = Annotated[npt.NDArray[Any], "accumulator"]
Amount: TypeAlias = Annotated[Any, "accumulator"]
Potentials: TypeAlias = Annotated[npt.NDArray[Any], "potential"]
Countdowns: TypeAlias = Annotated[npt.NDArray[Any], "countdown"]
Counts: TypeAlias = Annotated[npt.NDArray[Any], "count"]
Kinds: TypeAlias = Annotated[npt.NDArray[Any], "kind"]
Offsets: TypeAlias = Annotated[npt.NDArray[Any], "offset"]
Targets: TypeAlias = Annotated[npt.NDArray[Any], "target"]
Contributions: TypeAlias = Annotated[npt.NDArray[Any], "read_contribution"]
Palette: TypeAlias = Annotated[npt.NDArray[Any], "contribution"]
Delays: TypeAlias = Annotated[npt.NDArray[Any], "read_delay"]


class Steering(NamedTuple):
    """Arrays that steer a batch without the host (``kernels.control``); ``capacity``: entries of the log."""

    control: Longs
    report: Longs
    tallies: Words
    capacity: np.int64


class Turn(NamedTuple):
    """One burst of a batch, fixed when it is queued: whether it has stimulus, its steering mode, its place."""

    stimulated: np.uint32
    mode: np.uint32
    place: np.uint32


class Gathering(NamedTuple):
    """How the list of the burst at ``place`` is gathered.

    ``direct`` is 1 if the list goes to the window, too; ``final`` is 1 if the report does.
    """

    direct: np.uint32
    final: np.uint32
    place: np.uint32


class Start(NamedTuple):
    """How a batch begins: its number of bursts (0: as the host says), and whether all its lists are kept."""

    limit: np.int64
    keep: np.int64


class Stimulus(NamedTuple):
    """Stimulus of a batch: burst b has the entries from ``offsets[b]`` up to ``offsets[b + 1]``."""

    stimulus_offsets: Longs
    stimulus_ids: Ids
    stimulus_amounts: Sums
    forced_offsets: Longs
    forced_ids: Ids


class Outside(NamedTuple):
    """Stimulus of the coming burst that is kept beside the slot, by neuron: amounts, marks of forced firings."""

    outside: Sums
    forced: Bytes


class Fcl(NamedTuple):
    """The fire candidate list: a ring of ``ring`` slots, ``stride`` cells apart.

    ``sums`` is the same memory as ``cells``, as the words that contributions are added to: wider ones if sums are
    packed. ``plan.word`` says what a cell holds besides a sum.
    """

    cells: Cells
    sums: Added
    stride: np.uint32
    ring: np.uint32


class State(NamedTuple):
    """Per-neuron state that a burst changes."""

    potentials: Potentials
    countdowns: Countdowns
    counts: Counts
    marks: Bytes


class Network(NamedTuple):
    """Numbers of the network: ``unit`` is 2^-k; ``power_neuron`` is -1 if there is none.

    No neuron fires whose draw is above ``largest_excitability``; it is infinite if some neuron needs no draw.
    """

    neurons: np.uint32
    unit: np.float32
    largest_excitability: np.float32
    power_amount: Amount
    power_neuron: np.int64


class Rows(NamedTuple):
    """Synapses with constant contributions, by source; padded rows use ``targets`` alone.

    ``palette`` holds the distinct contributions if entries are indices into it (``plan.entries``).
    ``common_contribution`` is the contribution of every entry if all are equal.
    """

    offsets: Offsets
    targets: Targets
    contributions: Contributions
    palette: Palette
    delays: Delays
    clamped_sources: Bytes
    common_contribution: np.int64


class ComputedRows(NamedTuple):
    """Synapses whose contribution is computed when the source fires."""

    computed_offsets: Offsets
    computed_targets: Ids
    weights: Floats
    psps: Floats
    signs: npt.NDArray[np.int8]
    computed_delays: Bytes
    mp_driven: Bytes
    divisors: Floats


class Scale(NamedTuple):
    """Conversion of a contribution to an integer: factor and limits (``fixed_point``)."""

    scale: np.float64
    clamp: np.int64
    clamp_float: np.float64


class Plasticity(NamedTuple):
    """Plastic mappings and their synapses: mapping r has the entries from ``rule_starts[r]`` up to the next start."""

    rule_starts: Longs
    rule_windows: Longs
    potentiations: Floats
    depressions: Floats
    plastic_positions: Longs
    plastic_sources: Ids
    plastic_targets: Ids
    weights: Floats
    eligibility: Floats
    rules: np.int64


class Deferred(NamedTuple):
    """Arguments of deferred learning (``kernels.deferred``).

    ``learning_rules``: for each computed entry, 1 + its plastic mapping, or 0; ``rule_begins``: the first burst in
    which a mapping learns. Each of the ``sources`` rows is brought up to date once in ``period`` bursts.
    """

    histories: Words
    learning_rules: Shorts
    rule_windows: Longs
    rule_begins: Longs
    potentiations: Floats
    depressions: Floats
    sources: np.uint32
    period: np.uint32
    longest: np.int32


class Extras(NamedTuple):
    """State and parameters that features add to neurons (flags: ``plan.features``).

    A class holds the neurons of one area whose parameters change; class 0 holds all others. ``kinds``: class and flags
    of each neuron. ``homeostats``, ``area_factors``: numbers of each class; a factor that nothing subscribes to is NaN.
    ``sleep_bounds``: ``Network.largest_excitability`` of each class.

    Arrays that follow from signals have two rows, for bursts of even and of odd number. So have ``class_phases`` (burst
    mod period, with a flag) and ``class_states`` (flags).
    """

    kinds: Kinds
    class_states: Bytes
    sleep_bounds: Floats
    homeostats: Floats
    homeostat_periods: Words
    class_phases: Words
    area_factors: Floats
    firing_rates: Floats
    homeostat_leaks: Floats
    base_leaks: Floats
    held_potentials: Floats
    driver_of: Shorts
    drives: Words
    given_potentials: Floats
    class_count: np.uint32
    loaded: np.uint32


class Modulation(NamedTuple):
    """Modulators, their lists (``plan.features``), the last firings of driver areas, signals and factors."""

    magnitudes: Floats
    full_scales: Floats
    modulator_drivers: Ids
    drives: Words
    list_starts: Ids
    list_items: Ids
    rewarded: Bytes
    signals: Floats
    area_factors: Floats
    sleep_bounds: Floats
    largest_excitabilities: Floats
    transmission: Floats
    learning: Floats
    modulator_count: np.uint32
    class_count: np.uint32
    rule_count: np.uint32
    pair_count: np.uint32


class Transmission(NamedTuple):
    """The rule whose transmission factor a computed entry gets, and the psp that each firing of a source takes."""

    synapse_rules: Shorts
    transmission: Floats
    degeneration: Floats
    rule_count: np.uint32


class Modes(NamedTuple):
    """Parameters of plastic pairs beside the weight's steps; ``learning`` is that of ``Modulation``."""

    rule_decays: Floats
    etas: Floats
    max_weights: Floats
    frozen: Bytes
    learning: Floats
    pair_count: np.uint32


class Neurons(NamedTuple):
    """All that a burst reads and changes of neurons; a kernel that needs only one part takes that part."""

    outside: Outside
    state: State
    parameters: Parameters
    extras: Extras


class History(NamedTuple):
    """When each neuron fired, for plasticity; ``longest``: bursts of the longest window.

    Deferred learning uses ``histories`` (``plan.histories``), all other learning ``last_fired`` and ``streaks``.
    """

    last_fired: Longs
    streaks: Shorts
    histories: Words
    longest: np.int32


class Log(NamedTuple):
    """Fired lists."""

    log_ids: Ids
    log_potentials: Floats


class Chunks(NamedTuple):
    """The firings of each chunk, from the index of its first neuron on; ``span_counts``: totals of several chunks.

    ``pieces``: two words for each piece of a long row whose source fired (``kernels.long_rows``). ``progress`` counts
    pieces, and chunks whose rows are noted, for bursts of even and of odd number (``kernels.control``).
    """

    chunk_counts: Ids
    span_counts: Ids
    chunk_ids: Ids
    chunk_potentials: Floats
    progress: Longs
    pieces: Longs


class Window(NamedTuple):
    """Host memory for the report and for a fired list of at most ``window`` firings."""

    window_ids: Ids
    window_potentials: Floats
    answer: Longs
    window: np.int64


class Mailbox(NamedTuple):
    """How a closed loop calls a kernel that stays on the device (``kernels.mailbox``).

    The mail has room for ``mail_room`` amounts, a chunk's replies have ``reply_lines`` lines. After ``idle`` ns without
    a call the kernel ends. Potentials go to ``shown``, those of odd calls ``shows`` words further on; 0: to nowhere.
    """

    mail: Longs
    answers: Longs
    replies: Ids
    shown: Ids
    relay: Longs
    mail_room: np.uint32
    reply_lines: np.uint32
    idle: np.uint64
    shows: np.uint32


class Cursors(NamedTuple):
    """For each row that fired, where the tiles so far have left off (``kernels.tiles``), and its contribution."""

    cursors: Words
    amounts: Sums


class Recall(NamedTuple):
    """Contributions with delays above 1, if no ring of slots holds them.

    Either a ring of the last bursts' fired lists, with their lengths (``kernels.recall``): a list has room for
    ``list_room`` firings, as many as there are neurons with rows here.
    Or a calendar (``kernels.calendar``): a bucket for each burst, or for each burst and tile, of at most
    ``calendar_room`` words, whose targets have ``calendar_shift`` bits; ``calendar_spares`` says which bursts have
    contributions in a spare slot.
    ``delay_starts``: for each source, how many entries of its row come before those of delay 1, 2, ..., and in all.
    """

    recalled_ids: Ids
    recalled_counts: Ids
    list_room: np.uint64
    delay_starts: Shorts
    calendar_words: Noted
    calendar_counts: Ids
    calendar_spares: Ids
    calendar_room: np.uint64
    calendar_shift: np.uint32


class Queues(NamedTuple):
    """Queues of contributions, one for each owner of targets (``kernels.queues``), of ``queue_room`` entries.

    ``queue_lengths``, each in a cache line of its own, count overflowing entries, too. These are in the FCL;
    ``queue_spills`` says which owners have some. ``palette`` is that of ``Rows``: entries may be indices into it.
    ``common_contribution`` is the contribution of every entry if entries are targets alone.

    If later contributions are put off to buckets (``kernels.buckets``), each bucket has ``bucket_room`` entries in the
    format of rows. One more bucket behind them is divided among the blocks. ``bucket_counts`` count overflow, too.
    """

    queue_entries: Annotated[npt.NDArray[Any], "queued"]
    queue_lengths: Ids
    queue_spills: Ids
    palette: Palette
    bucket_targets: Targets
    bucket_contributions: Contributions
    bucket_counts: Ids
    queue_room: np.uint32
    bucket_room: np.uint32
    common_contribution: np.int64


class Exchange(NamedTuple):
    """The mailboxes that a shard writes (``sinks``) and reads (``inboxes``): double buffers, ``words`` words a side.

    ``own`` is the shard's number, ``room`` the most firings of a list. A wait is given up after ``patience`` ns. If a
    burst is one kernel, ``chunks`` is the largest number of chunks of any shard; packets are taken ``lag`` chunks late.
    """

    link: Longs
    sinks: Words
    inboxes: Words
    words: np.uint64
    room: np.uint64
    own: np.uint32
    patience: np.uint64
    chunks: np.uint32
    lag: np.uint32


class Identity(NamedTuple):
    """Ids of a shard's neurons: listed, or evenly spaced."""

    members: Ids
    first_id: np.uint32
    id_step: np.uint32


class Counting(NamedTuple):
    """Counters shared by the blocks of a pass: words of several fields of ``bits`` bits."""

    done: Words
    bits: np.uint32


class Draw(NamedTuple):
    """A synthetic network: its number of sources, and the synapses of each."""

    sources: np.uint64
    fan: np.uint32


class Own(NamedTuple):
    """The neurons of a shard: ``number`` ids from ``first`` on, ``step`` apart."""

    first: np.uint32
    step: np.uint32
    number: np.uint32


AT_CALL = (Turn, Gathering, Start)
"""Tuples whose values are given when a launch is queued; a kernel takes them as its last argument."""
