"""Names of the variants that ``variants.chosen_variants`` makes: those built for every capability, and all."""

from __future__ import annotations

VARIANTS = ("lean", "delays", "everything", "beta batch path", "packed sums, long rows", "packed sums, tiles")
VARIANTS += ("entries in words", "entries in words with a palette, calendar", "features, one kernel")
VARIANTS += ("entries in words with a palette, calendar in tiles", "features, several kernels", "queues per owner")
VARIANTS += ("queues per owner, places, buckets", "queues per owner, integers", "queues per owner, records")
ALL_VARIANTS = (*VARIANTS, "delays in a calendar", "delays on the sender's side", "queues per owner, targets alone")
ALL_VARIANTS += ("queues per owner, sleepers",)
