"""Synthetic networks generated on the devices; the host never holds a synapse table (BE-3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.device.protocol import BufferSpec, DeviceBuffer, DeviceRuntime
from burstproof.engine.admission import check_network
from burstproof.engine.cuda.args import Rows
from burstproof.engine.cuda.exchange.devices import make_current
from burstproof.engine.cuda.host.launches import Kernels, Values, numbers_of
from burstproof.engine.cuda.host.shard import Fill
from burstproof.engine.cuda.host.state import DeviceState
from burstproof.engine.cuda.host.upload import upload_neurons
from burstproof.engine.cuda.plan.block_size import LONG_ROW, PIECE
from burstproof.engine.cuda.plan.entries import LARGEST_PALETTE, needs_palette
from burstproof.engine.cuda.plan.packed import Packed, pack_layout
from burstproof.engine.cuda.plan.padded_rows import UNIT
from burstproof.engine.cuda.plan.shard_pack import (
    PackedShard,
    SpacedIds,
    as_shard,
    neurons_only,
    shard_batch,
    whole_network,
)
from burstproof.engine.cuda.plan.sizing import sized
from burstproof.engine.cuda.plan.variant import offset_bits
from burstproof.engine.fixed_point import ContributionSurvey, static_fixed_point
from burstproof.engine.layout import Layout, build_layout
from burstproof.engine.options import EngineOptions
from burstproof.errors import InputError, NetworkError
from burstproof.network.fixed_point import FixedPoint
from burstproof.network.model import Network, NeuronTable, SynapseTable
from burstproof.network.synthetic.build import SyntheticSpec, synthesize

BLOCK = 256
"""Threads of a block in kernels that draw synapses."""

_WAVES = 16
"""Blocks of such a kernel on a multiprocessor."""


@dataclass(frozen=True)
class _Survey(ContributionSurvey):
    """Extremes over all synapses that determine fixed-point scale and layout; ``largest_input`` is exact."""

    longest_delay: int


@dataclass(frozen=True, eq=False)
class _Part:
    """The neurons of one device, and the survey of their incoming synapses.

    Attributes
    ----------
    runtime : DeviceRuntime
    strategy : str or None
        How neurons are split over shards; ``None`` if the device has all of them.
    ids : SpacedIds
    count : int
        Number of neurons.
    row_counts : DeviceBuffer
        Entries of each row, (N,) uint32; without a strategy one unused element.
    survey : _Survey
    lengths : int64 (fan + 1,)
        Number of rows with 0, 1, ... entries.
    """

    runtime: DeviceRuntime
    strategy: str | None
    ids: SpacedIds
    count: int
    row_counts: DeviceBuffer
    survey: _Survey
    lengths: npt.NDArray[np.int64]

    @property
    def entries(self) -> int:
        """Number of synapses that end in the neurons."""
        return int(self.lengths @ np.arange(len(self.lengths)))


def pack_spec(
    spec: SyntheticSpec, options: EngineOptions, runtimes: Sequence[DeviceRuntime], strategy: str | None
) -> tuple[Network, tuple[PackedShard, ...], Fill]:
    """The network of ``spec`` without synapses, its shards, and the function that fills their buffers.

    Parameters
    ----------
    runtimes : sequence of DeviceRuntime
        The device of each shard.
    strategy : str or None
        How neurons are split over shards; ``None`` for a whole network on one device.

    Raises
    ------
    NetworkError
        A connectivity whose rows differ in length; laws that the profile refuses; sums that are not exact in float64
        whatever the order; contributions that would be clamped.
    InputError
        A strategy whose ids follow from no formula.
    """
    _check_laws(spec, options)
    parts = _surveyed(spec, runtimes, strategy)
    surveys = (astuple(part.survey) for part in parts)
    survey = _Survey(*map(max, zip(*surveys, strict=True)))
    _refuse_inexact(spec, survey.largest_input)
    network = synthesize(replace(spec, synapses_per_neuron=0))
    point = static_fixed_point(survey, network.power_amount, options)
    packed: dict[int, Packed] = {}
    shards = []
    for number, part in enumerate(parts):
        key = part.count if spec.alike else number  # if all neurons are alike, shards of one size are packed once
        if key not in packed:
            packed[key] = _neurons(spec, network, options, point, survey, part)
        shards.append(_with_synapses(spec, packed[key], part, number))
    return network, tuple(shards), partial(_fill, spec, parts)


def _check_laws(spec: SyntheticSpec, options: EngineOptions) -> None:
    """Check the laws' extreme values, as a network of two synapses."""
    weights = spec.weights if isinstance(spec.weights, tuple) else (spec.weights, spec.weights)
    delays = spec.delays if isinstance(spec.delays, tuple) else (spec.delays, spec.delays)
    psp = spec.postsynaptic_potential
    synapses = SynapseTable.build([0, 0], [0, 0], weights=weights, delay_bursts=delays, postsynaptic_potentials=psp)
    check_network(Network(NeuronTable.build(1), synapses), options)


