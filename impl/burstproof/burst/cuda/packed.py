"""A network made ready for one CUDA engine: layout, kernel variant and sizes, all known before a device is touched."""

from __future__ import annotations

from dataclasses import dataclass

from burstproof.burst.cuda.buffers import (
    NetworkSizes,
    TrainSizes,
    buffer_specs,
    default_train_length,
    network_sizes,
    train_sizes,
)
from burstproof.burst.cuda.variant import Variant, variant_of
from burstproof.burst.engine import EngineOptions
from burstproof.burst.fixed_point import FixedPoint, plan_fixed_point
from burstproof.burst.layout import Layout, build_layout
from burstproof.burst.rules import Features, features_of
from burstproof.errors import ConfigError
from burstproof.kernels.device import BufferSpec
from burstproof.network.model import Network

_LONGEST_TRAIN = 4096


@dataclass(frozen=True, eq=False)
class Packed:
    """Everything that the engine needs; ``layout`` may lack the static rows that a device generates itself."""

    network: Network
    options: EngineOptions
    fixed_point: FixedPoint
    layout: Layout
    features: Features
    variant: Variant
    sizes: NetworkSizes
    train: TrainSizes

    @property
    def longest_window(self) -> int:
        """Longest window of plasticity in bursts, 1 without plastic mappings."""
        return self.layout.plastic.longest_window if self.layout.plastic is not None else 1

    @property
    def buffers(self) -> tuple[BufferSpec, ...]:
        """Every buffer on the device."""
        return buffer_specs(self.sizes, self.variant, self.train)


def pack_network(network: Network, options: EngineOptions) -> Packed:
    """Pack ``network``.

    Raises
    ------
    NetworkError
        A network that the profile refuses, or a contribution that is not finite.
    ConfigError
        A train length out of range.
    """
    fixed_point = plan_fixed_point(network, options)
    layout = build_layout(network, options, fixed_point)
    features = features_of(network, options)
    return Packed(
        network,
        options,
        fixed_point,
        layout,
        features,
        variant_of(layout, features, options, fixed_point),
        network_sizes(layout, features),
        train_sizes(layout.neuron_count, train_length(options, layout.neuron_count)),
    )


def train_length(options: EngineOptions, neurons: int) -> int:
    """Bursts captured in one graph.

    Raises
    ------
    ConfigError
        Out of range.
    """
    length = options.cuda.train_length or default_train_length(neurons)
    if not 1 <= length <= _LONGEST_TRAIN:
        raise ConfigError(
            "not a train length", where="cuda.train_length", got=length, allowed=f"0, or 1...{_LONGEST_TRAIN}"
        )
    return length
