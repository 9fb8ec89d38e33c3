"""Files of networks with features: .bpnet, connectomes, records, and the identity of a run in its checkpoint."""

from __future__ import annotations

import dataclasses
import json
import random
import shutil
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from burstproof.engine.features.support import MODELLED, Section, sections_of
from burstproof.engine.options import EngineOptions
from burstproof.engine.reference import ReferenceEngine
from burstproof.engine.registry import engine_factory
from burstproof.engine.replay import trace_options
from burstproof.engine.sharded.checkpoint import (
    Checkpoint,
    load_checkpoint,
    run_identity,
    save_checkpoint,
    stimulus_so_far,
)
from burstproof.engine.state import Stimulus
from burstproof.engine.trace import Trace, read_trace, write_trace
from burstproof.errors import (
    BurstproofError,
    CheckpointError,
    ConnectomeError,
    NetworkError,
    NetworkFileError,
    TraceError,
)
from burstproof.network.features import (
    AreaFeatures,
    AssociativeMapping,
    Features,
    Homeostat,
    MemoryArea,
    MemoryChange,
    Modulator,
    ModulatorKind,
    RuleFeatures,
)
from burstproof.network.files.bpnet import load_network, save_network
from burstproof.network.files.bpnet_format import Header, decode_header, plain_values
from burstproof.network.files.connectome import Connectome, connectome_losses, read_connectome, write_connectome
from burstproof.network.grow.genome import read_genome
from burstproof.network.grow.growth import grow
from burstproof.network.model import Area, Network, NeuronTable, SynapseTable
from burstproof.network.plasticity import PlasticMapping
from suites.support.networks.feature_genomes import FEATURES, grown, tree_of
from suites.support.networks.growth_golden import GOLDEN
from suites.support.parity.recordings import recording

pytestmark = pytest.mark.requirement("BE-2", "BE-19")

ROUND_ONE = GOLDEN.parent / "round_one"


def sample() -> Network:
    """A network with every value that features have."""
    memory = MemoryArea((7, 8), 3, 4, 2, 12, 5, False, True, MemoryChange.RATIO, 2.5, 60.0, {7: 9})
    features = Features(
        (
            Modulator("a b", ModulatorKind.GATE, 9, -33.25, 0.1),
            Modulator("é", ModulatorKind.REWARD, 7, 1e30),
        ),
        {
            7: AreaFeatures(Homeostat(0.3, 7.5, 1.7, 0.1, 0.9, 3), (1, 0, 1), True, 0.37, memory),
            9: AreaFeatures(degeneration=1.0),
        },
        (RuleFeatures((0, 0), (1,)), RuleFeatures(gates=(1, 0))),
        (AssociativeMapping(7, 8, 1, 0.5, True, 2),),
        (9, 7),
        True,
    )
    learning = {"rewarded": True, "eligibility_decay": 5, "eta": 0.05, "max_weight": 7.5, "frozen": True}
    plastic = (
        PlasticMapping(np.array([0, 2]), 3, 1.5, 2.0, 0.25, **learning, rewards=(1, 1), learning_rates=(0,)),
        PlasticMapping(np.array([], np.int64), 2),
    )
    return Network(
        NeuronTable.build(3, cortical_areas=[7, 8, 9]),
        SynapseTable.build([0, 1, 2], [1, 2, 0], rules=[0, 2, 1], edge_flags=[0, 0, 1]),
        tuple(Area(index, f"area{index}") for index in (7, 8, 9)),
        plastic_mappings=plastic,
        features=features,
    )


def learnt(network: Network) -> list[object]:
    """The parameters of the plastic mappings and their rows."""
    return [(plain_values(dataclasses.replace(m, synapses=())), m.synapses.tolist()) for m in network.plastic_mappings]  # type: ignore[arg-type]


def test_a_network_file_holds_every_feature(tmp_path: Path) -> None:
    network = sample()
    save_network(tmp_path / "n.bpnet", network)
    found = load_network(tmp_path / "n.bpnet")
    assert found.features == network.features
    assert learnt(found) == learnt(network)
    assert found.synapses.rules.tolist() == [0, 2, 1]
    assert found.synapses.edge_flags.tolist() == [0, 0, 1]


@pytest.mark.parametrize("path", FEATURES, ids=lambda path: path.name.removesuffix(".genome.json.gz"))
def test_a_network_file_of_a_genome_with_features(path: Path, tmp_path: Path) -> None:
    network = grow(read_genome(path))
    save_network(tmp_path / "n.bpnet", network)
    found = load_network(tmp_path / "n.bpnet")
    assert found.features == network.features
    assert learnt(found) == learnt(network)
    assert np.array_equal(found.synapses.rules, network.synapses.rules)


def flipped(content: bytes, places: int) -> Iterator[bytes]:
    """``content`` with one bit changed: in ``places`` bytes drawn from all of it, header included."""
    rng = random.Random(len(content))
    for at in rng.sample(range(len(content)), places):
        yield content[:at] + bytes([content[at] ^ 1 << rng.randrange(8)]) + content[at + 1 :]


