"""Names and sizes of a shard's buffers, which launches and packing share."""

from __future__ import annotations

from burstproof.engine.cuda.args import PARAMETERS

BY_SOURCE = frozenset(
    (
        *("offsets", "contributions", "clamped_sources", "computed_offsets"),
        *("mp_driven", "divisors", "last_fired", "streaks"),
    )
)
"""Buffers that follow the number of all neurons of the network, not of the shard's."""

SHARED_NAMES = frozenset(
    (
        *("control", "sums", "flags", "potentials", "countdowns", "counts", "marks", "tallies", "forced", "done"),
        *PARAMETERS,
        *("offsets", "targets", "contributions", "delays", "clamped_sources", "last_fired", "streaks"),
        *("computed_offsets", "computed_targets", "weights", "psps", "signs", "computed_delays"),
        *("mp_driven", "divisors", "rule_starts", "rule_windows", "potentiations", "depressions"),
        *("plastic_positions", "plastic_sources", "plastic_targets", "eligibility"),
    )
)
"""Buffers that the engine for one device has too."""
