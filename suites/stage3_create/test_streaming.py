"""Networks larger than the device: what lies in host memory, when, and what is refused (BE-10)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

from burstproof.cli.arguments import build_parser
from burstproof.cli.settings import configuration_of, engine_options
from burstproof.device.host_memory import available_host_bytes
from burstproof.engine.cuda.plan.budget import HOST_SHARE, MemoryPlan, place_synapses, plan_memory
from burstproof.engine.cuda.plan.histories import LONGEST_DEFERRED
from burstproof.engine.cuda.plan.packed import pack_network, packed_for
from burstproof.engine.cuda.plan.streaming import CHUNK, PER_SYNAPSE, line_entries, pieces_of
from burstproof.engine.options import CudaOptions, EngineOptions, SynapseMemory
from burstproof.engine.profile import FEAGI_2_6
from burstproof.engine.reference import ReferenceEngine
from burstproof.engine.select import Choice, start_engine
from burstproof.errors import OutOfMemoryError
from burstproof.network.model import Network, NeuronTable, SynapseTable
from burstproof.network.plasticity import PlasticMapping

pytestmark = pytest.mark.requirement("BE-10", "BE-9", "ST-3")

HOST = EngineOptions(cuda=CudaOptions(synapse_memory=SynapseMemory.HOST))
NEURONS, FAN = 100, 50


def varied(**columns: object) -> Network:
    """100 neurons x 50 synapses with weights that differ within a row."""
    sources = np.repeat(np.arange(NEURONS), FAN)
    targets = (sources + np.tile(np.arange(FAN), NEURONS)) % NEURONS
    weights = 1 + np.arange(NEURONS * FAN) % 3
    return Network(NeuronTable.build(NEURONS), SynapseTable.build(sources, targets, weights=weights, **columns))


def limited(limit: int, place: SynapseMemory = SynapseMemory.AUTO) -> EngineOptions:
    return EngineOptions(cuda=CudaOptions(memory_limit_bytes=limit, synapse_memory=place))


def test_what_grows_with_synapses_lies_in_host_memory() -> None:
    """Worked out by hand: 5000 synapses are 40 chunks of 128; targets of 4 bytes, contributions of 2, delays of 1."""
    plan = plan_memory(varied(delay_bursts=np.arange(NEURONS * FAN) % 3 + 1), HOST)
    sizes = {spec.name: spec.bytes for spec in plan.host_buffers}
    assert sizes == {"targets": 4 * 40 * 128, "contributions": 2 * 40 * 128, "delays": 40 * 128}
    assert plan.host_bytes == 7 * 40 * 128
    assert not {spec.name for spec in plan.buffers} & PER_SYNAPSE
    assert plan.synapses == NEURONS * FAN


def test_one_contribution_per_source_stays_on_the_device() -> None:
    ids = np.arange(NEURONS)
    plan = plan_memory(Network(NeuronTable.build(NEURONS), SynapseTable.build(ids, np.roll(ids, 1))), HOST)
    assert "contributions" in {spec.name for spec in plan.buffers}
    assert {spec.name for spec in plan.host_buffers} == {"targets", "delays"}


def test_the_kernels_stay_those_of_the_network() -> None:
    """Static contributions keep the fused burst, its ring and packed sums; plastic ones keep the separate kernels."""
    packed = pack_network(varied(), EngineOptions(cuda=CudaOptions(sum_bits=8)))
    moved = place_synapses(pack_network(varied(), replace(HOST, cuda=replace(HOST.cuda, sum_bits=8))), 1)
    assert moved.streamed
    assert not packed.streamed
    assert moved.variant.word.packed
    assert moved.variant.fused == packed.variant.fused is not None
    assert moved.variant.tiles == 0
    assert moved.sizes == packed.sizes
    plastic = varied().replace(plastic_mappings=(PlasticMapping(np.arange(1000), 3),))
    assert place_synapses(pack_network(plastic, HOST), 1).variant.fused is None


def test_nothing_is_sent_in_tiles_from_host_memory() -> None:
    with mock.patch("burstproof.engine.cuda.plan.sizing._UNTILED_BYTES", 64):
        packed = pack_network(varied(), HOST)
        assert packed.variant.tiles > 0
        assert place_synapses(packed, 1).variant.tiles == 0


def test_other_weights_leave_synapses_where_they_are() -> None:
    """A state with other weights has the network packed again, in host memory as before."""
    packed = place_synapses(pack_network(varied(), HOST), 1)
    state = ReferenceEngine.create(varied()).state()
    again = packed_for(packed, replace(state, weights=state.weights + 1))
    assert again is not packed
    assert again.streamed
    assert again.host_buffers == packed.host_buffers


def test_plastic_synapses_lie_in_host_memory_too() -> None:
    """Learning that is replayed and, for a window too long for that, learning burst by burst."""
    held = set[str]()
    for window in (3, LONGEST_DEFERRED + 1):
        network = varied().replace(plastic_mappings=(PlasticMapping(np.arange(1000), window),))
        plan = plan_memory(network, HOST)
        held |= {spec.name for spec in plan.host_buffers}
        assert all(spec.count % CHUNK == 0 for spec in plan.host_buffers)
    assert held == PER_SYNAPSE


def test_the_table_marks_what_lies_in_host_memory() -> None:
    plan = plan_memory(varied(), HOST)
    lines = plan.table().splitlines()
    marked = [line for line in lines if line.endswith("host")]
    assert [line.split()[0] for line in marked] == [*(spec.name for spec in plan.host_buffers), "total"]
    assert marked[-1].split() == ["total", str(plan.host_bytes), "host"]
    assert len(lines) == len(plan.buffers) + len(plan.host_buffers) + 2


def test_auto_moves_synapses_only_where_they_do_not_fit() -> None:
    packed = pack_network(varied(), EngineOptions())
    needed = MemoryPlan.of(packed).total_bytes
    assert place_synapses(packed, needed) is packed
    moved = place_synapses(packed, needed - 1)
    assert moved.streamed
    assert MemoryPlan.of(moved).total_bytes < needed - 1
    assert place_synapses(moved, 10 * needed) is moved
    assert plan_memory(varied(), limited(needed - 1)).host_bytes > 0
    assert plan_memory(varied(), limited(needed)).host_bytes == 0


def test_synapses_that_are_to_stay_stay() -> None:
    packed = pack_network(varied(), limited(1, SynapseMemory.DEVICE))
    assert place_synapses(packed, 1) is packed
    with pytest.raises(OutOfMemoryError, match="on the device, 1 bytes"):
        MemoryPlan.of(packed).check(1, "device")


def test_neurons_that_do_not_fit_are_refused_beside_their_synapses() -> None:
    plan = plan_memory(varied(), HOST)
    with pytest.raises(OutOfMemoryError, match=f"beside its synapses, {plan.host_bytes} bytes in host memory"):
        plan.check(plan.total_bytes - 1, "device")
    plan.check(plan.total_bytes, "device")


def test_more_than_the_host_has_is_refused_with_figures() -> None:
    plan = plan_memory(varied(), HOST)
    enough = int(plan.host_bytes / HOST_SHARE) + 1
    plan.check_host(enough)
    plan.check_host(None)
    with pytest.raises(OutOfMemoryError, match=f"{plan.host_bytes} bytes of page-locked") as refused:
        plan.check_host(enough // 2)
    assert str(int(HOST_SHARE * (enough // 2))) in str(refused.value)


@pytest.mark.parametrize("longest", [0, 1, 100, 897, 898, 5000, 1_000_000])
def test_pieces_cover_the_longest_row_wherever_it_starts(longest: int) -> None:
    """A row may begin anywhere within a chunk; no piece lies wholly behind every possible row."""
    pieces = pieces_of(longest)
    assert pieces.length % CHUNK == 0
    assert 1 <= pieces.most <= 16
    assert pieces.length * pieces.most >= longest + CHUNK - 1
    assert pieces.length * (pieces.most - 1) < max(1, longest + CHUNK - 1)


def test_chunks_start_at_whole_lines_of_every_array() -> None:
    """128 bytes are 32 targets, 64 contributions of 16 bits, or 128 delays."""
    ids = np.arange(NEURONS)
    one_value = Network(NeuronTable.build(NEURONS), SynapseTable.build(ids, np.roll(ids, 1), delay_bursts=1))
    for network, entries in ((one_value, 32), (varied(), 64), (varied(delay_bursts=3), CHUNK)):
        assert line_entries(pack_network(network, HOST).variant) == entries


def test_available_host_memory_is_the_lesser_of_system_and_container(tmp_path: Path) -> None:
    meminfo, group = tmp_path / "meminfo", tmp_path / "group"
    assert available_host_bytes(meminfo, group) is None
    meminfo.write_text("MemTotal:  2048 kB\nMemAvailable:  1024 kB\n")
    assert available_host_bytes(meminfo, group) == 1 << 20
    group.mkdir()
    (group / "memory.current").write_text("1000\n")
    for limit, available in (("max", 1 << 20), ("5000", 4000), ("500", 0)):
        (group / "memory.max").write_text(f"{limit}\n")
        assert available_host_bytes(meminfo, group) == available


@pytest.mark.requirement("BE-14")
@pytest.mark.parametrize(("text", "place"), [("true", SynapseMemory.HOST), ("false", SynapseMemory.AUTO)])
def test_unified_memory_selects_host_memory(
    text: str, place: SynapseMemory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("feagi_configuration.toml").write_text(f"[cuda]\nuse_unified_memory = {text}\n")
    options = build_parser().parse_args(["run", "x.json"])
    assert engine_options(options, configuration_of(options), FEAGI_2_6).cuda.synapse_memory is place


def test_the_choice_says_that_synapses_lie_in_host_memory() -> None:
    from burstproof.engine.cuda.engine import CudaEngine

    choice = Choice("cuda", "cuda", "asked for", ())
    for options, expected in ((HOST, "asked for; its synapses, {} bytes, are"), (EngineOptions(), "asked for")):
        plan = plan_memory(varied(), options)
        engine = mock.Mock(spec=CudaEngine, backend="cuda", host_bytes=plan.host_bytes)
        _, told = start_engine(choice, varied(), options, factory=lambda _name, engine=engine: lambda *_: engine)
        assert told.reason.startswith(expected.format(plan.host_bytes))
        assert ("host memory" in told.reason) == (plan.host_bytes > 0)


@pytest.mark.gate("gpu")
def test_synapses_take_host_memory_and_give_it_back() -> None:
    """Under a limit that only the neurons keep, an engine runs, takes its plan's bytes of the device and no more."""
    from burstproof.device.cupy_runtime import CupyRuntime
    from burstproof.engine.cuda.engine import CudaEngine

    sources = np.repeat(np.arange(200_000), 100)
    targets = np.random.default_rng(1).integers(0, 200_000, len(sources))
    network = Network(NeuronTable.build(200_000), SynapseTable.build(sources, targets))
    needed = plan_memory(network, EngineOptions()).total_bytes
    CudaEngine.create(network, limited(needed - 1)).close()
    runtime = CupyRuntime.open(0)
    before = runtime.memory_info()[0]
    engine = CudaEngine.create(network, limited(needed - 1))
    taken = before - runtime.memory_info()[0]
    assert engine.memory_plan.host_bytes >= 4 * len(sources)
    assert taken < needed - 4 * len(sources) + (64 << 20)
    assert len(engine.run(3).bursts) == 3
    engine.close()
    assert runtime.memory_info()[0] >= before - (64 << 20)
