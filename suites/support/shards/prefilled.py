"""Packets of the other shards, put into a mailbox before a simulated kernel looks for them.

The simulator runs one kernel after another, while the kernels of a burst in one piece wait for each other. What the
others would have sent is known from the reference's recording.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any
from unittest import mock

import numpy as np

from burstproof.engine.cuda.exchange.words import FULL_BIT, HEADER_WORDS, packet_words
from burstproof.engine.cuda.kernels.control import HALTED, LIMIT, ORIGIN
from burstproof.engine.sharded.partition import Partition
from burstproof.engine.state import Recording

if TYPE_CHECKING:
    from burstproof.device.simulator import SimulatorRuntime

CHUNK = 32


class Prefilled:
    """The shards of a partition with what a recording says of them.

    Attributes
    ----------
    packets : int
        Packets put into mailboxes so far.
    logs : sequence of int
        Firings that the log of each shard holds; without them, none is ever full.
    silent : mapping
        The burst from which on a shard gets nothing of another: by number of the one, and of the other.
    """

    def __init__(self, expected: Recording, partition: Partition) -> None:
        starts = np.concatenate([[0], np.cumsum(expected.fired_counts)])
        self._fired = {
            int(number): expected.fired_ids[starts[place] : starts[place + 1]]
            for place, number in enumerate(expected.bursts)
        }
        self._members = [partition.members(shard) for shard in range(partition.shards)]
        self.packets = 0
        self.logs: Sequence[int] = ()
        self.silent: Mapping[tuple[int, int], int] = {}

    @contextmanager
    def patched(self, resident: int = 1) -> Iterator[None]:
        """Let shards share the simulated device although each burst is one kernel.

        ``resident`` blocks are said to be on the device at once: a third of it is how far packets are taken behind.
        """
        from burstproof.device.simulator import SimulatorRuntime

        launch = SimulatorRuntime.launch

        def launched(
            runtime: SimulatorRuntime, kernel: Any, grid: int, block: int, stream: Any, values: Any, *rest: Any
        ) -> None:
            names = list(inspect.signature(kernel.fn).parameters)
            if kernel.fn.__name__ == "burst":
                self._put(dict(zip(names, values, strict=True)))
            launch(runtime, kernel, grid, block, stream, values, *rest)

        shape = "burstproof.engine.cuda.host.shard_forms.merged_shape"
        apart = "burstproof.engine.cuda.host.many_devices.have_devices_of_their_own"
        blocks = "burstproof.engine.cuda.host.launches.Kernels.resident"
        with ExitStack() as patches:
            patches.enter_context(mock.patch(shape, return_value=(CHUNK, 1)))
            patches.enter_context(mock.patch(apart, return_value=True))
            patches.enter_context(mock.patch(blocks, return_value=resident))
            patches.enter_context(mock.patch.object(SimulatorRuntime, "launch", launched))
            yield

    def _put(self, given: dict[str, Any]) -> None:
        """The packets of the shards that the kernel is not of."""
        steering, exchange, place = given["steering"], given["exchange"], int(given["turn"].place)
        report = steering.report.copy_to_host()
        burst, sequence = (int(word) + place + 1 for word in report.view(np.uint32)[2 * ORIGIN : 2 * ORIGIN + 2])
        halted = int(steering.control[HALTED])
        if place >= int(report[LIMIT]) or 0 < halted <= burst:
            return
        side = (sequence & 1) * int(exchange.words)
        own = int(exchange.own)
        for sender in range(len(self._members)):
            if sender == own or burst >= self.silent.get((own, sender), burst + 1):
                continue
            box = exchange.inboxes[sender]
            box[side] = (sequence << 32) | (FULL_BIT if self._is_full(sender, burst, place) else 0)
            for chunk in range(int(exchange.chunks)):
                at = side + HEADER_WORDS + chunk * packet_words(CHUNK)
                self._fill(box, at, sequence, self._fired_in(sender, burst, chunk))

    def _is_full(self, sender: int, burst: int, place: int) -> bool:
        """Whether two bursts in which all fire might not fit behind what the batch has logged before ``burst``."""
        if not len(self.logs):
            return False
        members = self._members[sender]
        logged = sum(int(np.isin(members, self._fired[burst - before]).sum()) for before in range(1, place + 1))
        return logged + 2 * len(members) > self.logs[sender]

    def _fired_in(self, sender: int, burst: int, chunk: int) -> list[int]:
        """What fired in a chunk, in another order than that of the ids."""
        members = self._members[sender][chunk * CHUNK : (chunk + 1) * CHUNK]
        return [int(one) for one in members[np.isin(members, self._fired[burst])][::-1]]

    def _fill(self, box: Any, at: int, sequence: int, ids: Sequence[int]) -> None:
        for entry, value in enumerate([len(ids), *ids]):
            box[at + entry] = (sequence << 32) | value
        self.packets += 1
