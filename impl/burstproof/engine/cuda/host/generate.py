"""Synthetic networks generated on the device: no table of synapses ever exists on the host (BE-3)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from burstproof.device.protocol import BufferSpec, DeviceRuntime
from burstproof.engine.admission import check_network
from burstproof.engine.cuda.args import Rows
from burstproof.engine.cuda.host.launches import Kernels, Values, numbers_of
from burstproof.engine.cuda.host.one_device import Contents
from burstproof.engine.cuda.host.state import DeviceState
from burstproof.engine.cuda.host.upload import upload_neurons
from burstproof.engine.cuda.plan.block_size import LONG_ROW
from burstproof.engine.cuda.plan.buffers import default_train_length, network_sizes, train_sizes
from burstproof.engine.cuda.plan.packed import Packed, train_length
from burstproof.engine.cuda.plan.tiles import sized
from burstproof.engine.cuda.plan.variant import offset_bits, sum_bits, variant_of
from burstproof.engine.fixed_point import ContributionSurvey, static_fixed_point
from burstproof.engine.layout import Layout, build_layout
from burstproof.engine.options import EngineOptions
from burstproof.engine.rules import features_of
from burstproof.errors import NetworkError
from burstproof.network.fixed_point import FixedPoint
from burstproof.network.model import Network, NeuronTable, SynapseTable
from burstproof.network.synthetic.build import SyntheticSpec, synthesize

BLOCK = 256
"""Threads of a kernel that draws synapses."""

_WAVES = 16


@dataclass(frozen=True)
class Survey(ContributionSurvey):
    """What the fixed-point scale and the layout follow from, over all synapses; ``largest_input`` is exact."""

    longest_delay: int


def pack_spec(spec: SyntheticSpec, options: EngineOptions, runtime: DeviceRuntime) -> tuple[Packed, Contents]:
    """The network of ``spec`` packed without its synapses, and what fills the device with them.

    Raises
    ------
    NetworkError
        A connectivity whose rows differ in length; laws that the profile refuses; sums that float64 cannot add exactly
        in any order, or contributions that would be clamped.
    """
    check_laws(spec, options)
    network = without_synapses(spec)
    survey = survey_spec(spec, runtime)
    point = static_fixed_point(survey, network.power_amount, options)
    layout, bits = spec_layout(spec, network, options, point, survey)
    features = features_of(network, options)
    fan = spec.synapses_per_neuron
    entries, pieces = spec.neurons * fan, -(-fan // LONG_ROW) if fan > LONG_ROW else 0
    variant = variant_of(layout, features, options, point)
    variant = replace(
        variant,
        contribution_bits=bits,
        offset_bits=offset_bits(entries),
        uniform_rows=variant.fused is not None and not isinstance(spec.weights, tuple),
        sum_bits=sum_bits(layout, options, point, packable=variant.fused is not None and not layout.needs_flags),
    )
    sizes = network_sizes(layout, features, variant.fused is not None)
    sizes = replace(sizes, static_entries=entries, longest_row=fan, pieces=spec.neurons * pieces)
    packed = Packed(
        network,
        options,
        point,
        layout,
        features,
        sized(variant, sizes),
        sizes,
        train_sizes(spec.neurons, train_length(options, default_train_length(spec.neurons))),
        network.synapses.weights,
    )
    return packed, partial(_fill, spec, runtime)


def check_laws(spec: SyntheticSpec, options: EngineOptions) -> None:
    """Let the extreme values of the laws be judged as a network of two synapses."""
    weights = spec.weights if isinstance(spec.weights, tuple) else (spec.weights, spec.weights)
    delays = spec.delays if isinstance(spec.delays, tuple) else (spec.delays, spec.delays)
    psp = spec.postsynaptic_potential
    synapses = SynapseTable.build([0, 0], [0, 0], weights=weights, delay_bursts=delays, postsynaptic_potentials=psp)
    check_network(Network(NeuronTable.build(1), synapses), options)


def without_synapses(spec: SyntheticSpec) -> Network:
    """The neurons and areas of ``spec``."""
    return synthesize(replace(spec, synapses_per_neuron=0))


def survey_spec(spec: SyntheticSpec, runtime: DeviceRuntime) -> Survey:
    """Go through all synapses of ``spec`` on the device once.

    Raises
    ------
    NetworkError
        See ``pack_spec``.
    """
    from burstproof.engine.cuda.kernels.generate import DEGREE, DELAY, DIGITS, SUMMARY_LENGTH, survey_kernels

    varied = isinstance(spec.weights, tuple)
    specs = (
        BufferSpec("degrees", spec.neurons, np.dtype(np.uint32)),
        BufferSpec("totals", spec.neurons if varied else 1, np.dtype(np.float64)),
        BufferSpec("summary", SUMMARY_LENGTH, np.dtype(np.int64)),
        BufferSpec("total", 1, np.dtype(np.float64)),
    )
    kernels = Kernels(runtime, None, survey_kernels(spec))
    buffers, stream = runtime.allocate(specs), runtime.stream()
    values = Values(runtime, buffers, 0, draw_of(spec))
    for name in ("survey", "largest"):
        kernels.call(name, grid_of(runtime), BLOCK, values).queue(stream)
    found, most = np.zeros(SUMMARY_LENGTH, np.int64), np.zeros(1, np.float64)
    runtime.download(found, buffers["summary"], stream)
    runtime.download(most, buffers["total"], stream)
    stream.synchronize()
    degree = int(found[DEGREE])
    largest = float(most[0]) if varied else degree * contribution_of(spec, 0)
    refuse_inexact(spec, largest)
    return Survey(largest, int(found[DIGITS]), degree, int(found[DELAY]))


def draw_of(spec: SyntheticSpec) -> dict[str, int]:
    """What is drawn, by the names of the kernels' fields."""
    return {"sources": spec.neurons, "fan": spec.synapses_per_neuron}


