"""The launches of a burst whose synapses lie in host memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from burstproof.engine.cuda.host.launches import WARP, BurstLaunches, Call, Values
from burstproof.engine.cuda.plan.streaming import pieces_of

if TYPE_CHECKING:
    from burstproof.engine.cuda.kernels.catalogue import KernelSpec


class StreamingLaunches(BurstLaunches):
    """As on the device, but rows of constant contributions are read in chunks over the link, a warp for each piece."""

    def _specs(self) -> tuple[KernelSpec, ...]:
        from burstproof.engine.cuda.kernels.streaming import streaming_catalogue

        return streaming_catalogue(self._packed.variant)

    def _propagate(self, values: Values) -> Call:
        sizes = self._packed.sizes
        pieces = pieces_of(sizes.longest_row)
        shares = values.but(piece=pieces.length, most_pieces=pieces.most)
        return self._spread("propagate_streamed", WARP * sizes.neurons * pieces.most, shares)
