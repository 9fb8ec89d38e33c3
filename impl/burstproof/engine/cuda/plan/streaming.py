"""Synapses in host memory: the buffers that lie there, and the pieces in which rows cross the link (BE-10).

Page-locked host memory is mapped into the device's address space. A burst reads the rows of the neurons that fired;
nothing else crosses the link.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from burstproof.device.protocol import BufferSpec
from burstproof.engine.cuda.plan.variant import Variant, packed_contributions

CHUNK = 128
"""Entries that a warp loads at once: four lines of 128 bytes of targets."""

LINE = 128
"""Bytes that cross the link together."""

PER_SYNAPSE = frozenset(("targets", "contributions", "delays", "eligibility", "learning_rules"))
PER_SYNAPSE |= {"computed_targets", "computed_delays", "weights", "psps", "signs"}
PER_SYNAPSE |= {"plastic_positions", "plastic_sources", "plastic_targets"}
"""Buffers with an element per synapse; the size of all others follows from the neurons."""

_PIECE = 1024
_MOST_PIECES = 16


def split_buffers(
    specs: Iterable[BufferSpec], uniform_rows: bool
) -> tuple[tuple[BufferSpec, ...], tuple[BufferSpec, ...]]:
    """Buffers that stay on the device, and those that lie in host memory, padded to whole chunks.

    ``contributions`` stay on the device if there is one per source.
    """
    device, host = [], []
    for spec in specs:
        if spec.name in PER_SYNAPSE and not (uniform_rows and spec.name == "contributions"):
            host.append(BufferSpec(spec.name, -(-spec.count // CHUNK) * CHUNK, spec.dtype))
        else:
            device.append(spec)
    return tuple(device), tuple(host)


@dataclass(frozen=True)
class Pieces:
    """How separate kernels divide a row among warps: ``most`` pieces of ``length`` entries, the last often empty."""

    length: int
    most: int


def pieces_of(longest_row: int) -> Pieces:
    """Pieces for rows of at most ``longest_row`` entries: a long row is read by several warps."""
    span = longest_row + CHUNK - 1
    share = -(-span // _MOST_PIECES)
    length = max(_PIECE, -(-share // CHUNK) * CHUNK)
    return Pieces(length, max(1, -(-span // length)))


def line_entries(variant: Variant) -> int:
    """Chunks start at multiples of so many entries: those in 128 bytes of the narrowest array that rows read."""
    if variant.delays:
        return LINE
    if packed_contributions(variant):
        return LINE // 2
    return LINE // 4
