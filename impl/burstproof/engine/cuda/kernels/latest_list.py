"""A burst's fired list as ``kernels.enqueue`` reads it: kept on the device, or in the mailboxes of a shard."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from burstproof.device.numba_cuda import cuda
from burstproof.engine.cuda.args import Exchange, Ids, Recall, Steering, Turn, Words
from burstproof.engine.cuda.kernels.control import ORIGIN
from burstproof.engine.cuda.kernels.link import make_link
from burstproof.engine.cuda.kernels.lists import make_find, make_lists
from burstproof.engine.cuda.kernels.steer import make_fired_of
from burstproof.engine.cuda.plan.shard_variant import ShardVariant
from burstproof.engine.cuda.plan.variant import lists_kept


class Latest(NamedTuple):
    """The latest burst's fired list; all but ``total`` is used only with an exchange.

    Attributes
    ----------
    total : uint32
        Firings.
    first : uint64
        Place of a list's first word in its mailbox.
    sequence : uint32
        Number of the exchange.
    counts : uint32
        Firings of each shard, in shared memory.
    addresses : uint64
        Addresses of the mailboxes, in shared memory.
    """

    total: np.uint32
    first: np.uint64
    sequence: np.uint32
    counts: Ids
    addresses: Words


def make_open_latest(shard: ShardVariant) -> Callable[..., Any]:
    """``open_latest(burst, counts, addresses, steering, ...)`` -> ``Latest``, whose length it also stores.

    All threads of the grid call it. With an exchange it waits until every shard has published its count.
    """
    lists, fired_of, copy_address, exchanges = make_lists(), make_fired_of(), make_link().keep, shard.exchanges
    turns, zero, one, high_shift = np.uint32(lists_kept(shard.variant) - 1), np.uint32(0), np.uint32(1), np.uint64(32)

    def open_latest(
        burst: np.uint32,
        counts: Ids,
        addresses: Words,
        steering: Steering,
        exchange: Exchange,
        recall: Recall,
        turn: Turn,
    ) -> Any:
        first, sequence = np.uint64(0), zero
        if exchanges:
            box = np.uint32(cuda.threadIdx.x)
            if box < np.uint32(exchange.inboxes.size):
                copy_address(exchange.inboxes, box, addresses)
            sequence = np.uint32(np.uint32(np.uint64(steering.report[ORIGIN]) >> high_shift) + turn.place + one)
            halt = np.int64(burst) + np.int64(1)
            total, first = lists(sequence, halt, steering.control, exchange, counts)
        else:
            total = fired_of(steering.tallies, burst)
        if cuda.grid(1) == 0:
            recall.recalled_counts[burst & turns] = total
        return Latest(total, first, sequence, counts, addresses)

    return cuda.jit(device=True)(open_latest)  # type: ignore[no-any-return]


def make_source_of(shard: ShardVariant) -> Callable[..., Any]:
    """``source_of(burst, age, item, latest, exchange, recall)``: firing ``item`` of the list of ``age`` bursts before.

    With an exchange an entry of the latest list, read once, is also copied from its mailbox to the kept list.
    """
    link_to, find, turns = make_link(), make_find(), np.uint32(lists_kept(shard.variant) - 1)
    wait, near, exchanges, zero = link_to.wait, link_to.near, shard.exchanges, np.uint32(0)

    def source_of(
        burst: np.uint32, age: np.uint32, item: np.uint32, latest: Latest, exchange: Exchange, recall: Recall
    ) -> Any:
        kept = np.uint64(np.uint64(np.uint32(burst - age) & turns) * recall.list_room + np.uint64(item))
        if exchanges and age == zero:
            box, place = find(item, latest.counts)
            at = np.uint64(latest.first + np.uint64(place))
            source = wait(near(exchange.inboxes, latest.addresses), box, at, latest.sequence, exchange)
            recall.recalled_ids[kept] = source
            return source
        return recall.recalled_ids[kept]

    return cuda.jit(device=True)(source_of)  # type: ignore[no-any-return]
