"""The kernels of one burst in their order, with grids, blocks and arguments fixed once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from burstproof.device.protocol import DeviceBuffer, DeviceRuntime, DeviceStream
from burstproof.engine.cuda.kernels.order import PARAMETERS
from burstproof.engine.cuda.plan.packed import Packed

if TYPE_CHECKING:
    from burstproof.engine.cuda.kernels.catalogue import KernelSpec

_THREADS_PER_MULTIPROCESSOR = 2048
_WARP = 32


@dataclass(frozen=True, eq=False)
class Call:
    """A kernel with everything that a launch of it needs."""

    kernel: Any
    grid: int
    block: int
    arguments: tuple[Any, ...]
    overlapped: bool = False

    def at(self, *last: int) -> Call:
        """The same with these as last arguments."""
        return replace(self, arguments=(*self.arguments, *map(np.uint32, last)))


class BurstLaunches:
    """Queues one burst of one train set; a stimulated burst has two kernels more."""

    def __init__(self, runtime: DeviceRuntime, packed: Packed, block: int) -> None:
        self._runtime = runtime
        self._variant = packed.variant
        self._layout = packed.layout
        self._sizes = packed.sizes
        self._train = packed.train
        self._fixed_point = packed.fixed_point
        self._block = block
        self._longest = packed.longest_window
        self._kernels = {s.name: runtime.kernel(s.function, s.signature) for s in self._specs()}

    def _specs(self) -> tuple[KernelSpec, ...]:
        """The kernels to compile."""
        from burstproof.engine.cuda.kernels.catalogue import catalogue

        return catalogue(self._variant)

    def calls(self, buffers: Mapping[str, DeviceBuffer], number: int) -> TrainCalls:
        """The calls of train set ``number`` over ``buffers``."""
        own = SetView(buffers, number)
        variant = self._variant
        before = [self._inject(own)]
        middle = [self._count_ahead(own)] if variant.count_ahead else []
        middle.append(self._dynamics(own))
        propagation = [self._propagate(own)]
        if variant.computed:
            propagation.append(self._propagate_computed(own))
        learning = [self._learn(own)] if variant.plastic else []
        after = [*learning, *propagation] if variant.plastic_all_window else [*propagation, *learning]
        advance = self._advance(own)
        return TrainCalls(
            self._runtime,
            advance,
            plain=(advance, *middle, *after),
            stimulated=(advance, *before, *middle, self._force(own), *after),
        )

    def _full_grid(self) -> int:
        return self._runtime.multiprocessors * max(1, _THREADS_PER_MULTIPROCESSOR // self._block)

    def _grid(self, threads: int, waves: int = 1) -> int:
        """Blocks for ``threads`` threads, at most ``waves`` times what the device holds at once."""
        return max(1, min(-(-threads // self._block), waves * self._full_grid()))

    def _call(self, name: str, threads: int, arguments: tuple[Any, ...], waves: int = 1) -> Call:
        return Call(self._kernels[name], self._grid(threads, waves), self._block, arguments)

    def _advance(self, own: SetView) -> Call:
        history = np.int64(self._longest - 1)
        counts = (np.int64(self._sizes.ring), np.int64(self._sizes.neurons), np.int64(self._train.log))
        arguments = (own["control"], own.set("report"), *counts, history)
        return Call(self._kernels["advance"], 1, 1, arguments)

    def _inject(self, own: SetView) -> Call:
        table = tuple(own.set(f"stimulus_{part}") for part in ("offsets", "ids", "amounts"))
        arguments = (own["control"], own.set("report"), *table, own["sums"], own["flags"], self._neurons)
        return self._call("inject", self._train.stimulus, arguments)

    def _count_ahead(self, own: SetView) -> Call:
        power = np.int64(self._layout.power_neuron)
        arguments = (own["control"], own["sums"], own["flags"], power, self._neurons)
        return self._call("count_ahead", self._sizes.neurons, arguments, waves=4)

    def _dynamics(self, own: SetView) -> Call:
        state = ("sums", "flags", "potentials", "countdowns", "counts", "marks", "accumulates")
        arguments = (
            own["control"],
            own.set("report"),
            *own.forced(),
            own.set("log_ids"),
            own.set("log_potentials"),
            *(own[name] for name in (*state, *PARAMETERS, "last_fired", "streaks")),
            np.int32(self._longest),
            self._fixed_point.unit,
            np.int64(self._layout.power_neuron),
            self._variant.accumulator(self._layout.power_amount),
            self._neurons,
        )
        return self._call("dynamics", self._sizes.neurons, arguments, waves=4)

    def _force(self, own: SetView) -> Call:
        state = (own[name] for name in ("marks", "accumulates", "last_fired", "streaks"))
        log = (own.set("log_ids"), own.set("log_potentials"))
        arguments = (own["control"], own.set("report"), *own.forced(), *log, *state, np.int32(self._longest))
        return self._call("force", self._train.stimulus, arguments)

    def _propagate(self, own: SetView) -> Call:
        rows = ("offsets", "targets", "contributions", "delays", "clamped_sources", "sums", "flags")
        arguments = (own["control"], own.set("log_ids"), *(own[name] for name in rows), *self._ring)
        return self._call("propagate", _WARP * self._sizes.neurons, arguments)

    def _propagate_computed(self, own: SetView) -> Call:
        rows = ("computed_offsets", "computed_targets", "weights", "psps", "signs", "computed_delays")
        names = (*rows, "mp_driven", "divisors", "sums", "flags")
        point = self._fixed_point
        scalars = (np.float64(point.scale), np.int64(point.clamp), np.float64(point.clamp_float))
        log = (own.set("log_ids"), own.set("log_potentials"))
        arguments = (own["control"], *log, *(own[name] for name in names), *scalars, *self._ring)
        return self._call("propagate_computed", _WARP * self._sizes.neurons, arguments)

    def _learn(self, own: SetView) -> Call:
        rules = ("rule_starts", "rule_windows", "potentiations", "depressions")
        entries = ("plastic_positions", "plastic_sources", "plastic_targets")
        names = ("control", *rules, *entries, "last_fired", "streaks", "weights", "eligibility")
        arguments = (*(own[name] for name in names), np.int64(self._sizes.rules))
        return self._call("learn", self._sizes.plastic_entries, arguments)

    @property
    def _neurons(self) -> np.uint32:
        return np.uint32(self._sizes.neurons)

    @property
    def _ring(self) -> tuple[np.uint32, np.uint32]:
        return self._neurons, np.uint32(self._sizes.ring)


class SetView:
    """Buffers by name, those of one train set by their name without its number."""

    def __init__(self, buffers: Mapping[str, DeviceBuffer], number: int) -> None:
        self._buffers = buffers
        self._number = number

    def __getitem__(self, name: str) -> DeviceBuffer:
        return self._buffers[name]

    def set(self, name: str) -> DeviceBuffer:
        """The set's own buffer called ``name``."""
        return self._buffers[f"{name}.{self._number}"]

    def forced(self) -> tuple[DeviceBuffer, ...]:
        """The set's table of forced firings."""
        return tuple(self.set(f"forced_{part}") for part in ("offsets", "ids", "hits"))


@dataclass(frozen=True, eq=False)
class TrainCalls:
    """The calls of one burst of one train set; ``advance`` also follows the last burst of a train."""

    runtime: DeviceRuntime
    advance: Call
    plain: tuple[Call, ...]
    stimulated: tuple[Call, ...]

    def queue(self, bursts: int, stimulated: bool, stream: DeviceStream) -> None:
        """Queue ``bursts`` bursts; allocates and synchronises nothing, so it can be captured."""
        for _ in range(bursts):
            for call in self.stimulated if stimulated else self.plain:
                self._launch(call, stream)
        self._launch(self.advance, stream)

    def _launch(self, call: Call, stream: DeviceStream) -> None:
        self.runtime.launch(call.kernel, call.grid, call.block, stream, call.arguments)
