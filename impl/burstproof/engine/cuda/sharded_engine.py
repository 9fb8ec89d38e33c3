"""One network over several CUDA devices: a shard on each, a whole train of bursts without the host (MG-1 to MG-4)."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from burstproof.engine.admission import check_network, check_state
from burstproof.engine.cuda.exchange.devices import device_count
from burstproof.engine.cuda.exchange.mail import WORDS
from burstproof.engine.cuda.host.batch import TrainResult
from burstproof.engine.cuda.host.fired_lists import Collector, FiredList
from burstproof.engine.cuda.host.shard import DeviceShard, Fill, ShardResult
from burstproof.engine.cuda.host.shard_group import DeviceGroup
from burstproof.engine.cuda.host.shard_resident import Repack, ShardSet, fill_all
from burstproof.engine.cuda.host.shard_stimulus import shard_tables
from burstproof.engine.cuda.host.stimulus_table import StimulusTable
from burstproof.engine.cuda.kernels.control import HALTED
from burstproof.engine.cuda.plan.buffers import SETS
from burstproof.engine.cuda.plan.shard_pack import PackedShard, pack_shard
from burstproof.engine.cuda.plan.sharding_choice import ShardingChoice
from burstproof.engine.cuda.tuning.cache import Launch
from burstproof.engine.fixed_point import plan_fixed_point
from burstproof.engine.layout import synapse_facts
from burstproof.engine.options import EngineOptions
from burstproof.engine.progress import tell
from burstproof.engine.protocol import Engine, Progress
from burstproof.engine.sharded.partition import Partition
from burstproof.engine.state import NO_PLAN, NO_STIMULUS, Burst, EngineState, Record, Recording, Stimulus, StimulusPlan
from burstproof.engine.stimulus import PackedStimulus, coming_bursts, pack_stimulus, planned
from burstproof.errors import InputError, NetworkError, ShardLostError
from burstproof.network.model import Network

if TYPE_CHECKING:
    from burstproof.engine.sharded.engine import Links
    from burstproof.network.synthetic.spec import SyntheticSpec

_PACKERS = 4
_NOTHING: FiredList = (np.empty(0, np.uint32), np.empty(0, np.float32))


@dataclass(frozen=True, eq=False)
class _Train:
    """A train under way: its set, the tables of all shards, and its length as captured."""

    number: int
    tables: tuple[StimulusTable, ...]

    @property
    def bursts(self) -> int:
        return self.tables[0].bursts


class CudaShardedEngine(Engine):
    """Engine over one shard per device, or several on one; every device runs its trains by itself.

    Attributes
    ----------
    path : Path
        The way that firings take between devices; ``exchange_path`` in words.
    partition : Partition or None
        ``None`` where the shards made their own synapses.
    activity : int64 (N,) or None
        Firings of each neuron in the bursts whose fired lists this engine has brought back.
    memory_bytes : int
        Of all devices, mailboxes included.
    """

    backend = "cuda"

    def __init__(
        self,
        network: Network,
        options: EngineOptions,
        choice: ShardingChoice,
        shards: Sequence[PackedShard],
        fill: Fill,
        repack: Repack | None,
    ) -> None:
        self.network, self.options = network, options
        self.fixed_point = shards[0].packed.fixed_point
        self.burst_count = network.burst_count
        self.partition: Partition | None = None
        self._choice, self._fill, self._repack = choice, fill, repack
        self._set: ShardSet | None = ShardSet(shards, options, choice, fill)
        self._turn = 0
        self._weights = network.synapses.weights
        self._eligibility = network.synapses.eligibility_traces
        self._clamped = False
        self._fired: FiredList = _NOTHING
        self._on_devices: tuple[int, tuple[int, ...]] | None = None
        self._lost: ShardLostError | None = None
        self.path = self._set.mail.path
        self.activity: npt.NDArray[np.int64] | None = None
        self._recorded = 0

    @property
    def exchange_path(self) -> str:
        """The way that firings take between devices, in words."""
        return WORDS[self.path]

    @property
    def memory_bytes(self) -> int:
        """Bytes that all devices together give to the engine."""
        return self._resident.memory_bytes

    @property
    def rates(self) -> npt.NDArray[np.float64] | None:
        """Firings of each neuron per burst, (N,) float64, in the bursts whose fired lists were recorded.

        ``None`` over a network that the devices generated.
        """
        return None if self.activity is None else self.activity / max(self._recorded, 1)

    @property
    def groups(self) -> tuple[DeviceGroup, ...]:
        """The devices with their shards."""
        return self._resident.groups

    def shard_on_device(self, number: int) -> DeviceShard:
        """Shard ``number`` with what it has on its device."""
        return self._resident.shards[number]

    @property
    def _resident(self) -> ShardSet:
        if self._set is None:
            raise InputError("the engine is closed", where="run", cure="Create another engine")
        return self._set

    @property
    def launch(self) -> str:
        """The launch configuration; 0 in it is the engine's own choice."""
        return str(Launch.of(self.options.cuda))

    @classmethod
    def create(
        cls,
        network: Network,
        options: EngineOptions | None = None,
        partition: Partition | None = None,
        choice: ShardingChoice | None = None,
    ) -> CudaShardedEngine:
        """An engine over ``network`` with the shards of ``partition``.

        Raises
        ------
        InputError
            A partition of another network.
        NetworkError
            A network that the profile refuses, or a contribution that is not finite.
        BackendUnavailableError
            A device that is not there, or a way between devices that they do not have.
        OutOfMemoryError
            A shard does not fit its device; the message says what would.
        """
        from burstproof.engine.sharded.partition import make_partition

        options, choice = options or EngineOptions(), choice or ShardingChoice()
        cut = partition or make_partition(network, len(choice.devices), choice.strategy)
        if cut.neuron_count != network.neuron_count:
            raise InputError("a partition of another network", where="partition", got=cut.neuron_count)
        check_network(network, options)
        choice = choice.for_shards(cut.shards)
        point, facts = plan_fixed_point(network, options), synapse_facts(network)

        def repack(weights: npt.NDArray[np.float32]) -> tuple[PackedShard, ...]:
            with ThreadPoolExecutor(min(cut.shards, _PACKERS)) as pool:
                numbers = range(cut.shards)
                return tuple(
                    pool.map(lambda number: pack_shard(network, options, point, facts, cut, number, weights), numbers)
                )

        engine = cls(network, options, choice, repack(network.synapses.weights), fill_all(network), repack)
        engine.partition = cut
        engine.activity = np.zeros(network.neuron_count, np.int64)
        return engine

    @classmethod
    def from_spec(
        cls, spec: SyntheticSpec, options: EngineOptions | None = None, choice: ShardingChoice | None = None
    ) -> CudaShardedEngine:
        """An engine over the network of ``spec``, whose synapses each device makes itself, its own only (BE-3).

        It runs like one over ``synthesize(spec)``; ``network`` and the state hold no synapses, hence no weights.

        Raises
        ------
        NetworkError
            A specification that devices cannot generate, or that the profile refuses.
        BackendUnavailableError, OutOfMemoryError
            As for ``create``.
        """
        from burstproof.engine.cuda.host.shard_generate import pack_spec_shards

        options, choice = options or EngineOptions(), choice or ShardingChoice()
        network, shards, fill = pack_spec_shards(spec, options, choice)
        return cls(network, options, choice, shards, fill, None)

    def step(self, stimulus: Stimulus = NO_STIMULUS) -> Burst:
        """Run one burst; see ``Engine.step``."""
        number = self.burst_count + 1
        done = self.run(1, {number: stimulus}, Record.FIRED)
        return Burst(number, done.fired_ids, done.fired_potentials, int(done.candidate_counts[0]))

    def run(
        self,
        bursts: int,
        plan: StimulusPlan = NO_PLAN,
        record: Record = Record.FIRED,
        progress: Progress | None = None,
    ) -> Recording:
        """Run ``bursts`` bursts; see ``Engine.run``. The whole plan is checked before the first burst.

        Raises
        ------
        StimulusError
            A burst's stimulus is refused.
        ShardLostError
            A shard was waited for in vain: it is named, and this engine cannot go on.
        """
        resident = self._resident
        if self._lost is not None:
            raise self._lost
        stimuli = self._pack_plan(bursts, plan)
        collector = Collector(self.burst_count + 1, record)
        last = self.burst_count + bursts
        under_way: deque[_Train] = deque()

        def settle() -> None:
            """Take in what is under way, so that the engine stands after the last burst done, and let trains run."""
            while under_way:
                self._finish(under_way.popleft(), collector)
            for shard in resident.shards:
                shard.device.write_control(HALTED, 0)

        while self.burst_count < last:
            self._queue(under_way, stimuli, last, collector.wants_fired)
            train = under_way.popleft()
            done = self._finish(train, collector)
            if done < train.bursts:
                settle()
            tell(progress, done, settle)
        return collector.recording()

    def _queue(self, under_way: deque[_Train], stimuli: dict[int, PackedStimulus], last: int, keep: bool) -> None:
        """Queue trains until two are under way or the run is covered."""
        resident = self._resident
        ahead = self.burst_count + sum(train.bursts for train in under_way)
        while ahead < last and len(under_way) < SETS:
            bursts = min(last - ahead, resident.length)
            tables = shard_tables(stimuli, ahead + 1, bursts, resident.length, resident.places, self.fixed_point.dtype)
            under_way.append(_Train(self._turn, tables))
            resident.submit(self._turn, tables, keep, ahead)
            self._turn = (self._turn + 1) % SETS
            ahead += tables[0].bursts

    def _pack_plan(self, bursts: int, plan: StimulusPlan) -> dict[int, PackedStimulus]:
        """Checked stimulus of the coming ``bursts`` bursts by number."""
        coming = coming_bursts(self.burst_count, bursts)
        return {b: pack_stimulus(plan[b], self.network, self.options, self.fixed_point) for b in planned(plan, coming)}

    def _finish(self, train: _Train, collector: Collector) -> int:
        """Wait for a train, take in what it did and return the bursts done."""
        resident = self._resident
        results = resident.collect(train.number)
        self._check_lost(results)
        fired = np.stack([result.fired for result in results])
        done = int(fired.shape[1])
        if done == 0:
            return 0
        self.burst_count += done
        self._note_clamps(train, done)
        result = TrainResult(fired.sum(axis=0), np.sum([result.candidates for result in results], axis=0))
        if collector.wants_fired:
            lists = [
                shard.fired(train.number, int(counts.sum()))
                for shard, counts in zip(resident.shards, fired, strict=True)
            ]
            ids, potentials = _merged(lists, fired)
            collector.add(result, (ids, potentials))
            if self.activity is not None:
                np.add.at(self.activity, ids, 1)
            self._recorded += done
            own = int(result.fired[-1])
            self._fired, self._on_devices = (ids[len(ids) - own :], potentials[len(ids) - own :]), None
        else:
            collector.add(result, None)
            self._on_devices = train.number, tuple(int(count) for count in fired[:, -1])
        return done

    def _check_lost(self, results: Sequence[ShardResult]) -> None:
        """Raise if a shard was waited for in vain.

        Who waited first names it: one that was only held up waits later for those that have ended meanwhile.
        """
        waiting = [shard for shard, result in enumerate(results) if result.missed >= 0]
        if not waiting:
            return
        peer = min((results[shard] for shard in waiting), key=lambda result: result.missed_in).missed
        self._lost = ShardLostError(
            f"shard {peer} published nothing in burst {self.burst_count + 1} or soon after it",
            where=f"shard {peer} on device {self._choice.devices[peer]}",
            got=f"shards {waiting} waited {self._choice.timeout_s:g} s",
            cure="Restore the last checkpoint into a new engine; see whether that device is held up by other work",
        )
        raise self._lost

    def _note_clamps(self, train: _Train, done: int) -> None:
        """Set the sticky flag if power or the stimulus of a burst that was done is clamped."""
        self._clamped |= self._power_clamped or any(place < done for t in train.tables for place in t.clamped)

    @property
    def _power_clamped(self) -> bool:
        return any(s.packed.layout.power_clamped and s.packed.layout.power_neuron >= 0 for s in self._resident.packed)

    def state(self) -> EngineState:
        """A copy of everything that the next burst depends on."""
        resident = self._resident
        if self._on_devices is not None:
            number, counts = self._on_devices
            lists = [shard.fired(number, count) for shard, count in zip(resident.shards, counts, strict=True)]
            self._fired = _merged(lists, np.array(counts, np.int64)[:, None])
            self._on_devices = None
        fired = self._fired[0].copy(), self._fired[1].copy()
        state = resident.state(self.network, self._weights, self._eligibility, fired)
        return replace(state, clamped=state.clamped or self._clamped)

    def restore(self, state: EngineState) -> None:
        """Continue from ``state``, taken from any backend over the same network and options.

        Raises
        ------
        NetworkError
            A state of another network, or weights that its fixed-point scale does not admit.
        """
        resident = self._resident
        shape = (resident.packed[0].packed.layout.max_delay, self.network.neuron_count)
        if state.pending.shape != shape or state.weights.shape != self._weights.shape:
            raise NetworkError(
                "a state of another network", where="state.pending", got=state.pending.shape, allowed=str(shape)
            )
        check_state(state, self.fixed_point)
        resident.restore(state, self._repack, self._fill)
        self.burst_count = state.burst_count
        self._weights, self._eligibility = state.weights.copy(), state.eligibility_traces.copy()
        self._clamped = state.clamped
        self._fired = state.fired_ids.copy(), state.fired_potentials.copy()
        self._on_devices, self._turn = None, 0

    def reshard(self, partition: Partition) -> None:
        """Go on with another partition from the state at hand; devices are given to its shards in turn."""
        state = self.state()
        self.close()
        other = type(self).create(self.network, self.options, partition, self._choice)
        other.restore(state)
        other.activity, other._recorded = self.activity, self._recorded
        self.__dict__.update(other.__dict__)

    def close(self) -> None:
        """Give back the devices' memory; the engine cannot be used afterwards. Closing twice is allowed."""
        self._on_devices = None
        if self._set is not None:
            self._set.release()
            self._set = None


def create_cuda_sharded(
    network: Network, options: EngineOptions, partition: Partition, links: Links
) -> CudaShardedEngine:
    """An engine with the shards of ``partition`` on the devices that are here, in turn, from ``device_id`` on.

    Raises
    ------
    BackendUnavailableError
        No driver, no device, or a package that is missing.
    NetworkError, OutOfMemoryError
        As for ``CudaShardedEngine.create``.
    """
    here, first = device_count(), options.cuda.device_id
    devices = tuple((first + shard) % here for shard in range(partition.shards))
    choice = ShardingChoice(devices, partition.strategy, links.enable_p2p, links.use_nccl)
    return CudaShardedEngine.create(network, options, partition, choice)


def _merged(lists: Sequence[FiredList], counts: npt.NDArray[np.int64]) -> FiredList:
    """The lists of all shards as one, burst by burst, ids ascending; ``counts`` (shards, bursts)."""
    ids, potentials = (np.concatenate([part[column] for part in lists]) for column in (0, 1))
    bursts = np.concatenate([np.repeat(np.arange(counts.shape[1], dtype=np.uint64), row) for row in counts])
    order = np.argsort((bursts << np.uint64(32)) | ids)
    return ids[order], potentials[order]
