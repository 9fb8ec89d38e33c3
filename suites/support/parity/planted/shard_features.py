"""Faults in what shards do with the features of genomes: signals, what is of one shard, and what the host changes."""

from __future__ import annotations

from suites.support.parity.planted.fault import Fault
from suites.support.parity.planted.names import (
    DIVIDES_ALL,
    GATED_TRAIN,
    GRADED,
    MEMORY_DRIVES,
    REPLAYED,
    SCALED_THRESHOLD,
    TAKES_PART,
)

ON_CPU: tuple[Fault, ...] = (
    Fault(
        "forced firings lose their potentials on the way to a shard",
        "engine/sharded/engine.py",
        "None if potentials is None else potentials[forced]",
        "None",
        (REPLAYED,),
    ),
    Fault(
        "weights that an association moves stay with the host",
        "engine/sharded/cpu_shard.py",
        "self._memory.computed.weights[places[here]] = weights[here]",
        "self._memory.computed.weights[places[here]] += 0 * weights[here]",
        (TAKES_PART,),
    ),
    Fault(
        "a shard divides by the synapses of the load",
        "engine/sharded/cpu_shard.py",
        "self._memory.computed.divisors[sources] = divisors",
        "self._memory.computed.divisors[sources] += 0 * divisors",
        (DIVIDES_ALL,),
    ),
    Fault(
        "a memory neuron drives for ever",
        "engine/sharded/cpu_shard.py",
        "memory.extras.memory_fired[:] = False",
        "memory.extras.memory_fired[:0] = False",
        (MEMORY_DRIVES,),
    ),
)

ON_CUDA: tuple[Fault, ...] = (
    Fault(
        "a shard hears its own drivers alone",
        "engine/cuda/kernels/lists.py",
        "            if drives:\n",
        "            if drives and box == exchange.own:\n",
        (SCALED_THRESHOLD,),
    ),
    Fault(
        "potentials do not cross for graded signals",
        "engine/cuda/plan/shard_variant.py",
        "carries_potentials=mp_driven or variant.extras.modulators,",
        "carries_potentials=mp_driven,",
        (GRADED,),
    ),
    Fault(
        "a shard has the area classes of the first neurons",
        "engine/cuda/plan/features.py",
        "classes=self.tables.classes[members]",
        "classes=self.tables.classes[: len(members)]",
        (SCALED_THRESHOLD,),
    ),
    Fault(
        "a shard has the trains of the first neurons",
        "engine/cuda/plan/features.py",
        "trains=self.trains[members]",
        "trains=self.trains[: len(members)]",
        (GATED_TRAIN,),
    ),
    Fault(
        "replays lose their potentials on the way to a shard",
        "engine/cuda/host/appearing.py",
        "places, potentials = places[inside], potentials[inside]",
        "places, potentials = places[:0], potentials[:0]",
        (REPLAYED,),
    ),
    Fault(
        "weights that an association moves stay with the host",
        "engine/cuda/host/appearing.py",
        'self._change("weights", places[here], weights[here])',
        'self._change("weights", places[:0], weights[:0])',
        (TAKES_PART,),
    ),
    Fault(
        "a shard divides by the synapses of the load",
        "engine/cuda/host/appearing.py",
        'self._change("divisors", sources, divisors)',
        'self._change("divisors", sources[:0], divisors[:0])',
        (DIVIDES_ALL,),
    ),
    Fault(
        "a memory neuron drives nothing",
        "engine/cuda/host/appearing.py",
        'self._device.write_at("drives", driver, word)',
        "self._device.wait()",
        (MEMORY_DRIVES,),
    ),
)
