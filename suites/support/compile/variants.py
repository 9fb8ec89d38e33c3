"""The kernel variants that the compile stage builds: the leanest network, the richest, and the ones between."""

from __future__ import annotations

from dataclasses import replace

from burstproof.engine.cuda.plan.block_size import FusedShape
from burstproof.engine.cuda.plan.packed import pack_network
from burstproof.engine.cuda.plan.shard_pack import pack_shard
from burstproof.engine.cuda.plan.shard_variant import ShardVariant
from burstproof.engine.cuda.plan.variant import OwnerQueues, Variant, variant_of
from burstproof.engine.cuda.plan.word import Word
from burstproof.engine.features.key import ExtrasKey
from burstproof.engine.fixed_point import plan_fixed_point
from burstproof.engine.layout import build_layout, synapse_facts
from burstproof.engine.options import EngineOptions
from burstproof.engine.rules import features_of
from burstproof.engine.sharded.partition import make_partition
from burstproof.engine.sharded.shard_layout import NetworkShard
from burstproof.network.model import Network
from burstproof.network.synthetic.build import driven_network
from suites.support.parity.mixed import MIXES, mixed_network, mixed_options

CHOSEN = {
    "lean": "integers, all excitatory",
    "delays": "fractions, delays to 7",
    "everything": "plastic, windows 3 and 2, delays to 4, mp-driven",
    "beta batch path": "beta batch path",
}


def chosen_variants() -> dict[str, Variant]:
    """Variants by name, taken from the mixed networks of stage 5."""
    variants = {name: _made(mix_name) for name, mix_name in CHOSEN.items()}
    lean = variants["lean"]
    variants["packed sums, long rows"] = replace(lean, word=Word(8), long_rows=128)
    variants["delays on the sender's side"] = replace(variants["delays"], recalled=7, tile_share=2)
    variants["delays in a calendar"] = replace(variants["delays"], calendar=8, calendar_bits=64)
    variants["entries in words"] = replace(variants["delays"], target_bits=20)
    in_words = replace(variants["delays in a calendar"], calendar_bits=32, target_bits=20, palette=True)
    variants["entries in words with a palette, calendar"] = in_words
    variants["entries in words with a palette, calendar in tiles"] = replace(in_words, calendar_tiles=2)
    variants["queues per owner"] = queued = _queued(variants["delays"])
    assert queued.queues is not None
    narrow = replace(queued.queues, entry_bits=32, rows_put_off=58)
    variants["queues per owner, places, buckets"] = replace(queued, palette=True, queues=narrow)
    recorded = replace(queued, may_sleep=True, uniform=frozenset({"mp_charge_accumulation"}), fused=FusedShape(1024, 2))
    variants["queues per owner, records"] = recorded = replace(recorded, queues=narrow)
    variants["queues per owner, sleepers"] = replace(recorded, few_awake=True)
    integers = replace(_queued(_made("integers")), fused=FusedShape(1024, 3))
    variants["queues per owner, integers"] = replace(integers, queues=replace(narrow, low_bits=0, span=6144))
    alone = replace(narrow, low_bits=0, span=6144, entry_bits=16, rows_put_off=0)
    variants["queues per owner, targets alone"] = replace(integers, uniform_rows=True, recalled=1, queues=alone)
    variants["features, one kernel"] = replace(
        variants["delays"],
        features=variants["delays"].features.general(),
        extras=ExtrasKey(trains=True, homeostats=True, area_modulators=True, modulators=True),
    )
    everything = variants["everything"]
    variants["features, several kernels"] = replace(
        everything, features=everything.features.general(), extras=ExtrasKey(modes=True).general()
    )
    variants["packed sums, tiles"] = replace(lean, word=Word(8), tiles=2, tile_share=16)
    return variants


def _made(mix_name: str) -> Variant:
    """The variant of a mixed network."""
    mix = next(mix for mix in MIXES if mix.name == mix_name)
    network, options = mixed_network(mix), mixed_options(mix)
    scale = plan_fixed_point(network, options)
    return variant_of(build_layout(network, options, scale), features_of(network, options), options, scale)


def _queued(variant: Variant) -> Variant:
    """``variant`` with queues per owner, of sums and contributions of 64 bits."""
    assert variant.fused is not None
    queues = OwnerQueues(264, 4096, 24, 64, 6, 37, variant.word, variant.fused, notes_parts=True)
    return replace(variant, queues=queues, recalled=7, tile_share=2, fused=FusedShape(512, 2))


def sized_variants() -> dict[str, Variant]:
    """The same networks as they run: parameters that are one value for all neurons are no columns."""
    found = {"driven, sized": pack_network(driven_network(4000, 20, 0.1), EngineOptions()).variant}
    by_name = {mix.name: mix for mix in MIXES}
    for name, mix_name in CHOSEN.items():
        mix = by_name[mix_name]
        found[f"{name}, sized"] = pack_network(mixed_network(mix), mixed_options(mix)).variant
    return found


def chosen_shards() -> dict[str, ShardVariant]:
    """Variants of shards by name: of each kind of burst, exchange and row."""
    by_name = {mix.name: mix for mix in MIXES}
    made = {"shard, driven": _shard(driven_network(4000, 20, 0.1), EngineOptions())}
    for name, mix_name in CHOSEN.items():
        mix = by_name[mix_name]
        made[f"shard, {name}"] = _shard(mixed_network(mix), mixed_options(mix))
    driven, delays, lean = made["shard, driven"], made["shard, delays"], made["shard, lean"]
    tiled = replace(driven, variant=replace(driven.variant, tiles=2, tile_share=16))
    return {
        **made,
        "shard, driven, tiles": tiled,
        "shard, driven, merged": replace(driven, merged=True),
        "shard, driven, merged, members": replace(driven, merged=True, spaced_ids=False),
        "shard, driven, merged, padded": replace(driven, merged=True, row_words=32),
        "shard, lean, merged": replace(lean, merged=True),
        "shard, lean, merged, packed sums": replace(lean, merged=True, variant=replace(lean.variant, word=Word(8))),
        "shard, delays, merged": replace(delays, merged=True),
        "shard, delays, queues per owner": replace(
            delays, merged=True, variant=_queued(delays.variant), threads=512, per_thread=2
        ),
    }


def _shard(network: Network, options: EngineOptions) -> ShardVariant:
    """The variant of the first of two shards."""
    partition = make_partition(network, 2, "contiguous")
    point = plan_fixed_point(network, options)
    return pack_shard(
        NetworkShard(network, options, point, synapse_facts(network), partition, 0, network.neuron_count)
    ).shard
