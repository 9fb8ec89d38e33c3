"""The arguments of the CUDA kernels: named tuples of arrays and numbers, from which everything else about them follows.

A kernel names the tuples that it takes in its annotations. The dtype of a field comes from here (read by ``fields``),
numba's signature from the fields (``kernels.spec``), the buffers' dtypes too (``plan.buffers``), and a launch binds
buffers and numbers to the fields by their names (``host.launches``). The per-neuron parameters are those of
``network.schema.Parameters``: a field there has a buffer and an upload. In a kernel a parameter is a column, or a
number where all neurons share it.

No field is a kernel's own: those of one name hold the same in every tuple.
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

# Of a dtype that the variant chooses: the property of ``Variant`` that names it.
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
    """What steers bursts without the host (``kernels.control``); ``capacity``: entries of the log."""

    control: Longs
    report: Longs
    tallies: Words
    capacity: np.int64


class Turn(NamedTuple):
    """One burst of a batch: whether it has stimulus, how it is steered, its place; fixed when it is queued."""

    stimulated: np.uint32
    mode: np.uint32
    place: np.uint32


class Gathering(NamedTuple):
    """How the list of the burst at ``place`` is gathered: 1 if ``direct``, shown in the window; 1 if ``final``."""

    direct: np.uint32
    final: np.uint32
    place: np.uint32


class Start(NamedTuple):
    """A batch to begin: its bursts, 0 for what the host says, and whether all its lists are kept."""

    limit: np.int64
    keep: np.int64


class Stimulus(NamedTuple):
    """What comes from outside in a batch: of burst b, entries ``offsets[b]`` to ``offsets[b + 1]``."""

    stimulus_offsets: Longs
    stimulus_ids: Ids
    stimulus_amounts: Sums
    forced_offsets: Longs
    forced_ids: Ids


class Outside(NamedTuple):
    """What the coming burst takes in beside its slot: amounts and marks of forced firings, by neuron."""

    outside: Sums
    forced: Bytes


class Fcl(NamedTuple):
    """The fire candidate list: a ring of slots, ``stride`` cells apart.

    ``sums`` is the memory of ``cells`` as what contributions are added to; it differs where sums are packed. What a
    cell holds besides a sum: ``plan.word``.
    """

    cells: Cells
    sums: Added
    stride: np.uint32
    ring: np.uint32


class State(NamedTuple):
    """What a burst changes of a neuron."""

    potentials: Potentials
    countdowns: Countdowns
    counts: Counts
    marks: Bytes


class Network(NamedTuple):
    """Numbers of the network: ``unit`` is 2^-k; ``power_neuron`` is -1 where there is none.

    A draw above ``largest_excitability`` lets no neuron fire; infinite where some neuron needs no draw.
    """

    neurons: np.uint32
    unit: np.float32
    largest_excitability: np.float32
    power_amount: Amount
    power_neuron: np.int64


class Rows(NamedTuple):
    """Synapses of constant contribution by source; padded rows lie in ``targets`` alone.

    ``palette`` has the distinct contributions where entries hold places in it (``plan.entries``).
    ``common_contribution`` is that of every entry where all are equal.
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
    """What a contribution becomes an integer with (``fixed_point``)."""

    scale: np.float64
    clamp: np.int64
    clamp_float: np.float64


class Plasticity(NamedTuple):
    """The plastic mappings and the synapses of each."""

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
    """What deferred learning needs (``kernels.deferred``).

    ``learning_rules``: of each computed entry 1 + its plastic mapping, or 0; ``rule_begins``: the first burst in which
    a mapping learns. Each of the ``sources`` rows has its turn every ``period`` bursts.
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
    """What features add to neurons; a class is the neurons of an area whose parameters change, class 0 all others.

    ``kinds``: class and bits of each neuron (``plan.features``).
    ``homeostats``, ``area_factors``: numbers of each class; what follows from signals has a row for bursts of even and
    one for bursts of odd number, and so have ``class_phases``: burst mod period, with a flag, and ``class_states``:
    flags (``plan.features``). A factor that nothing subscribes to is NaN. ``sleep_bounds``: as
    ``Network.largest_excitability``, of a class.
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
    """Modulators, their lists (``plan.features``), what fired of each driver area, signals and factors."""

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
    """Whose transmission factor a computed contribution gets, and what a firing takes from psp, by source."""

    synapse_rules: Shorts
    transmission: Floats
    degeneration: Floats
    rule_count: np.uint32


