"""What a submission of several bursts consists of: its stimulus table, the uniforms of its bursts, its commands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from burstproof.engine.layout import Layout
from burstproof.engine.packing import PackedStimulus
from burstproof.engine.wgpu.device import UNIFORM_STRIDE, Device
from burstproof.engine.wgpu.packed import lower_and_upper
from burstproof.engine.wgpu.shaders import WORKGROUP, Variant
from burstproof.network.fixed_point import FixedPoint

if TYPE_CHECKING:
    from wgpu import GPUBindGroup, GPUComputePipeline

Words = npt.NDArray[np.uint32]

_MOST_GROUPS = 65535
_ROW_GROUPS = 1024
_WORD = 0xFFFFFFFF


@dataclass(frozen=True)
class Place:
    """Where a burst finds its stimulus: words of the table, and how many entries from there on."""

    first: int = 0
    amounts: int = 0
    first_forced: int = 0
    forced: int = 0

    @property
    def entries(self) -> int:
        """Entries that are put in place side by side."""
        return max(self.amounts, self.forced)


@dataclass(frozen=True)
class Classes:
    """Where a batch has the words of C area classes and of D drivers: in its table the ``constants``, the ``lists`` of
    modulators, and C ``flags`` for each burst; in its own words the ``drivers``."""

    constants: int = 0
    lists: int = 0
    flags: int = 0
    count: int = 0
    drivers: int = 0
    driver_count: int = 0


def entry_words(cells: npt.NDArray[Any], sums: npt.NDArray[Any]) -> Words:
    """(3 A,) uint32: each of A cells with the two words of what is added to it."""
    low, high = lower_and_upper(sums)
    return np.stack([cells.astype(np.uint32), low, high], axis=1).ravel()


def stimulus_table(stimuli: Sequence[PackedStimulus]) -> tuple[Words, list[Place]]:
    """The stimulus of a batch as one table, and where each burst finds its own."""
    pieces: list[Words] = [np.empty(0, np.uint32)]
    places: list[Place] = []
    end = 0
    for stimulus in stimuli:
        entries = entry_words(stimulus.ids, stimulus.amounts)
        places.append(Place(end, len(stimulus.ids), end + len(entries), len(stimulus.forced)))
        pieces += [entries, stimulus.forced]
        end += len(entries) + len(stimulus.forced)
    return np.concatenate(pieces), places


def uniforms(
    layout: Layout,
    fixed_point: FixedPoint,
    log_entries: int,
    first_burst: int,
    places: Sequence[Place],
    classes: Classes,
) -> Words:
    """(B, 64) uint32: the ``Burst`` of the shader for each of B bursts, filled up to the stride of 64 words."""
    words = np.zeros((len(places), UNIFORM_STRIDE // 4), np.uint32)
    power_low, power_high = lower_and_upper(np.array([layout.power_amount]))
    unit = np.array([fixed_point.unit], np.float32).view(np.uint32)
    for index, place in enumerate(places):
        number = first_burst + index
        values = (
            number & _WORD,
            number % layout.max_delay,
            index,
            layout.neuron_count,
            layout.max_delay,
            log_entries,
            place.first,
            place.amounts,
            place.first_forced,
            place.forced,
            layout.power_neuron & _WORD,
            power_low[0],
            power_high[0],
            unit[0],
            classes.constants,
            classes.flags + index * classes.count,
            classes.count,
            classes.drivers,
            classes.driver_count,
            classes.lists,
        )
        words[index, : len(values)] = values
    return words


def _groups(invocations: int) -> tuple[int, int]:
    """Workgroups in two dimensions for that many invocations, one dimension being limited."""
    groups = -(-invocations // WORKGROUP)
    across = max(1, min(groups, _MOST_GROUPS))
    return across, -(-groups // across)


class Encoder:
    """Records the commands of bursts and submits them."""

    def __init__(self, device: Device, variant: Variant, data_group: GPUBindGroup, burst_group: GPUBindGroup) -> None:
        self._device, self._variant = device, variant
        self._pipelines = device.pipelines(variant)
        self._burst_group = burst_group
        self._commands = device.encoder()
        self._work = self._commands.begin_compute_pass()
        self._work.set_bind_group(0, data_group)

    def _dispatch(self, pipeline: GPUComputePipeline, groups: tuple[int, int]) -> None:
        self._work.set_pipeline(pipeline)
        self._work.dispatch_workgroups(*groups)

    def select(self, index: int) -> None:
        """What follows is for burst ``index`` of the batch."""
        self._work.set_bind_group(1, self._burst_group, [index * UNIFORM_STRIDE])

    def put(self, place: Place) -> None:
        """Put the stimulus at ``place`` into the sums."""
        if place.entries:
            self._dispatch(self._pipelines.stimulus, _groups(place.entries))

    def burst(self, neurons: int) -> None:
        """Dynamics of all neurons, then what fired sends its rows."""
        if not neurons:
            return
        if self._variant.batch_path:
            self._dispatch(self._pipelines.count, _groups(neurons))
        self._dispatch(self._pipelines.dynamics, _groups(neurons))
        self._dispatch(self._pipelines.propagate, (min(neurons, _ROW_GROUPS), 1))
        if self._variant.modulated:
            self._dispatch(self._pipelines.modulate, (1, 1))

    def submit(self) -> None:
        """Hand everything to the device."""
        self._work.end()
        self._device.queue.submit([self._commands.finish()])
