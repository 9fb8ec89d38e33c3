"""The kernels of CUDA shards without a GPU: their logic in the CUDA simulator, and that they build."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from burstproof.compile.numba_cubin import compile_kernel, obstacle
from burstproof.compile.resources import resources_of
from burstproof.device.dependent_launch import OVERLAP_CAPABILITY
from burstproof.engine.fixed_point import plan_fixed_point
from burstproof.engine.layout import synapse_facts
from burstproof.engine.options import EngineOptions
from burstproof.engine.sharded.partition import make_partition
from burstproof.engine.sharded.shard_layout import NetworkShard
from burstproof.network.synthetic.build import driven_network
from stages.measuring import Measure
from suites.support.compile.tools import needs_tools
from suites.support.plans import asked, only, thinned
from suites.support.shards.cuda_simulator_check import checks
from suites.support.shards.queue_checks import queues_pay
from suites.support.simulated_process import run_simulated

QUICK = (
    "burst in one kernel",
    "features of ranks",
    "general kernels",
    "packets",
    "silent shard",
    "unequal shards",
)
BUILDS = "builds kernels for seconds"

pytestmark = [pytest.mark.requirement("MG-1", "MG-2", "MG-4", "BE-3", "ST-7"), pytest.mark.xdist_group("simulator")]


@pytest.fixture(scope="module")
def problems(request: pytest.FixtureRequest) -> Mapping[str, list[str]]:
    """Problems of each check, from one process with the simulator switched on."""
    return run_simulated("suites.support.shards.cuda_simulator_check", asked(request, "name")).problems


@pytest.mark.parametrize("name", thinned(checks(), "seconds each in the simulator", keep=only(*QUICK)))
def test_simulated_shards(name: str, problems: Mapping[str, list[str]]) -> None:
    """Simulated shards do what the reference does."""
    assert problems[name] == []


@needs_tools
@pytest.mark.thorough(BUILDS)
@pytest.mark.requirement("KL-1")
@pytest.mark.measures("kernel.registers", variant=..., kernel=...)
@pytest.mark.parametrize(
    ("capability", "form"),
    [((7, 5), "two kernels"), ((9, 0), "one kernel"), ((9, 0), "padded rows"), ((9, 0), "queues per owner")],
)
def test_kernels_build(capability: tuple[int, int], form: str, measure: Measure) -> None:
    """The kernels of a driven network build without spilling, for the oldest capability of the tools and for 9.0."""
    from burstproof.engine.cuda.kernels.catalogue import catalogue
    from burstproof.engine.cuda.plan.shard_pack import pack_shard, queued

    reason = obstacle(capability)
    if reason:
        pytest.skip(reason)
    network, options = driven_network(4000, 20, 0.1), EngineOptions()
    partition = make_partition(network, 2, "contiguous")
    point, facts = plan_fixed_point(network, options), synapse_facts(network)
    shard = pack_shard(NetworkShard(network, options, point, facts, partition, 0, network.neuron_count))
    overlapped, row_words = capability >= OVERLAP_CAPABILITY, 32 if form == "padded rows" else 0
    variant = replace(shard.shard, merged=form != "two kernels", row_words=row_words, overlapped=overlapped)
    if form == "queues per owner":
        with queues_pay():
            own = queued(shard, overlapped)
        assert own is not None
        variant = own.shard
    kind = f"driven shard, {form}"
    for spec in catalogue(variant):
        used = resources_of(compile_kernel(spec.name, spec.function, spec.signature, capability, spec.registers))
        measure("kernel.registers", used.registers, "1", conditions={"variant": kind, "kernel": spec.name})
        assert used.local_bytes + used.stack_bytes == 0, spec.name
