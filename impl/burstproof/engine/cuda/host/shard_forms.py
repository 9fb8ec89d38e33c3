"""Makes the shards of a network share one form, and so their kernels: with queues per owner, or without."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from burstproof.device.protocol import DeviceRuntime
from burstproof.engine.cuda.exchange.devices import make_current
from burstproof.engine.cuda.exchange.mail import Path, mail_bytes
from burstproof.engine.cuda.exchange.words import side_words
from burstproof.engine.cuda.host.shard import plan_of
from burstproof.engine.cuda.plan.budget import available_bytes
from burstproof.engine.cuda.plan.padded_rows import FURTHEST, choose_words, table_words
from burstproof.engine.cuda.plan.queues import block_bytes
from burstproof.engine.cuda.plan.shard_pack import PackedShard, needs_queues, queued
from burstproof.engine.cuda.plan.shard_variant import merged_shape, merged_share, padded_share, row_share

_LOG_PER_NEURON = 3
"""Log entries per neuron, at least, if a burst is one kernel: the log must hold two more bursts (``kernels.steer``)."""


def with_owners(packed: Sequence[PackedShard], runtimes: Sequence[DeviceRuntime]) -> tuple[PackedShard, ...] | None:
    """The shards with queues per owner; ``None`` unless all shards gain and all devices have room (``queued``)."""
    queued_shards: list[PackedShard] = []
    needed = any(needs_queues(shard) for shard in packed)
    for shard, runtime in zip(packed, runtimes, strict=True):
        own = queued(shard, runtime.overlaps, needed=needed)
        if own is None or block_bytes(own.shard.variant) > runtime.shared_bytes:
            return None
        queued_shards.append(own)
    log = max(shard.neurons for shard in queued_shards)  # enough: a full log is announced in the burst that fills it
    spaced = all(shard.shard.spaced_ids for shard in queued_shards)
    owned = tuple(
        replace(
            shard,
            spaced=shard.spaced if spaced else None,
            packed=replace(shard.packed, batch=replace(shard.packed.batch, log=max(shard.packed.batch.log, log))),
            shard=replace(shard.shard, spaced_ids=spaced),
        )
        for shard in queued_shards
    )
    mail = mail_bytes(Path.PEER, len(owned), side_words(log, carries_potentials=False))
    return owned if all(_have_room(owned, runtimes, runtime, mail) for runtime in runtimes) else None


def _have_room(
    shards: Sequence[PackedShard], runtimes: Sequence[DeviceRuntime], runtime: DeviceRuntime, mail: int
) -> bool:
    """Whether device ``runtime`` has room for its shards, each with ``mail`` bytes of mailboxes."""
    here = [shard for shard, on in zip(shards, runtimes, strict=True) if on is runtime]
    make_current(runtime)
    room = available_bytes(runtime.memory_info()[0], here[0].packed.options)
    return sum(plan_of(shard).total_bytes + mail for shard in here) <= room


def alike(
    packed: Sequence[PackedShard], runtimes: Sequence[DeviceRuntime], merged: bool = False, padded: bool = True
) -> tuple[PackedShard, ...]:
    """The shards with equal launch shapes and row forms, so that they share kernels.

    ``merged``: a burst may be one kernel. ``padded``: its rows may be padded, if the devices have room.
    """
    largest = max(packed, key=lambda shard: shard.neurons)
    merged = merged and not any(shard.shard.collects or shard.shard.variant.count_ahead for shard in packed)
    shape = merged_shape(largest.neurons) if merged else (largest.shard.threads, largest.shard.per_thread)
    words = _row_words(packed) if merged and padded else 0
    share = max(shard.shard.share for shard in packed)
    if merged:
        share = padded_share(words) if words else merged_share(row_share(max(shard.mean_row for shard in packed)))
    common: dict[str, Any] = {
        "carries_potentials": any(shard.shard.carries_potentials for shard in packed),
        "spaced_ids": all(shard.shard.spaced_ids for shard in packed),
        "threads": shape[0],
        "per_thread": shape[1],
        "share": share,
        "merged": merged,
        "row_words": words,
    }
    ring = packed[0].packed.layout.max_delay + int(merged)
    log = _LOG_PER_NEURON * largest.neurons if merged else 0
    shards = tuple(
        replace(
            shard,
            spaced=shard.spaced if common["spaced_ids"] else None,
            packed=replace(
                shard.packed,
                sizes=replace(shard.packed.sizes, ring=ring),
                batch=replace(shard.packed.batch, log=max(shard.packed.batch.log, log)),
            ),
            shard=replace(shard.shard, overlapped=runtime.overlaps and shard.shard.fused, **common),
        )
        for shard, runtime in zip(packed, runtimes, strict=True)
    )
    if words and not all(_fits(shard, runtime) for shard, runtime in zip(shards, runtimes, strict=True)):
        return alike(packed, runtimes, merged, padded=False)
    return shards


def _fits(shard: PackedShard, runtime: DeviceRuntime) -> bool:
    """Whether a shard with padded rows fits its device, and the links of rows reach the end of its table."""
    room = _have_room([shard], [runtime], runtime, 0)
    return table_words(shard.lengths, shard.shard.row_words) < FURTHEST and room


def _row_words(packed: Sequence[PackedShard]) -> int:
    """Words of a padded row, the same for all shards; 0 if rows are not padded."""
    if not all(shard.shard.can_pad for shard in packed):
        return 0
    lengths = np.zeros(max(len(shard.lengths) for shard in packed), np.int64)
    for shard in packed:
        lengths[: len(shard.lengths)] += shard.lengths
    return choose_words(lengths)