@pytest.mark.parametrize("name", ["mem6_12", "assoc_12", "rstdp_12", "syn_11"])
def test_a_flipped_bit_of_a_network_or_a_state_with_features_is_found(name: str, tmp_path: Path) -> None:
    """Memories, associations, R-STDP, synaptic modulators: 100 bits of the network file, 100 of a checkpoint."""
    trace = recording(f"features/{name}")
    engine = ReferenceEngine.create(trace.network, trace_options(trace))
    kept = engine.run(8, trace.plan)
    identity = run_identity(trace.network, engine.options, engine.fixed_point)
    network, state = tmp_path / "n.bpnet", tmp_path / "n.bpstate"
    save_network(network, trace.network)
    save_checkpoint(state, Checkpoint(engine.state(), identity, kept))
    assert load_checkpoint(state).state.features is not None
    for path, load, error in (
        (network, load_network, NetworkFileError),
        (state, load_checkpoint, CheckpointError),
    ):
        for damaged in flipped(path.read_bytes(), 100):
            path.write_bytes(damaged)
            with pytest.raises(error):
                load(path)


def header_of(network: Network, path: Path) -> Any:
    """The header of the network's file, as JSON."""
    save_network(path, network)
    data = path.read_bytes()
    length = int.from_bytes(data[16:24], "little")
    return json.loads(data[24 : 24 + length])


def test_a_network_without_features_has_the_header_that_it_had(tmp_path: Path) -> None:
    header = header_of(load_network(ROUND_ONE / "stdp.bpnet"), tmp_path / "n.bpnet")
    assert "features" not in header
    (rule,) = header["plastic_mappings"]
    assert rule.keys() == {"window", "constant", "ltp_multiplier", "ltd_multiplier"}
    assert not load_network(ROUND_ONE / "stdp.bpnet").features


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (("modulators", 0, "kind"), "synaptic.mood"),
        (("modulators", 0, "kind"), ["synaptic.gate"]),
        (("modulators", 0, "driver"), -1),
        (("modulators", 0, "full_scale_potential"), "1"),
        (("areas",), {"seven": {}}),
        (("areas",), {"99999999999": {}}),
        (("areas", "7", "homeostat", "tau"), None),
        (("areas", "7", "memory", "change"), "mp_sum"),
        (("rules", 0), []),
        (("clamp_potentials",), 1),
    ],
)
def test_a_header_with_features_that_cannot_be_is_refused(
    where: tuple[Any, ...], value: object, tmp_path: Path
) -> None:
    header = header_of(sample(), tmp_path / "n.bpnet")
    at: Any = header["features"]
    for key in where[:-1]:
        at = at[key]
    at[where[-1]] = value
    raw = json.dumps(header).encode()
    with pytest.raises(NetworkFileError) as caught:
        decode_header(raw, zlib.crc32(raw), "n.bpnet")
    assert "header.features" in str(caught.value)


def test_plain_values_of_a_header_decode_to_it() -> None:
    header = Header((), (), 3, 1.0, (), {}, features=sample().features)
    raw = header.encode()
    assert decode_header(raw, zlib.crc32(raw), "n.bpnet") == header


def test_a_connectome_loses_features_and_says_so(tmp_path: Path) -> None:
    network = sample()
    assert "the features of the genome (only an embedded genome carries them)" in connectome_losses(network)
    write_connectome(tmp_path / "n.connectome", Connectome.of(network))
    assert not read_connectome(tmp_path / "n.connectome").network.features
    assert not any("features" in loss for loss in connectome_losses(grown(tree_of())))


def test_a_record_holds_features_and_what_a_burst_gets_beside_stimulus(tmp_path: Path) -> None:
    network = sample()
    empty = {
        "fired_burst": np.empty(0, np.int64),
        "fired_id": np.empty(0, np.uint32),
        "fired_mp": np.empty(0, np.float32),
    }
    early = Stimulus(memories_early=np.array([7], np.uint32))
    trace = Trace("t", network, np.array([1]), **empty, plan={1: early, 2: Stimulus()}, exact=True)
    write_trace(tmp_path / "t", trace)
    found = read_trace(tmp_path / "t")
    assert found.network.features == network.features
    assert learnt(found.network) == learnt(network)
    assert found.network.synapses.rules.tolist() == [0, 2, 1]
    assert found.plan[1].memories_early.tolist() == [7]
    assert "memories_early" not in json.loads((tmp_path / "t.json").read_text())["stimulus"]["2"]


def copied(name: str, folder: Path) -> Path:
    """A recording of features in a folder of its own."""
    for suffix in ("npz", "json", "genome.json.gz"):
        shutil.copy(GOLDEN / "features" / f"{name}.{suffix}", folder / f"t.{suffix}")
    return folder / "t"