class Modes(NamedTuple):
    """What plastic pairs have beside steps of the weight; ``learning`` as in ``Modulation``."""

    rule_decays: Floats
    etas: Floats
    max_weights: Floats
    frozen: Bytes
    learning: Floats
    pair_count: np.uint32


class Neurons(NamedTuple):
    """What a burst reads and changes of neurons; a kernel that needs one part alone takes that part."""

    outside: Outside
    state: State
    parameters: Parameters
    extras: Extras


class History(NamedTuple):
    """When each neuron fired, as plasticity looks back on it; ``longest``: bursts of the longest window.

    ``histories`` say it where learning is deferred (``plan.histories``), the other two elsewhere.
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
    """What fired in each chunk of neurons, from the chunk's first neuron on; ``span_counts`` add chunks up.

    ``pieces`` are those of long rows that fired, two words each (``kernels.long_rows``); ``progress`` counts them and
    the chunks whose rows are noted, of bursts of even and of odd number (``kernels.control``).
    """

    chunk_counts: Ids
    span_counts: Ids
    chunk_ids: Ids
    chunk_potentials: Floats
    progress: Longs
    pieces: Longs


class Window(NamedTuple):
    """Host memory that takes a list of at most ``window`` firings, and the report."""

    window_ids: Ids
    window_potentials: Floats
    answer: Longs
    window: np.int64


class Mailbox(NamedTuple):
    """How a closed loop calls a kernel that stays on the device (``kernels.mailbox``).

    ``mail_room`` amounts fit into the mail; a chunk's replies have ``reply_lines`` lines; without a call for ``idle``
    ns the kernel ends. Potentials are left in ``shown``, those of odd calls ``shows`` words on; nowhere if that is 0.
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
    """Where the rows of what fired are left by the tiles done (``kernels.tiles``), and what a row contributes."""

    cursors: Words
    amounts: Sums


class Recall(NamedTuple):
    """What arrives later than in the next burst, where no ring of slots holds it.

    Either the fired lists of the last bursts, which take turns, and how long they are (``kernels.recall``), or a bucket
    for each burst (``kernels.calendar``), or for each burst and tile: ``calendar_room`` words at most, targets in
    ``calendar_shift`` bits; ``calendar_spares`` tells which bursts have something in a slot of their own.
    With ``delay_starts``: of each source, how many entries of its row come before those of delay 1, 2, ... and in all.
    A list has room for ``list_room`` firings: for all neurons whose rows are here.
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
    """Contributions by owner of their targets (``kernels.queues``): ``queue_room`` entries for each owner.

    ``queue_lengths``, each in a line of its own, count those beyond it too, which are in the FCL; ``queue_spills``
    tells which owners have some. ``palette`` is that of ``Rows``, whose places entries may hold;
    ``common_contribution`` is that of every entry which is a target alone. Where later contributions are put off to
    buckets (``kernels.buckets``), each has ``bucket_room`` entries like those of rows, and so has the one behind them,
    of which each block has a part; ``bucket_counts`` count those beyond it, too.
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
    """The mailboxes of a shard: where it stores to and where it reads; a side has ``words`` words.

    ``own`` is the shard's number, ``room`` the firings that a list holds; who waits gives up after ``patience`` ns.
    Where a burst is one kernel, ``chunks`` are those of the shard that has most; packets are taken ``lag`` blocks late.
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
    """What the blocks of a pass have counted together, in numbers of several fields of ``bits`` bits."""

    done: Words
    bits: np.uint32


class Draw(NamedTuple):
    """A synthetic network: N sources, synapses of each."""

    sources: np.uint64
    fan: np.uint32


class Own(NamedTuple):
    """The neurons of a shard: ``number`` ids from ``first`` on, ``step`` apart."""

    first: np.uint32
    step: np.uint32
    number: np.uint32


AT_CALL = (Turn, Gathering, Start)
"""Tuples that a launch gets when it is queued, as the last argument."""
