"""A burst of the numba CPU engine spread over threads.

Each thread takes a range of neurons for the dynamics and a range of targets for the propagation, so that no two write
to one place and the result cannot depend on their order. Plain Python threads do it: the kernels run outside the
interpreter's lock, and no threading layer spins while it waits.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt

from burstproof.burst.cpu_arrays import Plan
from burstproof.burst.cpu_disk import keep_on_disk
from burstproof.burst.cpu_kernels import CLAMPED, compiler
from burstproof.burst.cpu_memory import CpuMemory
from burstproof.burst.cpu_synapses import make_partition_rows

_partition_rows = make_partition_rows(compiler)
keep_on_disk(_partition_rows, "partition_rows")


class Team:
    """Threads that share the bursts of one engine."""

    def __init__(self, threads: int, memory: CpuMemory) -> None:
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="burstproof")
        count = memory.layout.neuron_count
        self._width = max(1, -(-count // threads))
        self._ids = np.empty(count, np.uint32)
        self._potentials = np.empty(count, np.float32)
        self._ranges = [(min(t * self._width, count), min((t + 1) * self._width, count)) for t in range(threads)]
        self.partition(memory)

    def partition(self, memory: CpuMemory) -> None:
        """Group the synapses of each row by target range; needed again when the rows of ``memory`` are new."""
        static = memory.static
        self._splits = np.zeros((memory.layout.neuron_count, self._threads + 1), np.uint32)
        moved = static._replace(
            targets=np.empty_like(static.targets),
            contributions=np.empty_like(static.contributions),
            delays=np.empty_like(static.delays),
        )
        _partition_rows(self._width, static, moved, self._splits)
        for column in (moved.targets, moved.contributions, moved.delays):
            column.flags.writeable = False
        memory.static = moved

    def burst(
        self,
        number: int,
        memory: CpuMemory,
        plan: Plan,
        ids: npt.NDArray[np.uint32],
        potentials: npt.NDArray[np.float32],
        ends: npt.NDArray[np.int64],
        candidates: npt.NDArray[np.int64],
    ) -> None:
        """Run burst ``number``, the first of ``plan``; fills the outputs as ``train`` does for one burst."""
        kernels, s = memory.kernels, memory.scalars
        kernels.begin(number, 0, memory.ring, plan, memory.parameters, memory.neurons, memory.fired[0], s)
        count, candidates[0] = self._dynamics(number, memory, ids, potentials)
        forced = plan.forced[: plan.forced_starts[1]]
        count = kernels.finish(number, count, ids, potentials, forced, memory.neurons, s.longest_window)
        ends[0] = count
        if memory.learns_before_sending:
            self._learn(number, memory)
        self._propagate(number, memory, ids[:count], potentials[:count])
        if memory.learns_after_sending:
            self._learn(number, memory)

    def _dynamics(
        self,
        number: int,
        memory: CpuMemory,
        ids: npt.NDArray[np.uint32],
        potentials: npt.NDArray[np.float32],
    ) -> tuple[int, int]:
        """Dynamics of all ranges; returns how many fired and were candidates."""
        s = memory.scalars
        base = (number % s.slots) * s.neurons
        sums = memory.ring.sums[base : base + s.neurons]
        flags = memory.ring.flags[base : base + s.neurons]
        batch = memory.kernels.is_batch(sums, flags, s.emulate_batch)
        jobs = [
            self._pool.submit(
                memory.kernels.dense,
                lo,
                hi,
                number,
                batch,
                sums,
                flags,
                memory.parameters,
                memory.neurons,
                s.unit,
                self._ids[lo:hi],
                self._potentials[lo:hi],
            )
            for lo, hi in self._ranges
        ]
        fired = touched = 0
        for (lo, _), job in zip(self._ranges, jobs, strict=True):
            count, candidates = job.result()
            ids[fired : fired + count] = self._ids[lo : lo + count]
            potentials[fired : fired + count] = self._potentials[lo : lo + count]
            fired += count
            touched += candidates
        return fired, touched

    def _propagate(
        self, number: int, memory: CpuMemory, ids: npt.NDArray[np.uint32], potentials: npt.NDArray[np.float32]
    ) -> None:
        counters = np.zeros((self._threads, 2), np.int64)
        jobs = [
            self._pool.submit(
                memory.kernels.propagate_range,
                number,
                part,
                self._width,
                self._splits,
                ids,
                potentials,
                memory.ring,
                memory.static,
                memory.computed,
                memory.scalars,
                counters[part],
            )
            for part in range(self._threads)
        ]
        for job in jobs:
            job.result()
        if counters[:, CLAMPED].any():
            memory.set_clamped()

    @staticmethod
    def _learn(number: int, memory: CpuMemory) -> None:
        memory.kernels.learn(number, memory.plastic, memory.computed, memory.neurons, memory.scalars, memory.counters)

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown()
