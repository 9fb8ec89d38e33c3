"""Synthetic networks that the shards make themselves: each device draws all synapses and keeps its own (BE-3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from burstproof.device.open import open_device
from burstproof.device.protocol import BufferSpec, DeviceBuffer, DeviceRuntime
from burstproof.engine.cuda.args import Rows
from burstproof.engine.cuda.exchange.devices import make_current
from burstproof.engine.cuda.host.generate import (
    BLOCK,
    Survey,
    check_laws,
    contribution_of,
    draw_of,
    grid_of,
    refuse_inexact,
    spec_layout,
)
from burstproof.engine.cuda.host.generate import without_synapses as neurons_of
from burstproof.engine.cuda.host.launches import Kernels, Values, numbers_of
from burstproof.engine.cuda.host.shard import Fill
from burstproof.engine.cuda.host.state import DeviceState
from burstproof.engine.cuda.host.upload import upload_neurons
from burstproof.engine.cuda.plan.buffers import NetworkSizes, network_sizes, train_sizes
from burstproof.engine.cuda.plan.packed import Packed
from burstproof.engine.cuda.plan.padded_rows import UNIT
from burstproof.engine.cuda.plan.shard_pack import PackedShard, SpacedIds, finished, neurons_only, shard_train_length
from burstproof.engine.cuda.plan.sharding_choice import ShardingChoice
from burstproof.engine.cuda.plan.variant import Variant, offset_bits, sum_bits, variant_of
from burstproof.engine.fixed_point import static_fixed_point
from burstproof.engine.layout import Layout
from burstproof.engine.options import EngineOptions
from burstproof.engine.rules import Features, features_of
from burstproof.errors import InputError
from burstproof.network.fixed_point import FixedPoint
from burstproof.network.model import Network
from burstproof.network.synthetic.spec import SyntheticSpec

if TYPE_CHECKING:
    from burstproof.engine.cuda.kernels.spec import KernelSpec

_COUNTABLE = (1 << 27) - 1


@dataclass(frozen=True, eq=False)
class _Part:
    """What the survey of one shard found; ``row_counts`` (N,) uint32 stays on the device until the rows are filled."""

    runtime: DeviceRuntime
    ids: SpacedIds
    count: int
    row_counts: DeviceBuffer
    survey: Survey
    entries: int

    def given(self, spec: SyntheticSpec) -> dict[str, Any]:
        """What the kernels are given of it, by the names of their fields."""
        return {**draw_of(spec), **own_of(self.ids, self.count), "row_counts": self.row_counts}


def own_of(ids: SpacedIds, count: int) -> dict[str, int]:
    """The ids of a shard's ``count`` neurons, by the names of the kernels' fields."""
    return {"first": ids.first, "step": ids.step, "number": count}


def spaced_parts(neurons: int, shards: int, strategy: str) -> list[tuple[SpacedIds, int]]:
    """Ids and their number of each shard, as ``make_partition`` splits them.

    Raises
    ------
    InputError
        A strategy whose shards no device can tell from a formula.
    """
    if strategy == "contiguous":
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


def pack_spec_shards(
    spec: SyntheticSpec, options: EngineOptions, choice: ShardingChoice
) -> tuple[Network, tuple[PackedShard, ...], Fill]:
    """The network of ``spec`` without its synapses, its shards, and what fills the devices with them.

    Raises
    ------
    NetworkError
        As ``host.generate.pack_spec``.
    InputError
        See ``spaced_parts``.
    """
    check_laws(spec, options)
    split = spaced_parts(spec.neurons, len(choice.devices), choice.strategy)
    runtimes = {ordinal: open_device(ordinal) for ordinal in dict.fromkeys(choice.devices)}
    parts = _surveyed(spec, [runtimes[ordinal] for ordinal in choice.devices], split)
    whole = _joined([part.survey for part in parts])
    network = neurons_of(spec)
    point = static_fixed_point(whole, network.power_amount, options)
    rules = {count: _neurons(spec, network, options, point, whole, count) for count in {part.count for part in parts}}
    shards = tuple(_packed(spec, point, rules[part.count], part, number) for number, part in enumerate(parts))
    return network, shards, partial(_fill, spec, parts)


def _surveyed(
    spec: SyntheticSpec, runtimes: Sequence[DeviceRuntime], split: Sequence[tuple[SpacedIds, int]]
) -> list[_Part]:
    """Go through all synapses on every device, all at once."""
    from burstproof.engine.cuda.kernels.generate import SUMMARY_LENGTH
    from burstproof.engine.cuda.kernels.shard_generate import survey_kernel

    varied = isinstance(spec.weights, tuple)
    description = survey_kernel(spec, split[0][0].step == 1)
    compiled: dict[str, dict[str, Any]] = {}
    started = []
    for runtime, (ids, count) in zip(runtimes, split, strict=True):
        make_current(runtime)
        if runtime.name not in compiled:
            compiled[runtime.name] = {"survey": runtime.kernel(description.function, description.signature)}
        specs = (
            BufferSpec("degrees", max(count, 1), np.dtype(np.uint32)),
            BufferSpec("totals", max(count, 1) if varied else 1, np.dtype(np.float64)),
            BufferSpec("summary", SUMMARY_LENGTH, np.dtype(np.int64)),
        )
        rows = runtime.allocate([BufferSpec("row_counts", max(spec.neurons, 1), np.dtype(np.uint32))])["row_counts"]
        buffers, stream = runtime.allocate(specs), runtime.stream()
        values = Values(runtime, {**buffers, "row_counts": rows}, 0, draw_of(spec) | own_of(ids, count))
        kernels = Kernels(runtime, None, (description,), compiled[runtime.name])
        kernels.call("survey", grid_of(runtime), BLOCK, values).queue(stream)
        started.append((runtime, ids, count, rows, buffers, stream))
    parts = []
    for runtime, ids, count, rows, buffers, stream in started:
        make_current(runtime)
        stream.synchronize()
        parts.append(_Part(runtime, ids, count, rows, _found(spec, runtime, buffers), _total(runtime, rows)))
    return parts


def _found(spec: SyntheticSpec, runtime: DeviceRuntime, buffers: dict[str, DeviceBuffer]) -> Survey:
    from burstproof.engine.cuda.kernels.generate import DELAY, DIGITS

    summary = _values(runtime, buffers["summary"])
    degree = int(buffers["degrees"].array.max()) if not runtime.simulated else int(_host(buffers["degrees"]).max())
    totals = buffers["totals"]
    largest = degree * contribution_of(spec, 0)
    if isinstance(spec.weights, tuple):
        largest = float(totals.array.max() if not runtime.simulated else _host(totals).max())
    refuse_inexact(spec, largest)
    return Survey(largest, int(summary[DIGITS]), degree, int(summary[DELAY]))


def _values(runtime: DeviceRuntime, buffer: DeviceBuffer) -> npt.NDArray[Any]:
    host, stream = np.empty(buffer.spec.count, buffer.spec.dtype), runtime.stream()
    runtime.download(host, buffer, stream)
    stream.synchronize()
    return host


def _host(buffer: DeviceBuffer) -> npt.NDArray[Any]:
    """The contents of a buffer of the simulator."""
    contents: npt.NDArray[Any] = buffer.array.copy_to_host()
    return contents


def _total(runtime: DeviceRuntime, rows: DeviceBuffer) -> int:
    if runtime.simulated:
        return int(_host(rows).sum(dtype=np.int64))
    return int(rows.array.sum(dtype=np.int64))


def _lengths(part: _Part, longest: int) -> npt.NDArray[np.int64]:
    """Rows of 0, 1, ... entries."""
    if part.runtime.simulated:
        return np.bincount(_host(part.row_counts), minlength=longest + 1).astype(np.int64)
    import cupy

    make_current(part.runtime)
    found: npt.NDArray[np.int64] = cupy.asnumpy(cupy.bincount(part.row_counts.array, minlength=longest + 1))
    cupy.get_default_memory_pool().free_all_blocks()
    return found.astype(np.int64)


def _joined(surveys: Sequence[Survey]) -> Survey:
    """What holds for all shards together."""
    return Survey(
        max(survey.largest_input for survey in surveys),
        max(survey.digits for survey in surveys),
        max(survey.in_degree for survey in surveys),
        max(survey.longest_delay for survey in surveys),
    )


@dataclass(frozen=True, eq=False)
class _Neurons:
    """What shards of equally many neurons have in common, for all neurons of a specification are alike."""

    network: Network
    options: EngineOptions
    layout: Layout
    features: Features
    variant: Variant
    sizes: NetworkSizes


def _neurons(
    spec: SyntheticSpec, network: Network, options: EngineOptions, point: FixedPoint, whole: Survey, count: int
) -> _Neurons:
    own = neurons_only(network, np.arange(count, dtype=np.uint32))
    layout, bits = spec_layout(spec, own, options, point, whole)
    features = features_of(own, options)
    # Of the size of the network, the rules ask no more than whether it is large; one that counts further is not fused.
    counted = replace(layout, neuron_count=min(spec.neurons, _COUNTABLE))
    variant = variant_of(counted, features, options, point)
    fused = variant.fused is not None
    variant = replace(
        variant,
        contribution_bits=bits,
        uniform_rows=fused and not isinstance(spec.weights, tuple),
        sum_bits=sum_bits(counted, options, point, packable=fused and not layout.needs_flags),
    )
    return _Neurons(own, options, layout, features, variant, network_sizes(layout, features, fused))


def _packed(spec: SyntheticSpec, point: FixedPoint, neurons: _Neurons, part: _Part, number: int) -> PackedShard:
    layout, options = neurons.layout, neurons.options
    sizes = replace(
        neurons.sizes,
        static_entries=part.entries,
        longest_row=spec.synapses_per_neuron,
        pieces=0,
        ring=layout.max_delay,
    )
    variant = replace(neurons.variant, offset_bits=offset_bits(part.entries))
    train = train_sizes(part.count, shard_train_length(options, spec.neurons))
    weights = neurons.network.synapses.weights
    packed = Packed(neurons.network, options, point, layout, neurons.features, variant, sizes, train, weights)
    return finished(number, spec.neurons, None, part.ids, packed, _lengths(part, spec.synapses_per_neuron))


def _fill(spec: SyntheticSpec, parts: Sequence[_Part], shard: PackedShard, device: DeviceState) -> None:
    """Write the neurons, then have the device write its rows."""
    from burstproof.engine.cuda.kernels.shard_generate import fill_kernel

    part, variant = parts[shard.number], shard.shard.variant
    runtime = part.runtime
    upload_neurons(shard.packed, device)
    if shard.shard.row_words:
        _fill_padded(spec, part, shard, device)
        return
    _scan(runtime, part.row_counts, device.buffer("offsets"))
    _queue_fill(part, shard, fill_kernel(spec, variant, part.ids.step == 1), device, part.given(spec))


def _fill_padded(spec: SyntheticSpec, part: _Part, shard: PackedShard, device: DeviceState) -> None:
    """Have the device write its rows, padded."""
    from burstproof.engine.cuda.kernels.padded import fill_padded_kernel

    runtime, words = part.runtime, shard.shard.row_words
    following = runtime.allocate([BufferSpec("following", 1, np.dtype(np.uint32))])["following"]
    runtime.upload(following, np.array([spec.neurons * words // UNIT], np.uint32), runtime.stream())
    given = {**part.given(spec), "table": device.buffer("targets"), "following": following}
    _queue_fill(part, shard, fill_padded_kernel(spec, words, part.ids.step == 1), device, given)


def _queue_fill(
    part: _Part, shard: PackedShard, description: KernelSpec, device: DeviceState, given: dict[str, Any]
) -> None:
    """Run the kernel that writes the rows."""
    runtime, stream = part.runtime, part.runtime.stream()
    rows = {name: device.buffer(name) for name in Rows._fields}
    values = Values(runtime, rows, 0, numbers_of(shard.packed) | given)
    Kernels(runtime, shard.shard, (description,)).call("fill", grid_of(runtime), BLOCK, values).queue(stream)
    stream.synchronize()


def _scan(runtime: DeviceRuntime, counts: DeviceBuffer, offsets: DeviceBuffer) -> None:
    """Offsets of rows with these numbers of entries; the first is 0 already."""
    if runtime.simulated:
        host = np.zeros(offsets.spec.count, offsets.spec.dtype)
        np.cumsum(_host(counts), out=host[1:])
        runtime.upload(offsets, host, runtime.stream())
        return
    import cupy

    cupy.cumsum(counts.array, dtype=offsets.spec.dtype, out=offsets.array[1:])
    cupy.cuda.Device().synchronize()
    cupy.get_default_memory_pool().free_all_blocks()
