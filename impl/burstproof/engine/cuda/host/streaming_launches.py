"""The launches of a burst whose synapses lie in host memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from burstproof.device.protocol import DeviceBuffer, DeviceRuntime
from burstproof.engine.cuda.host.launches import BurstLaunches, Call, SetView
from burstproof.engine.cuda.plan.buffers import NetworkSizes
from burstproof.engine.cuda.plan.streaming import packed_contributions, pieces_of
from burstproof.engine.cuda.plan.variant import Variant

if TYPE_CHECKING:
    from burstproof.engine.cuda.kernels.catalogue import KernelSpec

_WARP = 32


class StreamingLaunches(BurstLaunches):
    """As on the device, but rows of constant contributions are read in chunks over the link."""

    def _specs(self) -> tuple[KernelSpec, ...]:
        from burstproof.engine.cuda.kernels.streaming import streaming_catalogue

        return streaming_catalogue(self._variant)

    def _propagate(self, own: SetView) -> Call:
        arguments = _sending_arguments(self._runtime, self._variant, self._sizes, own, own["sums"], self._ring)
        return self._call("propagate_streamed", _sending_threads(self._sizes), arguments)


def _sending_threads(sizes: NetworkSizes) -> int:
    """Threads with something to do if every neuron fires: a warp for each piece of a row."""
    return _WARP * sizes.neurons * pieces_of(sizes.longest_row).most


def _sending_arguments(
    runtime: DeviceRuntime,
    variant: Variant,
    sizes: NetworkSizes,
    own: SetView,
    sums: DeviceBuffer,
    ring: tuple[np.uint32, np.uint32],
) -> tuple[Any, ...]:
    """Arguments of ``propagate_streamed``; ``sums`` as contributions are added to them, ``ring`` in cells and slots."""
    contributions, delays = own["contributions"], own["delays"]
    if packed_contributions(variant):
        contributions = runtime.words(contributions)
    if variant.delays:
        delays = runtime.words(delays)
    rows = (own["offsets"], own["targets"], contributions, delays, own["clamped_sources"])
    pieces = pieces_of(sizes.longest_row)
    shares = (np.int64(pieces.length), np.int64(pieces.most))
    return (own["control"], own.set("log_ids"), *rows, sums, own["flags"], *ring, *shares)