def test_a_recording_takes_features_from_the_genome_beside_it(tmp_path: Path) -> None:
    path = copied("mem2_11", tmp_path)
    trace = read_trace(path)
    indices = {area.name: area.index for area in trace.network.areas}
    assert trace.network.features.memory_order == (indices["mN"], indices["mM"])
    assert [burst for burst, stimulus in trace.plan.items() if len(stimulus.memories_early)] == [15, 20, 28, 35]
    assert trace.plan[15].memories_early.tolist() == [indices["mN"]]
    assert trace.recorded.keys() >= {"dyn_burst", "dyn_weight", "mem_id", "newn_area"}
    (tmp_path / "t.genome.json.gz").unlink()
    bare = read_trace(path).network
    assert (bare.features.areas, bare.plastic_mappings) == ({}, ())


def test_the_precision_of_a_recording_is_a_feature() -> None:
    assert read_trace(GOLDEN / "features" / "int8w_12").network.features == Features(clamp_potentials=True)


@pytest.mark.parametrize("name", ["t_leak_coefficients", "mem_id"])
def test_an_array_of_features_of_the_wrong_length_is_refused(name: str, tmp_path: Path) -> None:
    path = copied("rml_11" if name.startswith("t_") else "mem1_11", tmp_path)
    with np.load(tmp_path / "t.npz") as stored:
        arrays = dict(stored)
    np.savez(tmp_path / "t.npz", **{**arrays, name: arrays[name][:-1]})
    with pytest.raises(TraceError, match="has the wrong shape"):
        read_trace(path)


def test_the_identity_of_a_run_is_what_it_was_without_features_and_another_with_them() -> None:
    network = load_network(ROUND_ONE / "stdp.bpnet")
    fixed_point = ReferenceEngine.create(network).fixed_point

    def digest(other: Network) -> object:
        return run_identity(other, EngineOptions(), fixed_point)["network"]

    assert digest(network) == load_checkpoint(ROUND_ONE / "stdp.checkpoint").identity["network"]
    (mapping,) = network.plastic_mappings
    others = [
        network.replace(features=Features(clamp_potentials=True)),
        network.replace(features=Features(areas={7: AreaFeatures(degeneration=1.0)})),
        network.replace(plastic_mappings=(dataclasses.replace(mapping, eta=0.5),)),
        network.replace(plastic_mappings=(dataclasses.replace(mapping, max_weight=1.0),)),
        network.replace(synapses=dataclasses.replace(network.synapses, rules=np.ones(48, np.uint16))),
    ]
    assert len({digest(other) for other in (network, *others)}) == 6


def test_early_memories_belong_to_the_stimulus_of_a_run() -> None:
    early = Stimulus(memories_early=np.array([7], np.uint32))
    assert stimulus_so_far({1: early}, 3) != stimulus_so_far({1: Stimulus()}, 3)


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"areas": {7: AreaFeatures(modulators=(2,))}}, "features.areas"),
        ({"rules": (RuleFeatures(gains=(2,)), RuleFeatures())}, "features.rules"),
        ({"rules": (RuleFeatures(),)}, "synapses.rules"),
        ({"associative": (AssociativeMapping(7, 8, 2),)}, "features.associative"),
        ({"associative": (AssociativeMapping(7, 8, 0, rule=3),)}, "features.associative"),
        ({"modulators": ()}, "plastic_mappings"),
    ],
)
def test_features_that_name_what_does_not_exist_are_refused(changes: Any, where: str) -> None:
    network = sample()
    idle: Any = {"areas": {}, "rules": (RuleFeatures(), RuleFeatures()), "associative": ()}
    features = dataclasses.replace(network.features, **idle)
    ReferenceEngine.create(network.replace(features=features))
    with pytest.raises(NetworkError, match="that do not exist") as caught:
        ReferenceEngine.create(network.replace(features=dataclasses.replace(features, **changes)))
    assert caught.value.where == where


def test_a_connectome_whose_genome_is_of_another_network_is_refused(tmp_path: Path) -> None:
    connectome = read_connectome(GOLDEN / "features" / "degen_11.connectome")
    fewer = connectome.network.replace(areas=connectome.network.areas[:7])
    own = dataclasses.replace(Connectome.of(fewer), genome=connectome.genome)
    write_connectome(tmp_path / "n.connectome", own)
    with pytest.raises(ConnectomeError, match="the embedded genome is of another network"):
        read_connectome(tmp_path / "n.connectome", apply_flags=True)


NEEDS = {path.name.partition("_")[0]: path for path in reversed(FEATURES)}


@pytest.mark.parametrize("kind", sorted(NEEDS))
@pytest.mark.parametrize("backend", ["cpu", "reference"])
def test_a_backend_runs_a_feature_or_refuses_it_by_name(backend: str, kind: str) -> None:
    network = read_trace(NEEDS[kind].with_name(NEEDS[kind].name.removesuffix(".genome.json.gz"))).network
    missing = [section for section in sections_of(network) if section not in MODELLED[backend]]
    assert sections_of(network)
    try:
        with engine_factory(backend)(network, EngineOptions()) as engine:
            engine.step()
        refused = ""
    except BurstproofError as error:
        refused = str(error)
    assert bool(refused) == bool(missing)
    assert all(section.value in refused for section in missing)


def test_every_section_is_needed_by_a_recording() -> None:
    needed = {section for path in FEATURES for section in sections_of(grow(read_genome(path)))}
    assert needed == set(Section) - {Section.INT8}
