"""A whole burst in one kernel, where a shard has a device of its own: what it publishes, it also waits for.

All blocks must be on the device at once, for each waits for firings that others publish. The FCL has one slot more than
the longest delay, so that what arrives early finds its place while other blocks still consume.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from burstproof.burst.cuda.control import HALTED, INDEX, LIMIT, SLOT
from burstproof.kernels.dependent_launch import make_wait_for_last
from burstproof.kernels.numba_cuda import cuda
from burstproof.sharding.kernels_deliver import make_deliver_all
from burstproof.sharding.kernels_shard import make_dynamics
from burstproof.sharding.link_words import FAILED, SEQUENCE
from burstproof.sharding.shard_variant import ShardVariant


def make_merged(shard: ShardVariant) -> Callable[..., None]:
    """``merged(...)``: the dynamics, then ``deliver_all``; see there."""
    dynamics, deliver_all = cuda.jit(device=True)(make_dynamics(shard)), make_deliver_all(shard)
    wait_for_last = make_wait_for_last(shard.overlapped)

    def merged(
        control: Any,
        report: Any,
        link: Any,
        done: Any,
        sinks: Any,
        inboxes: Any,
        members: Any,
        outside: Any,
        forced: Any,
        cells: Any,
        flags: Any,
        potentials: Any,
        countdowns: Any,
        counts: Any,
        marks: Any,
        accumulates: Any,
        thresholds: Any,
        threshold_limits: Any,
        keep: Any,
        refractory_periods: Any,
        fire_limit: Any,
        snooze_periods: Any,
        excitabilities: Any,
        log_ids: Any,
        log_potentials: Any,
        unit: Any,
        power_neuron: Any,
        power_amount: Any,
        neurons: Any,
        stride: Any,
        ring: Any,
        capacity: Any,
        room: Any,
        words: Any,
        bits: Any,
        first_id: Any,
        id_step: Any,
        stimulated: Any,
        patience: Any,
        common_threshold: Any,
        common_threshold_limit: Any,
        common_keep: Any,
        common_refractory_period: Any,
        common_fire_limit: Any,
        common_snooze_period: Any,
        common_excitability: Any,
        offsets: Any,
        targets: Any,
        contributions: Any,
        delays: Any,
        clamped_sources: Any,
        sums: Any,
    ) -> None:
        wait_for_last()
        # Read before this block's share of the dynamics is done: only then may another block change it.
        sequence = np.uint32(link[SEQUENCE] + 1)
        slot = np.uint32(np.uint32(control[SLOT]) + np.uint32(1))
        if slot == ring:
            slot = np.uint32(0)
        index, limit = report[INDEX] + 1, report[LIMIT]
        stops = (np.int32(index >= limit) | np.int32(control[HALTED]) | np.int32(link[FAILED])) != 0
        dynamics(
            control,
            report,
            link,
            done,
            sinks,
            inboxes,
            members,
            outside,
            forced,
            cells,
            flags,
            potentials,
            countdowns,
            counts,
            marks,
            accumulates,
            thresholds,
            threshold_limits,
            keep,
            refractory_periods,
            fire_limit,
            snooze_periods,
            excitabilities,
            log_ids,
            log_potentials,
            unit,
            power_neuron,
            power_amount,
            neurons,
            stride,
            ring,
            capacity,
            room,
            words,
            bits,
            first_id,
            id_step,
            stimulated,
            patience,
            common_threshold,
            common_threshold_limit,
            common_keep,
            common_refractory_period,
            common_fire_limit,
            common_snooze_period,
            common_excitability,
        )
        if stops:
            return
        cuda.syncthreads()
        deliver_all(
            sequence,
            slot,
            control,
            link,
            inboxes,
            offsets,
            targets,
            contributions,
            delays,
            clamped_sources,
            sums,
            flags,
            stride,
            ring,
            words,
            patience,
        )

    return merged
