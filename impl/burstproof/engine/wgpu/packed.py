"""A network as the words that the shaders read, what the engine refuses, and what an adapter cannot hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.engine.features.tables import can_train, feature_tables
from burstproof.engine.layout import Layout, StaticRows
from burstproof.engine.machine import WgpuAdapter
from burstproof.engine.options import EngineOptions
from burstproof.engine.precision import Precision
from burstproof.engine.wgpu.shaders import CAN_TRAIN, Variant
from burstproof.errors import BackendUnavailableError, OutOfMemoryError
from burstproof.network.fixed_point import FixedPoint
from burstproof.network.model import Network

Words = npt.NDArray[np.uint32]

LOG_WORDS = 2
_TENTH = 10
_FINEST = 62
_COUNTED_BYTES = 4 * (2**32 - 1)
"""A shader counts the words of a buffer in 32 bits."""


def refuse_options(options: EngineOptions) -> None:
    """Refuse the options that this engine does not have.

    Raises
    ------
    BackendUnavailableError
        Potentials in another format than fp32.
    """
    if options.precision is not Precision.FP32:
        raise BackendUnavailableError(
            "the WGPU engine keeps potentials in float32 only",
            where="precision",
            got=options.precision.value,
            allowed="fp32",
            cure="Use --precision fp32, or --backend cpu or cuda",
        )


def refuse_scale(fixed_point: FixedPoint) -> None:
    """Refuse sums so fine that a potential may be subnormal beside them (``rules.wgsl``).

    Raises
    ------
    BackendUnavailableError
        More than 62 binary digits after the point.
    """
    if fixed_point.k > _FINEST:
        raise BackendUnavailableError(
            "the WGPU engine has no sums as fine as this network needs",
            where="fixed point",
            got=str(fixed_point),
            allowed=f"k up to {_FINEST}",
            cure="Use --backend cpu or cuda",
        )


def lower_and_upper(values: npt.NDArray[Any]) -> tuple[Words, Words]:
    """The two words of 64-bit integers, in two's complement."""
    wide = values.astype(np.int64).view(np.uint64)
    return (wide & np.uint64(0xFFFFFFFF)).astype(np.uint32), (wide >> np.uint64(32)).astype(np.uint32)


def joined(low: Words, high: Words) -> npt.NDArray[np.int64]:
    """Integers of their two words."""
    return (low.astype(np.uint64) | (high.astype(np.uint64) << np.uint64(32))).view(np.int64)


def parameter_words(layout: Layout, network: Network, variant: Variant) -> Words:
    """(N, P) uint32, ``Variant.parameter_fields``: a word per parameter, floats as their bits."""
    columns = layout.neurons._asdict()
    if "features" in variant.parameter_fields:
        classes = feature_tables(network).classes.astype(np.uint32)
        columns["features"] = classes | np.where(can_train(network), np.uint32(CAN_TRAIN), np.uint32(0))
    if variant.modulated:
        columns["base_leak"] = np.ascontiguousarray(network.neurons.leak_coefficients)
        columns["driver"] = feature_tables(network).driver_of
    words = [column.view(np.uint32) if column.dtype == np.float32 else column for column in columns.values()]
    return np.stack([column.astype(np.uint32) for column in words], axis=1)


def synapse_words(static: StaticRows, variant: Variant) -> Words:
    """(P, W) uint32: target, one or two words of the contribution, and the delay where there is more than one."""
    words = np.empty((len(static.targets), variant.words_per_synapse), np.uint32)
    low, high = lower_and_upper(static.contributions)
    words[:, 0] = static.targets
    words[:, 1] = low
    if variant.wide:
        words[:, 2] = high
    if static.delays is not None:
        words[:, -1] = static.delays
    return words


@dataclass(frozen=True)
class Sizes:
    """Bytes of the buffers that grow with the network; ``log_entries`` firings fit into the log."""

    parameters: int
    states: int
    ring: int
    offsets: int
    synapses: int
    log: int
    log_entries: int


def sizes_of(layout: Layout, variant: Variant, bursts: int, adapter: WgpuAdapter) -> Sizes:
    """The sizes for ``layout`` and submissions of ``bursts`` bursts.

    The log holds a burst in which every neuron fires and a tenth of the neurons in each further one, as far as the
    adapter takes it.

    Raises
    ------
    OutOfMemoryError
        A buffer is larger than the adapter gives to a shader.
    """
    neurons = layout.neuron_count
    largest = min(adapter.largest_buffer_bytes, adapter.largest_binding_bytes, _COUNTED_BYTES)
    entries = neurons + neurons * (bursts - 1) // _TENTH
    entries = max(neurons, min(entries, largest // (4 * LOG_WORDS)))
    sizes = Sizes(
        4 * len(variant.parameter_fields) * neurons,
        4 * len(variant.state_fields) * neurons,
        4 * variant.planes * layout.max_delay * neurons,
        4 * (neurons + 1),
        4 * variant.words_per_synapse * len(layout.static.targets),
        4 * LOG_WORDS * entries,
        entries,
    )
    for name in ("parameters", "states", "ring", "offsets", "synapses", "log"):
        size = getattr(sizes, name)
        if size > largest:
            raise OutOfMemoryError(
                f"the buffer of the {name} is larger than the adapter takes",
                where=f"WGPU adapter {adapter.name}",
                got=f"{size} bytes",
                allowed=f"{largest} bytes",
                cure="Take a smaller network, another adapter, or --backend cpu or cuda",
            )
    return sizes
