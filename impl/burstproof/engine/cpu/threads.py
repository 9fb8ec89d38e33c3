"""The threads of the CPU engine: how many there are, and how they are started and stopped.

Each thread owns a range of neurons (``regions.py``) and stays in compiled code for whole batches (``share.py``).
The calling thread leads. The others are helpers: Python threads that have released the interpreter's lock. A helper
polls for the next batch about as long as a busy caller takes between two batches, and then ends.

Between batches a helper reads its state on the board, and nothing else. So the leader can send helpers away without a
wait, and without a lock that an interrupt could leave taken; the next helpers get another board.
"""

from __future__ import annotations

import os
from _thread import start_new_thread
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.engine.buffers import Planned, PlannedBuffer
from burstproof.engine.cores import usable_cores
from burstproof.engine.costs import MOST_THREADS, USUAL_RATE, cpu_threads
from burstproof.engine.cpu.arrays import Output, Rows, Static, StimulusTable, fill, fits, room_for
from burstproof.engine.cpu.growing import make_memory
from burstproof.engine.cpu.held import Held
from burstproof.engine.cpu.key import CLAMPED, HISTORY
from burstproof.engine.cpu.lines import LINE, lines
from burstproof.engine.cpu.memory import CpuMemory
from burstproof.engine.cpu.palette import NO_PALETTE, Palette, palette_of
from burstproof.engine.cpu.queues import Queues, bin_type, make_queues, pack_rows
from burstproof.engine.cpu.regions import balanced_bounds
from burstproof.engine.cpu.share import FIRED, HELPERS, IDLE, LEAVE, LEFT, NOT_STARTED, Shared
from burstproof.engine.fixed_point import plan_fixed_point
from burstproof.engine.options import EngineOptions
from burstproof.errors import InputError
from burstproof.network.model import Network


def check_threads(threads: int, cores: int) -> None:
    """Refuse more threads than are useful: they synchronise in every burst, and most would wait for a core.

    Raises
    ------
    InputError
        More than ``MOST_THREADS`` and more than four to a core.
    """
    most = max(MOST_THREADS, 4 * cores)
    if threads > most:
        raise InputError(
            f"too many threads for {cores} cores",
            where="threads",
            got=threads,
            allowed=f"0...{most}, 0: by size",
            cure="Ask for fewer",
        )


def thread_count(options: EngineOptions, neurons: int, synapses: int, cores: int) -> int:
    """Threads for a network on a machine with ``cores`` cores.

    ``options.cpu.threads`` if it is not 0, else as many as a burst at a 1 % firing rate keeps busy.
    """
    if options.cpu.threads > 0:
        check_threads(options.cpu.threads, cores)
        return min(options.cpu.threads, max(neurons, 1))
    return cpu_threads(neurons, USUAL_RATE * synapses, cores)


def planned(network: Network, options: EngineOptions) -> Planned:
    """Arrays of an engine over ``network`` at its start, all in host memory; a broadcast column counts as one entry."""
    threads = thread_count(options, network.neuron_count, network.synapse_count, usable_cores())
    memory, _ = make_memory(network, options, plan_fixed_point(network, options), threads)
    buffers = []
    for name, array in memory.arrays().items():
        size = array.nbytes if any(array.strides) else array.itemsize
        buffers.append(PlannedBuffer(name, array.size, array.dtype.name, size, "host"))
    if needs_team(threads, memory):
        for name, (count, dtype) in team_sizes(threads, memory).items():
            buffers.append(PlannedBuffer(name, count, dtype.name, count * dtype.itemsize, "host"))
    return Planned(tuple(buffer for buffer in buffers if buffer.count))


def needs_team(threads: int, memory: CpuMemory) -> bool:
    """Whether the engine has several threads, or queues."""
    return threads > 1 or memory.needs_queues


def team_sizes(threads: int, memory: CpuMemory) -> dict[str, tuple[int, np.dtype[Any]]]:
    """Length and type of each array that a ``Team`` adds to ``memory``, without those of a few cache lines."""
    synapses, neurons = len(memory.static.targets), memory.layout.neuron_count
    sizes = {
        "shared.fired": (2 * neurons, np.dtype(np.uint32)),
        "shared.potentials": (2 * neurons, np.dtype(np.float32)),
    }
    if memory.recall is not None:
        return sizes
    queues, _ = _queues_of(threads, memory)
    columns = ("words", "palette", "ends", "sums")
    sizes |= {f"queues.{name}": (getattr(queues, name).size, getattr(queues, name).dtype) for name in columns}
    return sizes | {
        "rows.words": (synapses, queues.words.dtype),
        "rows.bins": (synapses, bin_type(queues, not memory.general)),
    }


def _queues_of(threads: int, memory: CpuMemory) -> tuple[Queues, Palette]:
    """Empty queues of ``threads`` threads for ``memory``, and the palette of their words."""
    static, slots = memory.static, memory.layout.max_delay
    bounds = balanced_bounds(static.targets, memory.layout.neuron_count, threads)
    synapses = len(static.targets) + len(memory.computed.targets)
    widest = np.dtype(np.int64) if memory.computes else static.contributions.dtype
    may_number = static.contributions.dtype.itemsize > 2 and not (memory.general or memory.computes)
    palette = palette_of(static.contributions) if may_number else NO_PALETTE
    return make_queues(bounds, synapses, widest, memory.ring.dtype, slots, palette), palette


