"""The kernels of one burst in their order, with grids, blocks and arguments fixed once.

A launch names a kernel. Its arguments follow from the kernel's annotations (``engine.cuda.args``) and from what a
batch's ``Values`` hold under the fields' names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from burstproof.device.protocol import DeviceBuffer, DeviceRuntime, DeviceStream
from burstproof.engine.cuda.args import Field, bind, made, parameters_of
from burstproof.engine.cuda.plan.buffers import slot_stride
from burstproof.engine.cuda.plan.packed import Packed
from burstproof.engine.cuda.plan.shard_variant import ShardVariant
from burstproof.engine.cuda.plan.variant import Variant

if TYPE_CHECKING:
    from burstproof.engine.cuda.kernels.catalogue import KernelSpec

_THREADS_PER_MULTIPROCESSOR = 2048
_BLOCK_OF_TILES = 256
WARP = 32


@dataclass(frozen=True, eq=False)
class Call:
    """A kernel with everything that a launch of it needs; ``last`` is the type of a tuple that ``at`` adds."""

    runtime: DeviceRuntime
    kernel: Any
    grid: int
    block: int
    arguments: list[Any]
    overlapped: bool = False
    last: type | None = None

    def at(self, *numbers: int) -> Call:
        """The same with these numbers in its last argument."""
        assert self.last is not None
        return replace(self, arguments=[*self.arguments, *self.runtime.pack((made(self.last, *numbers),))])

    def queue(self, stream: DeviceStream) -> None:
        """Launch the kernel."""
        self.runtime.launch(self.kernel, self.grid, self.block, stream, self.arguments, self.overlapped)


def numbers_of(packed: Packed) -> dict[str, Any]:
    """The numbers of a packed network by the names of the fields that hold them."""
    layout, point, sizes, variant = packed.layout, packed.fixed_point, packed.sizes, packed.variant
    columns = {name: getattr(layout.neurons, name) for name in variant.uniform}
    return {
        **{name: column[0] if len(column) else 0 for name, column in columns.items()},
        "capacity": packed.train.log,
        "neurons": sizes.neurons,
        "stride": slot_stride(sizes.neurons, variant),
        "ring": sizes.ring,
        "unit": point.unit,
        "scale": point.scale,
        "clamp": point.clamp,
        "clamp_float": point.clamp_float,
        "power_neuron": layout.power_neuron,
        "power_amount": layout.power_amount,
        "longest": packed.longest_window,
        "rules": sizes.rules,
    }


class Values:
    """What arguments are taken from, by name: what is ``given``, else the buffers of a batch or of the engine."""

    def __init__(
        self, runtime: DeviceRuntime, buffers: Mapping[str, DeviceBuffer], number: int, given: Mapping[str, Any]
    ) -> None:
        self._runtime = runtime
        self._buffers = buffers
        self._number = number
        self._given = dict(given)

    def but(self, **given: Any) -> Values:
        """The same with other values."""
        return Values(self._runtime, self._buffers, self._number, {**self._given, **given})

    def __call__(self, name: str, field: Field) -> Any:
        """What ``field``, called ``name``, is given: a buffer of another dtype as words."""
        found = self._given[name] if name in self._given else self._buffer(name)
        if not field.array:
            return field.dtype.type(found)
        if not isinstance(found, DeviceBuffer):
            return found
        return (found if found.spec.dtype == field.dtype else self._runtime.words(found)).view

    def _buffer(self, name: str) -> DeviceBuffer:
        own = self._buffers.get(f"{name}.{self._number}")
        return own if own is not None else self._buffers["sums" if name == "cells" else name]


class Kernels:
    """Compiled kernels by name, which make calls."""

    def __init__(
        self,
        runtime: DeviceRuntime,
        variant: Variant | ShardVariant | None,
        specs: Sequence[KernelSpec],
        compiled: Mapping[str, Any] | None = None,
    ) -> None:
        self.runtime = runtime
        self._variant = variant
        self._functions = {spec.name: spec.function for spec in specs}
        self._compiled = compiled or {spec.name: runtime.kernel(spec.function, spec.signature) for spec in specs}

    def __contains__(self, name: str) -> bool:
        return name in self._functions

    def call(self, name: str, grid: int, block: int, values: Values, overlapped: bool = False) -> Call:
        """A launch of the kernel called ``name``."""
        function = self._functions[name]
        last = list(parameters_of(function, self._variant).values())[-1]
        arguments = self.runtime.pack(bind(function, self._variant, values))
        last = None if isinstance(last, Field) else last
        return Call(self.runtime, self._compiled[name], grid, block, arguments, overlapped, last)

    def full_grid(self, block: int) -> int:
        """Blocks that the device holds at once."""
        return self.runtime.multiprocessors * max(1, _THREADS_PER_MULTIPROCESSOR // block)

    def spread(self, name: str, threads: int, block: int, values: Values, waves: int = 1) -> Call:
        """A launch of ``threads`` threads, at most ``waves`` times what the device holds at once."""
        grid = max(1, min(-(-threads // block), waves * self.full_grid(block)))
        return self.call(name, grid, block, values)

    def tiles(self, values: Values, variant: Variant, neurons: int) -> tuple[Call, ...]:
        """What sends the rows of a list tile by tile."""
        if not variant.tiles:
            return ()
        block = _BLOCK_OF_TILES
        grid = self.full_grid(block)
        ends = ((tile + 1) * neurons // variant.tiles for tile in range(variant.tiles))
        sent = (self.call("send_tile", grid, block, values.but(tile_end=end)) for end in ends)
        return (self.call("open_rows", grid, block, values), *sent)

    def sort_rows(self, values: Values, stream: DeviceStream) -> None:
        """Put every row into the order that tiles need; does nothing without tiles."""
        if "sort_rows" not in self:
            return
        from burstproof.engine.cuda.kernels.tiles import SORT_THREADS

        self.call("sort_rows", self.full_grid(SORT_THREADS), SORT_THREADS, values).queue(stream)
        stream.synchronize()


class BurstLaunches:
    """Queues one burst of one train set; a stimulated burst has two kernels more."""

    def __init__(self, runtime: DeviceRuntime, packed: Packed, block: int) -> None:
        self._packed = packed
        self._block = block
        self._kernels = Kernels(runtime, packed.variant, self._specs())

    def _specs(self) -> tuple[KernelSpec, ...]:
        """The kernels to compile."""
        from burstproof.engine.cuda.kernels.catalogue import catalogue

        return catalogue(self._packed.variant)

    def calls(self, buffers: Mapping[str, DeviceBuffer], number: int) -> TrainCalls:
        """The calls of train set ``number`` over ``buffers``."""
        values = Values(self._kernels.runtime, buffers, number, numbers_of(self._packed))
        variant, sizes, stimulus = self._packed.variant, self._packed.sizes, self._packed.train.stimulus
        advance = self._kernels.call("advance", 1, 1, values)
        before = (self._spread("inject", stimulus, values),)
        middle = [self._spread("dynamics", sizes.neurons, values, waves=4)]
        if variant.count_ahead:
            middle.insert(0, self._spread("count_ahead", sizes.neurons, values, waves=4))
        propagation = [self._propagate(values)]
        if variant.computed:
            propagation.append(self._spread("propagate_computed", WARP * sizes.neurons, values))
        learning = [self._spread("learn", sizes.plastic_entries, values)] if variant.plastic else []
        after = [*learning, *propagation] if variant.plastic_all_window else [*propagation, *learning]
        force = self._spread("force", stimulus, values)
        return TrainCalls(
            advance, plain=(advance, *middle, *after), stimulated=(advance, *before, *middle, force, *after)
        )

    def _spread(self, name: str, threads: int, values: Values, waves: int = 1) -> Call:
        return self._kernels.spread(name, threads, self._block, values, waves)

    def _propagate(self, values: Values) -> Call:
        return self._spread("propagate", WARP * self._packed.sizes.neurons, values)


@dataclass(frozen=True, eq=False)
class TrainCalls:
    """The calls of one burst of one train set; ``advance`` also follows the last burst of a train."""

    advance: Call
    plain: tuple[Call, ...]
    stimulated: tuple[Call, ...]

    def queue(self, bursts: int, stimulated: bool, stream: DeviceStream) -> None:
        """Queue ``bursts`` bursts; allocates and synchronises nothing, so it can be captured."""
        for _ in range(bursts):
            for call in self.stimulated if stimulated else self.plain:
                call.queue(stream)
        self.advance.queue(stream)
