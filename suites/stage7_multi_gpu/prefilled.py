"""Packets of the other shards, put into a mailbox before a simulated kernel looks for them.

The simulator runs one kernel after another, while the kernels of a burst in one piece wait for each other. What the
others would have sent is known from the reference's recording.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import numpy as np

from burstproof.burst.cuda.control import LIMIT, ORIGIN
from burstproof.burst.engine import Recording
from burstproof.kernels.device_simulator import SimulatorRuntime
from burstproof.sharding.link_words import HEADER_WORDS, packet_words

CHUNK = 32


class Prefilled:
    """Two shards by round robin with what a recording says of them.

    Attributes
    ----------
    packets : int
        Packets put into mailboxes so far.
    """

    def __init__(self, expected: Recording) -> None:
        starts = np.concatenate([[0], np.cumsum(expected.fired_counts)])
        self._fired = {
            int(number): expected.fired_ids[starts[place] : starts[place + 1]]
            for place, number in enumerate(expected.bursts)
        }
        self.packets = 0

    @contextmanager
    def patched(self) -> Iterator[None]:
        """Let shards share the simulated device although each burst is one kernel."""
        launch = SimulatorRuntime.launch

        def launched(
            runtime: SimulatorRuntime, kernel: Any, grid: int, block: int, stream: Any, values: Any, *rest: Any
        ) -> None:
            names = list(inspect.signature(kernel.fn).parameters)
            if names[-1] == "place":
                self._put(dict(zip(names, values, strict=True)))
            launch(runtime, kernel, grid, block, stream, values, *rest)

        shape = "burstproof.sharding.cuda_resident.merged_shape"
        apart = "burstproof.sharding.cuda_resident.have_devices_of_their_own"
        with ExitStack() as patches:
            patches.enter_context(mock.patch(shape, return_value=(CHUNK, 1)))
            patches.enter_context(mock.patch(apart, return_value=True))
            patches.enter_context(mock.patch.object(SimulatorRuntime, "launch", launched))
            yield

    def _put(self, given: dict[str, Any]) -> None:
        """The packets of the shard that the kernel is not of."""
        report, place = given["report"].array, int(given["place"])
        if place >= int(report[LIMIT]):
            return
        burst, sequence = (int(word) + place + 1 for word in report.view(np.uint32)[2 * ORIGIN : 2 * ORIGIN + 2])
        sender = 1 - int(given["own"])
        side = (sequence & 1) * int(given["words"])
        ids = self._fired[burst]
        ids = ids[ids % 2 == sender]
        box = given["inboxes"][sender]
        box[side] = sequence << 32
        for chunk in range(int(given["chunks"])):
            at = side + HEADER_WORDS + chunk * packet_words(CHUNK)
            self._fill(box, at, sequence, ids[ids // 2 // CHUNK == chunk])

    def _fill(self, box: Any, at: int, sequence: int, ids: Sequence[int]) -> None:
        for entry, value in enumerate([len(ids), *ids]):
            box[at + entry] = (sequence << 32) | int(value)
        self.packets += 1