class Team:
    """Threads that share the bursts of one engine."""

    def __init__(self, threads: int, memory: CpuMemory) -> None:
        self._threads, self._process = threads, os.getpid()
        self._output = np.empty(0, np.uint32)
        self._memory, self._board = memory, _empty_board(threads)
        self._bind()

    def _bind(self) -> None:
        """Take over the arrays and kernels of the memory."""
        memory, threads, count = self._memory, self._threads, self._memory.layout.neuron_count
        self._queues: Queues | None = None
        self._rows: Rows | Static = memory.static
        if memory.recall is not None:
            bounds = memory.recall.bounds
        else:
            self._queues, palette = _queues_of(threads, memory)
            with ThreadPoolExecutor(threads) as pool:
                self._rows = pack_rows(memory.static, self._queues, pool, palette, not memory.general)
            bounds = self._queues.bounds
        self._shared = Shared(
            board=self._board,
            bounds=bounds,
            queues=self._queues or (),
            fired=np.empty((2, count), np.uint32),
            potentials=np.empty((2, count), np.float32),
            tally=lines(2, threads, LINE),
            counters=lines(threads, LINE),
        )
        self._bound_static = memory.static
        self._take_kernels(room_for(None, memory.ring.dtype))

    def _take_kernels(self, plan: StimulusTable) -> None:
        self._kernel = self._memory.kernels.run_thread
        self._model = self._memory.model(plan)._replace(static=self._rows)
        self._hold()

    def _hold(self) -> None:
        """Send the helpers away, and hold shared data and model in the kernel's form, with a board for others."""
        self._dismiss()
        self._board = _empty_board(self._threads)
        self._held = Held((self._shared._replace(board=self._board), self._model))

    def flush_queues(self) -> None:
        """Move the contents of all queues into the ring, where the memory's ``state`` reads them."""
        if self._queues is not None and self._memory.recall is None:
            self._memory.kernels.flush_queues(self._queues, self._memory.ring, self._memory.scalars)

    def _follow(self, plan: StimulusTable) -> None:
        """Take over changes of the memory since the last batch, and the stimulus of the next one."""
        memory, model = self._memory, self._model
        if memory.static is not self._bound_static:
            self._bind()
        elif (
            memory.kernels.run_thread is not self._kernel
            or memory.computed is not model.computed
            or memory.plastic is not model.plastic
        ):
            self._take_kernels(model.plan)
        if not fits(plan, self._model.plan):
            self._take_kernels(room_for(plan, memory.ring.dtype))
        fill(self._model.plan, plan)

    def advance(self, number: int, bursts: int, plan: StimulusTable, out: Output) -> int:
        """Run up to ``bursts`` bursts from ``number`` on; fills ``out`` and returns their number."""
        if os.getpid() != self._process:
            cure = "Open an engine in the process that runs it, or take threads=1"
            raise InputError("the threads of the engine stayed in the process that it was forked from", cure=cure)
        self._follow(plan)
        memory, counters = self._memory, self._shared.counters
        counters[:, : len(memory.counters)] = memory.counters
        if memory.needs_last:
            self._load_fired(number - 1)
        if out.ids is not self._output:
            self._hold()
            self._output = out.ids
        done = self._kernel(self._held, 0, number, bursts, out)
        while done == NOT_STARTED:
            self._wake(out)
            done = self._kernel(self._held, 0, number, bursts, out)
        memory.counters[CLAMPED] = counters[:, CLAMPED].any()
        memory.counters[HISTORY] = counters[0, HISTORY]
        return int(done)

    def _load_fired(self, number: int) -> None:
        """Distribute the memory's fired list, of burst ``number``, over the ranges of the threads."""
        ids, _ = self._memory.fired
        bounds, slot = self._shared.bounds, number & 1
        cuts = np.searchsorted(ids, bounds)
        self._shared.tally[slot, :, FIRED] = np.diff(cuts)
        for first, start, end in zip(bounds, cuts, cuts[1:], strict=False):
            self._shared.fired[slot, first : first + end - start] = ids[start:end]

    def _state(self, thread: int) -> int:
        return HELPERS + thread * LINE

    def _wake(self, out: Output) -> None:
        """Start every helper that has left."""
        for thread in range(1, self._threads):
            if self._board[self._state(thread)] == LEFT:
                self._board[self._state(thread)] = IDLE
                start_new_thread(self._kernel, (self._held, thread, 0, 0, out))

    def _dismiss(self) -> None:
        """Tell all helpers to leave compiled code; others then need another board."""
        self._board[HELPERS:] = LEAVE

    def close(self) -> None:
        """End the threads."""
        self._dismiss()


def _empty_board(threads: int) -> npt.NDArray[np.int64]:
    """The board of ``threads`` threads before any helper has started."""
    board = lines(HELPERS + threads * LINE)
    board[HELPERS:] = LEFT
    return board