def _spaced(neurons: int, shards: int, strategy: str | None) -> list[tuple[SpacedIds, int]]:
    """Ids of each shard and their number, split as by ``make_partition``."""
    if strategy in (None, "contiguous"):
        bounds = [part * neurons // shards for part in range(shards + 1)]
        return [(SpacedIds(low, 1), high - low) for low, high in pairwise(bounds)]
    if strategy == "round_robin":
        return [(SpacedIds(part, shards), -(-(neurons - part) // shards)) for part in range(shards)]
    raise InputError(
        "shards that make their own synapses need ids that follow from a formula",
        where="strategy",
        got=strategy,
        allowed="contiguous, round_robin",
        cure="Build the network with synthesize",
    )


def _surveyed(spec: SyntheticSpec, runtimes: Sequence[DeviceRuntime], strategy: str | None) -> list[_Part]:
    """Survey all synapses, on all devices concurrently."""
    from burstproof.engine.cuda.kernels.generate import SUMMARY_LENGTH, survey_kernel

    weights_vary, kernel = isinstance(spec.weights, tuple), survey_kernel(spec, strategy)
    started = []
    for runtime, (ids, count) in zip(runtimes, _spaced(spec.neurons, len(runtimes), strategy), strict=True):
        make_current(runtime)
        specs = (
            BufferSpec("degrees", max(count, 1), np.dtype(np.uint32)),
            BufferSpec("totals", max(count, 1) if weights_vary else 1, np.dtype(np.float64)),
            BufferSpec("summary", SUMMARY_LENGTH, np.dtype(np.int64)),
        )
        rows = spec.neurons if strategy is not None else 1
        row_counts = runtime.allocate([BufferSpec("row_counts", rows, np.dtype(np.uint32))])["row_counts"]
        buffers, stream = runtime.allocate(specs), runtime.stream()
        values = Values(runtime, {**buffers, "row_counts": row_counts}, 0, _drawn(spec, ids, count))
        kernels = Kernels(runtime, None, (kernel,))
        kernels.call("survey", _WAVES * runtime.multiprocessors, BLOCK, values).queue(stream)
        started.append((runtime, ids, count, row_counts, buffers, stream))
    parts = []
    for runtime, ids, count, row_counts, buffers, stream in started:
        make_current(runtime)
        stream.synchronize()
        lengths = _lengths(spec, runtime, row_counts, strategy)
        parts.append(_Part(runtime, strategy, ids, count, row_counts, _survey_of(spec, runtime, buffers), lengths))
    return parts


def _drawn(spec: SyntheticSpec, ids: SpacedIds, count: int) -> dict[str, Any]:
    """Kernel arguments by field name: the synapses to draw, and the ids whose synapses are kept."""
    drawn = {"sources": spec.neurons, "fan": spec.synapses_per_neuron}
    return drawn | {"first": ids.first, "step": ids.step, "number": count}


def _contents(runtime: DeviceRuntime, buffer: DeviceBuffer) -> Any:
    """``buffer`` as a CuPy array, which reduces on the device, or as a NumPy array in the simulator."""
    return buffer.array.copy_to_host() if runtime.simulated else buffer.array


def _survey_of(spec: SyntheticSpec, runtime: DeviceRuntime, buffers: dict[str, DeviceBuffer]) -> _Survey:
    """The survey that the kernel left in ``buffers``."""
    from burstproof.engine.cuda.kernels.generate import DELAY, DIGITS

    summary = _contents(runtime, buffers["summary"])
    degree = int(_contents(runtime, buffers["degrees"]).max())
    largest = degree * _contribution(spec, 0)
    if isinstance(spec.weights, tuple):
        largest = float(_contents(runtime, buffers["totals"]).max())
    return _Survey(largest, int(summary[DIGITS]), degree, int(summary[DELAY]))


def _lengths(
    spec: SyntheticSpec, runtime: DeviceRuntime, row_counts: DeviceBuffer, strategy: str | None
) -> npt.NDArray[np.int64]:
    """Number of rows with 0, 1, ... entries."""
    longest = spec.synapses_per_neuron
    if strategy is None:
        return np.bincount([longest], [spec.neurons]).astype(np.int64)
    if runtime.simulated:
        return np.bincount(_contents(runtime, row_counts), minlength=longest + 1).astype(np.int64)
    import cupy

    lengths: npt.NDArray[np.int64] = cupy.asnumpy(cupy.bincount(row_counts.array, minlength=longest + 1))
    cupy.get_default_memory_pool().free_all_blocks()
    return lengths.astype(np.int64)


def _contribution(spec: SyntheticSpec, end: int) -> float:
    """Contribution of the smallest (``end`` 0) or largest (1) weight, a float32 product."""
    weight = spec.weights[end] if isinstance(spec.weights, tuple) else spec.weights
    return float(np.float32(weight) * np.float32(spec.postsynaptic_potential))


def _extremes(spec: SyntheticSpec, point: FixedPoint) -> tuple[npt.NDArray[np.int64], bool]:
    """Contributions of the smallest and largest weight, in units of 2^-k, and whether one was clamped."""
    return point.quantise(np.array([_contribution(spec, 0), _contribution(spec, 1)], np.float32))


def _palette(spec: SyntheticSpec, point: FixedPoint) -> npt.NDArray[np.int64]:
    """Contributions of all weights in units of 2^-k, then their negatives for inhibition; empty if too many."""
    if not isinstance(spec.weights, tuple) or 2 * (spec.weights[1] - spec.weights[0] + 1) > LARGEST_PALETTE:
        return np.empty(0, np.int64)
    weights = np.arange(spec.weights[0], spec.weights[1] + 1).astype(np.float32)
    units, _ = point.quantise(weights * np.float32(spec.postsynaptic_potential))
    return np.concatenate((units, -units))


def _refuse_inexact(spec: SyntheticSpec, largest: float) -> None:
    """Refuse sums of varied contributions beyond 53 bits: a float64 total would depend on the order of addition."""
    psp = float(np.float32(spec.postsynaptic_potential))
    if not isinstance(spec.weights, tuple) or psp == 0:
        return
    numerator, denominator = psp.as_integer_ratio()
    step = (numerator & -numerator) / denominator
    if largest / step >= 2.0**53:
        raise NetworkError(
            "the sums of this network are too long to be added exactly on the device",
            where="SyntheticSpec.postsynaptic_potential",
            got=psp,
            cure="Choose a psp with fewer digits, or build the network with synthesize",
        )


def _neurons(
    spec: SyntheticSpec, network: Network, options: EngineOptions, point: FixedPoint, survey: _Survey, part: _Part
) -> Packed:
    """The neurons of ``part``, packed without rows."""
    ids = part.ids.first + part.ids.step * np.arange(part.count, dtype=np.uint32)
    own = network if part.count == spec.neurons else neurons_only(network, ids.astype(np.uint32))
    layout = _layout(spec, own, options, point, survey)
    packed = pack_layout(network, options, point, layout)
    uniform = packed.variant.uniform_rows and not isinstance(spec.weights, tuple)
    return replace(packed, network=own, variant=replace(packed.variant, uniform_rows=uniform))


def _layout(
    spec: SyntheticSpec, network: Network, options: EngineOptions, point: FixedPoint, survey: _Survey
) -> Layout:
    """A layout without synapses whose static contributions have the dtype that ``spec`` needs."""
    units, clamped = _extremes(spec, point)
    if clamped:
        raise NetworkError(
            "a contribution of this network exceeds the fixed-point range",
            where="SyntheticSpec.weights",
            got=spec.weights,
            cure="Choose smaller weights, or build the network with synthesize",
        )
    layout = build_layout(network, options, point)
    cancels = spec.synapses_per_neuron > 0 and (spec.inhibitory_fraction > 0 or int(units[0]) <= 0)
    dtype = next(dtype for dtype in (np.int16, np.int32, np.int64) if int(units[1]) <= np.iinfo(dtype).max)
    static = replace(layout.static, contributions=np.empty(0, dtype))
    return replace(
        layout,
        max_delay=survey.longest_delay,
        needs_flags=layout.needs_flags or cancels,
        static=static,
        drawn_in_degree=survey.in_degree,
    )


def _with_synapses(spec: SyntheticSpec, neurons: Packed, part: _Part, number: int) -> PackedShard:
    """``neurons`` as shard ``number``, with room for the rows of ``part``."""
    fan, entries = spec.synapses_per_neuron, part.entries
    pieces = spec.neurons * -(-fan // PIECE) if fan > LONG_ROW else 0
    units, _ = _extremes(spec, neurons.fixed_point)
    common = int(units[0]) if units[0] == units[1] and not spec.inhibitory_fraction else 0
    largest = int(np.abs(units).max())
    palette = len(_palette(spec, neurons.fixed_point)) if needs_palette(spec.neurons, largest) else 0
    sizes = replace(neurons.sizes, static_entries=entries, longest_row=fan, pieces=pieces, palette=palette)
    sizes = replace(sizes, largest_contribution=largest, common_contribution=common, distinct_delays=_delays(spec))
    variant = sized(replace(neurons.variant, offset_bits=offset_bits(entries)), sizes)
    packed = replace(neurons, sizes=sizes, variant=variant)
    if part.strategy is None:
        return whole_network(packed)
    packed = replace(packed, batch=shard_batch(packed.options, part.count, spec.neurons))
    return as_shard(number, spec.neurons, None, part.ids, packed, part.lengths)


def _delays(spec: SyntheticSpec) -> int:
    """Number of distinct delays that may be drawn."""
    return spec.delays[1] - spec.delays[0] + 1 if isinstance(spec.delays, tuple) else 1


def _fill(spec: SyntheticSpec, parts: Sequence[_Part], shard: PackedShard, device: DeviceState) -> None:
    """Upload the neurons, then generate the rows on the device."""
    from burstproof.engine.cuda.kernels.generate import fill_kernel
    from burstproof.engine.cuda.kernels.padded import fill_padded_kernel

    part, words = parts[shard.number], shard.shard.row_words
    runtime, strategy = part.runtime, part.strategy
    # The fill kernel writes single entries, in device or host memory; only bursts read rows in words.
    variant = replace(shard.packed.variant, streamed=False)
    upload_neurons(shard.packed, device)
    if variant.palette:
        device.write("palette", _palette(spec, shard.packed.fixed_point).astype(variant.contribution))
    stream = runtime.stream()
    numbers = numbers_of(shard.packed) | _drawn(spec, part.ids, part.count)
    buffers = {name: device.buffer(name) for name in Rows._fields if name not in numbers}
    buffers |= {"row_counts": part.row_counts}
    if words and strategy is not None:
        kernel = fill_padded_kernel(spec, words, strategy)
        following = runtime.allocate([BufferSpec("following", 1, np.dtype(np.uint32))])["following"]
        runtime.upload(following, np.array([spec.neurons * words // UNIT], np.uint32), stream)
        buffers |= {"table": buffers["targets"], "following": following}
    else:
        kernel = fill_kernel(spec, variant, strategy)
        if strategy is not None:
            _scan(runtime, part.row_counts, buffers["offsets"])
    values = Values(runtime, buffers, 0, numbers)
    grid = _WAVES * runtime.multiprocessors
    Kernels(runtime, variant, (kernel,)).call("fill", grid, BLOCK, values).queue(stream)
    stream.synchronize()


def _scan(runtime: DeviceRuntime, counts: DeviceBuffer, offsets: DeviceBuffer) -> None:
    """Write the prefix sums of ``counts`` to ``offsets``, whose first element is already 0."""
    if runtime.simulated:
        host = np.zeros(offsets.spec.count, offsets.spec.dtype)
        np.cumsum(_contents(runtime, counts), out=host[1:])
        runtime.upload(offsets, host, runtime.stream())
        return
    import cupy

    cupy.cumsum(counts.array, dtype=offsets.spec.dtype, out=offsets.array[1:])
    cupy.cuda.Device().synchronize()
    cupy.get_default_memory_pool().free_all_blocks()