def grid_of(runtime: DeviceRuntime) -> int:
    """Blocks of a kernel that draws synapses."""
    return _WAVES * runtime.multiprocessors


def contribution_of(spec: SyntheticSpec, end: int) -> float:
    """Contribution of the smallest (0) or largest (1) weight, a float32 product."""
    weight = spec.weights[end] if isinstance(spec.weights, tuple) else spec.weights
    return float(np.float32(weight) * np.float32(spec.postsynaptic_potential))


def refuse_inexact(spec: SyntheticSpec, largest: float) -> None:
    """Refuse sums of varied contributions beyond 53 bits: their float64 total would depend on the order."""
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


def spec_layout(
    spec: SyntheticSpec, network: Network, options: EngineOptions, point: FixedPoint, survey: Survey
) -> tuple[Layout, int]:
    """The layout without synapses, and the width of a contribution."""
    extremes = np.array([contribution_of(spec, 0), contribution_of(spec, 1)], np.float32)
    units, clamped = point.quantise(extremes)
    if clamped:
        raise NetworkError(
            "a contribution of this network exceeds the fixed-point range",
            where="SyntheticSpec.weights",
            got=spec.weights,
            cure="Choose smaller weights, or build the network with synthesize",
        )
    layout = build_layout(network, options, point)
    cancels = spec.synapses_per_neuron > 0 and (spec.inhibitory_fraction > 0 or int(units[0]) <= 0)
    bits = next(width for width in (16, 32, 64) if int(units[1]) < 1 << (width - 1))
    return replace(layout, max_delay=survey.longest_delay, needs_flags=layout.needs_flags or cancels), bits


def _fill(spec: SyntheticSpec, runtime: DeviceRuntime, packed: Packed, device: DeviceState) -> None:
    """Write the neurons, then have the device write its synapses."""
    from burstproof.engine.cuda.kernels.generate import fill_kernel

    upload_neurons(packed, device)
    stream, rows = runtime.stream(), {name: device.buffer(name) for name in Rows._fields}
    # Rows are written entry by entry, wherever they lie; only bursts read them in words.
    variant = replace(packed.variant, streamed=False)
    kernels = Kernels(runtime, variant, (fill_kernel(spec, variant),))
    values = Values(runtime, rows, 0, numbers_of(packed) | draw_of(spec))
    kernels.call("fill", grid_of(runtime), BLOCK, values).queue(stream)
    stream.synchronize()
