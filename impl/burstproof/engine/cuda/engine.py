"""CudaEngine: makes engines on one CUDA device or over several."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from burstproof.device.faults import translated
from burstproof.device.open import open_device
from burstproof.device.protocol import DeviceRuntime
from burstproof.engine.ask_machine import this_machine
from burstproof.engine.cuda.device_engine import DeviceEngine, on_device
from burstproof.engine.cuda.exchange.devices import device_count
from burstproof.engine.cuda.growing_engine import on_one_device, over_shards
from burstproof.engine.cuda.host.many_devices import ManyDevices, pack_shards
from burstproof.engine.cuda.host.upload import fill_shard
from burstproof.engine.cuda.plan.packed import pack_network
from burstproof.engine.cuda.plan.sharding_choice import ShardingChoice
from burstproof.engine.fixed_point import synapses_appear
from burstproof.engine.options import EngineOptions
from burstproof.engine.sharded.partition import Partition
from burstproof.network.model import Network
from burstproof.network.synthetic.spec import SyntheticSpec

if TYPE_CHECKING:
    from burstproof.engine.sharded.engine import Links


class CudaEngine(DeviceEngine):
    """See ``DeviceEngine``; a network in which neurons or synapses appear gets a ``GrowingEngine``."""

    @classmethod
    @translated
    def create(
        cls,
        network: Network,
        options: EngineOptions | None = None,
        partition: Partition | None = None,
        choice: ShardingChoice | None = None,
    ) -> DeviceEngine:
        """An engine for ``network`` on the device of ``options``; with ``partition`` or ``choice``, over shards.

        Raises
        ------
        InputError
            A partition of another network.
        NetworkError
            A network that the profile refuses, or a contribution that is not finite.
        BackendUnavailableError
            No driver, no such device, a missing package, or an exchange path that the devices do not support.
        OutOfMemoryError
            The network does not fit; the message says which size would.
        """
        options = options or EngineOptions()
        if partition is not None or choice is not None:
            return cls._over_shards(network, options, partition, choice or ShardingChoice())
        runtime = open_device(options.cuda.device_id)
        if options.cuda.autotune:
            options = cls._tuned(network, options, runtime.name)
        if synapses_appear(network.features):
            runtime.close()
            return on_one_device(network, options)
        packed = pack_network(network, options)
        return cls(
            network, options, packed.fixed_point, on_device(runtime, packed, partial(fill_shard, network=network))
        )

    @classmethod
    def _over_shards(
        cls, network: Network, options: EngineOptions, partition: Partition | None, choice: ShardingChoice
    ) -> DeviceEngine:
        from burstproof.engine.sharded.partition import make_partition

        partition = partition or make_partition(network, len(choice.devices), choice.strategy)
        if synapses_appear(network.features):
            return over_shards(network, options, partition, choice)
        devices = pack_shards(network, options, partition, choice)
        engine = cls(network, options, devices.packed[0].packed.fixed_point, devices)
        engine.partition = partition
        return engine

    @classmethod
    def _tuned(cls, network: Network, options: EngineOptions, device: str) -> EngineOptions:
        """``options`` with the autotuner's choice for ``network``."""
        from burstproof.engine.cuda.tuning.tuner import tuned_launch, with_launch

        driver = ".".join(map(str, this_machine().cuda.driver_version or ("unknown",)))
        return with_launch(options, tuned_launch(network, options, cls.create, device, driver).launch)

    @classmethod
    @translated
    def from_spec(
        cls,
        spec: SyntheticSpec,
        options: EngineOptions | None = None,
        choice: ShardingChoice | None = None,
        runtime: DeviceRuntime | None = None,
    ) -> CudaEngine:
        """An engine for the network of ``spec``; the devices generate the synapses themselves (BE-3).

        It runs like an engine for ``synthesize(spec)``, but ``network`` and the state hold no synapses, hence no
        weights. With ``choice`` every device draws all synapses and keeps those of its shard. ``runtime`` is an
        already open device.

        Raises
        ------
        NetworkError
            A specification that the device cannot generate, or that the profile refuses.
        BackendUnavailableError, OutOfMemoryError
            As for ``create``.
        """
        from burstproof.engine.cuda.host.generate import pack_spec

        options = options or EngineOptions()
        devices = (options.cuda.device_id,) if choice is None else choice.devices
        strategy = None if choice is None else choice.strategy
        runtimes = {ordinal: runtime or open_device(ordinal) for ordinal in dict.fromkeys(devices)}
        network, shards, fill = pack_spec(spec, options, [runtimes[ordinal] for ordinal in devices], strategy)
        packed = shards[0].packed
        if choice is None:
            return cls(network, options, packed.fixed_point, on_device(runtimes[devices[0]], packed, fill))
        return cls(network, options, packed.fixed_point, ManyDevices(shards, options, choice, fill, None, runtimes))


def create_over_devices(network: Network, options: EngineOptions, partition: Partition, links: Links) -> DeviceEngine:
    """An engine whose shards are dealt to all devices of this machine in turn, starting with ``device_id``.

    Raises
    ------
    BackendUnavailableError
        No driver, no device, or a missing package.
    NetworkError, OutOfMemoryError
        As for ``CudaEngine.create``.
    """
    count, first = device_count(), options.cuda.device_id
    devices = tuple((first + shard) % count for shard in range(partition.shards))
    choice = ShardingChoice(devices, partition.strategy, links.enable_p2p, links.use_nccl)
    return CudaEngine.create(network, options, partition, choice)
