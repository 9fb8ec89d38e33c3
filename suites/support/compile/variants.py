"""The kernel variants that the compile stage builds: the leanest network, the richest, and the ones between."""

from __future__ import annotations

from dataclasses import replace

from burstproof.engine.cuda.plan.variant import Variant, variant_of
from burstproof.engine.fixed_point import plan_fixed_point
from burstproof.engine.layout import build_layout
from burstproof.engine.rules import features_of
from suites.support.parity.mixed import MIXES, mixed_network, mixed_options

CHOSEN = {
    "lean": "integers, all excitatory",
    "delays": "fractions, delays to 7",
    "everything": "plastic, windows 3 and 2, delays to 4, mp-driven",
    "beta batch path": "beta batch path",
}


def chosen_variants() -> dict[str, Variant]:
    """Variants by name, taken from the mixed networks of stage 5."""
    by_name = {mix.name: mix for mix in MIXES}
    variants = {}
    for name, mix_name in CHOSEN.items():
        mix = by_name[mix_name]
        network, options = mixed_network(mix), mixed_options(mix)
        scale = plan_fixed_point(network, options)
        variants[name] = variant_of(
            build_layout(network, options, scale), features_of(network, options), options, scale
        )
    lean = variants["lean"]
    variants["packed sums, long rows"] = replace(lean, sum_bits=8, long_rows=True)
    variants["packed sums, tiles"] = replace(lean, sum_bits=8, tiles=2, tile_share=16)
    return variants
