"""Chooses for all shards of a network alike how they deliver: by queues per owner, else blocks and rows of one form."""

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
"""Least room in the log of a burst in one kernel, which must hold two bursts more: see ``kernels.steer``."""


def with_owners(packed: Sequence[PackedShard], runtimes: Sequence[DeviceRuntime]) -> tuple[PackedShard, ...] | None:
    """The shards with queues per owner, if all of them gain by that and their devices have room; see ``queued``."""
    made: list[PackedShard] = []
    needed = any(needs_queues(shard) for shard in packed)
    for shard, runtime in zip(packed, runtimes, strict=True):
        own = queued(shard, runtime.overlaps, needed=needed)
        if own is None or block_bytes(own.shard.variant) > runtime.shared_bytes:
            return None
        made.append(own)
    log = max(shard.neurons for shard in made)  # a full log is told in the burst that fills it
    spaced = all(shard.shard.spaced_ids for shard in made)
    owned = tuple(
        replace(
            shard,
            spaced=shard.spaced if spaced else None,
            packed=replace(shard.packed, batch=replace(shard.packed.batch, log=max(shard.packed.batch.log, log))),
            shard=replace(shard.shard, spaced_ids=spaced),
        )
        for shard in made
    )
    mail = mail_bytes(Path.PEER, len(owned), side_words(log, carries_potentials=False))
    return owned if all(_have_room(owned, runtimes, runtime, mail) for runtime in runtimes) else None


def _have_room(
    shards: Sequence[PackedShard], runtimes: Sequence[DeviceRuntime], runtime: DeviceRuntime, mail: int
) -> bool:
    """Whether a device has room for its shards, each with ``mail`` bytes of mailboxes."""
    here = [shard for shard, place in zip(shards, runtimes, strict=True) if place is runtime]
    make_current(runtime)
    room = available_bytes(runtime.memory_info()[0], here[0].packed.options)
    return sum(plan_of(shard).total_bytes + mail for shard in here) <= room


def alike(
    packed: Sequence[PackedShard], runtimes: Sequence[DeviceRuntime], merged: bool = False, padded: bool = True
) -> tuple[PackedShard, ...]:
    """The shards with what need not differ made equal, so that they share kernels; ``padded``: rows may be, if room."""
    most = max(packed, key=lambda shard: shard.neurons)
    merged = merged and not any(shard.shard.collects or shard.shard.variant.count_ahead for shard in packed)
    shape = merged_shape(most.neurons) if merged else (most.shard.threads, most.shard.per_thread)
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
    log = _LOG_PER_NEURON * most.neurons if merged else 0
    made = tuple(
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
    if words and not all(_fits(shard, runtime) for shard, runtime in zip(made, runtimes, strict=True)):
        return alike(packed, runtimes, merged, padded=False)
    return made


def _fits(shard: PackedShard, runtime: DeviceRuntime) -> bool:
    """Whether a shard with padded rows fits its device, and its table is no longer than their links reach."""
    room = _have_room([shard], [runtime], runtime, 0)
    return table_words(shard.lengths, shard.shard.row_words) < FURTHEST and room


def _row_words(packed: Sequence[PackedShard]) -> int:
    """Words of a padded row of every shard, or 0."""
    if not all(shard.shard.can_pad for shard in packed):
        return 0
    lengths = np.zeros(max(len(shard.lengths) for shard in packed), np.int64)
    for shard in packed:
        lengths[: len(shard.lengths)] += shard.lengths
    return choose_words(lengths)
