"""The launches of a burst whose synapses lie in host memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from burstproof.burst.cuda.launches import BurstLaunches, Call, SetView
from burstproof.burst.cuda.packed import Packed
from burstproof.burst.cuda.streaming import packed_contributions, pieces_of
from burstproof.kernels.device import DeviceRuntime

if TYPE_CHECKING:
    from burstproof.burst.cuda.kernels import KernelSpec

_WARP = 32


class StreamingLaunches(BurstLaunches):
    """As on the device, but rows of constant contributions are read in chunks over the link."""

    def __init__(self, runtime: DeviceRuntime, packed: Packed, block: int) -> None:
        super().__init__(runtime, packed, block)
        self._pieces = pieces_of(packed.sizes.longest_row)

    def _specs(self) -> tuple[KernelSpec, ...]:
        from burstproof.burst.cuda.streaming_kernels import streaming_catalogue

        return streaming_catalogue(self._variant)

    def _propagate(self, own: SetView) -> Call:
        runtime, pieces = self._runtime, self._pieces
        contributions, delays = own["contributions"], own["delays"]
        if packed_contributions(self._variant):
            contributions = runtime.words(contributions)
        if self._variant.delays:
            delays = runtime.words(delays)
        rows = (own["offsets"], own["targets"], contributions, delays, own["clamped_sources"])
        arguments = (own["control"], own.set("log_ids"), *rows, own["sums"], own["flags"], *self._ring)
        shares = (np.int64(pieces.length), np.int64(pieces.most))
        return self._call("propagate_streamed", _WARP * self._sizes.neurons * pieces.most, (*arguments, *shares))
