"""``burstproof run`` on genomes with features: which they are, and what they did; and ``info``, on what models them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from burstproof.cli.feature_report import used_features
from burstproof.engine.features.support import Section, sections_of
from burstproof.engine.reference import ReferenceEngine
from burstproof.network.files.bpnet import load_network
from burstproof.network.grow.genome import read_genome
from burstproof.network.grow.growth import grow
from suites.support.cli_door import GOLDEN, SMALL, Door, door, recorded
from suites.support.networks.feature_genomes import FEATURES, LEARNING, grown, tree_of
from suites.support.plans import first, thinned

__all__ = ["door"]

pytestmark = pytest.mark.requirement("BE-18", "BE-19")

ALL_FEATURES = Path(__file__).parents[2] / "docs" / "examples" / "all_features.json"
"""Every feature at once: a train drives a homeostat under a gate, memories replay what it did."""

RUN = ("--backend", "reference", "--bursts", 40)


def genome(name: str) -> Path:
    return GOLDEN / "features" / f"{name}.genome.json.gz"


def lines_of(out: str, word: str) -> list[str]:
    """The lines of the report that begin with ``word``, without it."""
    return [line.removeprefix(word).strip() for line in out.splitlines() if line.startswith(f"{word} ")]


def test_a_run_says_each_feature_with_its_parameters(door: Door) -> None:
    answer = door("run", genome("stim_11"), *RUN, "--all")
    assert answer.code == 0, answer.err
    features = lines_of(answer.out, "feature")
    assert "area cB: homeostatic leak: target 0.15, tau 6 bursts, gain 0.6, leak 0...0.9" in features
    assert "area cC: neuro.leak: lk (+120 % at a potential of 50, driven by lk)" in features
    assert "area cA: spike trains: of up to 3 firings" in features
    assert "mapping cA -> cB: gate: gt (+70 %, driven by gt): 6 synapses" in features
    rewarded = "window 2, reward rw (+90 %, driven by rw), eligibility decay 4 bursts, eta 0.3, weights up to 9.0"
    assert f"mapping cB -> cC: R-STDP: {rewarded}" in features
    assert len(features) == 13


def test_a_plan_says_each_feature_too(door: Door) -> None:
    answer = door("info", "--plan", genome("mem4_11"), "--backend", "cpu")
    assert answer.code == 0, answer.err
    assert lines_of(answer.out, "feature") == lines_of(door("run", genome("mem4_11"), *RUN, "--all").out, "feature")
    assert lines_of(answer.out, "feature") != []


def test_a_run_of_a_connectome_says_that_the_genome_inside_is_not_taken(door: Door) -> None:
    connectome = GOLDEN / "features" / "mem4_11.connectome"
    assert "plasticity and features; --apply-flags takes it" in door("run", connectome, *RUN).out
    applied = door("run", connectome, *RUN, "--apply-flags").out
    assert "not taken" not in applied
    assert lines_of(applied, "feature") != []


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("degen_11", "area cA: degeneration: psp - 0.25 with each firing"),
        (
            "mem4_11",
            "of cA, cB, 2 bursts deep; lifespan 8 + 3, long-term from 12; cT replays cA; cU replays cB",
        ),
        ("mem5_17", "mp_ratio in steps of 60"),
        ("mem6_11", "at most 4 neurons, then none is formed"),
        ("mem6_12", "at most 4 neurons, then one goes"),
        ("assoc_11", "mapping cB -> cC: associative memory, STDP: window 2, weights up to 6.0"),
        ("tworules_11", "mapping cC -> cB: STDP: window 1, frozen"),
        ("syn_11", "transmission gain: tg1 (+120 %, driven by tg1)"),
    ],
)
def test_a_feature_in_words(name: str, said: str) -> None:
    texts = [": ".join(one.values()) for one in used_features(grow(read_genome(genome(name))))]
    assert [text for text in texts if said in text], texts


@pytest.mark.parametrize("path", FEATURES, ids=lambda path: path.name.removesuffix(".genome.json.gz"))
def test_every_genome_of_a_recording_has_its_features_listed(path: Path) -> None:
    network = grow(read_genome(path))
    used = used_features(network)
    assert all(one["where"] and one["feature"] for one in used)
    areas = sum(one["where"].startswith("area") for one in used)
    assert areas >= len(network.features.areas)
    named = sum(one["feature"].startswith("associative") for one in used)
    assert named == len(network.features.associative)


def test_what_modulators_did_is_what_their_drivers_fired(door: Door) -> None:
    document = door("run", genome("stim_11"), *RUN, "--json").document
    firings = {area["name"]: area["firings"] for area in document["areas"]}
    modulators = document["features"]["modulators"]
    assert {one["modulator"]: one["bursts"] for one in modulators} == {
        name: firings[name] for name in ("gt", "lk", "rw", "th")
    }
    assert min(one["bursts"] for one in modulators) > 0


def test_the_range_of_the_leak_is_that_of_the_state(door: Door) -> None:
    document = door("run", genome("rml_11"), *RUN, "--json").document
    network = grow(read_genome(genome("rml_11")))
    with ReferenceEngine.create(network) as engine:
        engine.run(40)
        state = engine.state().features
    assert state is not None
    names = {area.name: area.index for area in network.areas}
    leaks = document["features"]["leaks"]
    assert [one["area"] for one in leaks] == ["cA", "cB", "cC", "cD", "cF"]
    for one in leaks:
        own = state.leak_coefficients[network.neurons.cortical_areas == names[one["area"]]]
        assert (one["least"], one["most"]) == (float(own.min()), float(own.max()))


def test_memories_are_counted(door: Door) -> None:
    answer = door("run", genome("mem2_11"), *RUN, "--json")
    document = answer.document
    memory = document["features"]["memory"]
    live = sum(area["live"] for area in memory["areas"])
    assert memory["formed"] - memory["lost"] == live > 0
    assert memory["long_term"] == memory["twins"] == sum(area["long_term"] for area in memory["areas"]) > 0
    assert memory["synapses_made"] > 0
    assert document["firings"] > sum(area["firings"] for area in document["areas"])
    did = lines_of(door("run", genome("mem2_11"), *RUN).out, "did")
    assert did[0].startswith(f"memories: {memory['formed']} formed, {memory['lost']} lost, ")
    assert did[0].endswith("each injected 2 bursts after its pattern (the released engine: 1 or 2)")
    assert did[-1] == f"associations: {memory['synapses_made']} synapses that the run made are there at the end"


def test_a_record_of_a_run_with_memories_is_replayed_and_drawn(door: Door, tmp_path: Path) -> None:
    record, picture = tmp_path / "record", tmp_path / "raster.svg"
    answer = door("run", genome("mem2t_12"), *RUN, "--record", record, "--raster", picture, "--json")
    assert answer.code == 0, answer.err
    with np.load(record.with_suffix(".npz")) as arrays:
        assert int(arrays["fired_id"].max()) >= 50_000_000
    assert picture.stat().st_size > 0
    assert door("verify", record, "--backend", "reference").code == 0


def test_many_features_are_counted_and_shown_on_request(door: Door, tmp_path: Path) -> None:
    tree = tree_of()
    tree["blueprint"] |= {f"c{number:03}": {"degeneration": 1} for number in range(30)}
    path = tmp_path / "many.json"
    path.write_text(json.dumps(tree))
    out = door("run", path, "--backend", "reference", "--bursts", 1).out
    assert len(lines_of(out, "feature")) == 25
    assert lines_of(out, "feature")[-1] == "and 6 more (--all)"
    assert len(lines_of(door("run", path, "--backend", "reference", "--bursts", 1, "--all").out, "feature")) == 30


def test_a_network_without_features_has_no_such_line(door: Door) -> None:
    answer = door("run", SMALL, "--backend", "reference", "--bursts", 2)
    assert not lines_of(answer.out, "feature") + lines_of(answer.out, "did")
    features = door("run", SMALL, "--backend", "reference", "--bursts", 2, "--json").document["features"]
    assert features == {"used": [], "modulators": [], "leaks": [], "memory": None}


def test_plasticity_is_listed_where_it_is_more_than_stdp() -> None:
    assert used_features(grown(tree_of(rule=LEARNING))) == []
    (one,) = used_features(grown(tree_of(rule={**LEARNING, "plasticity_mode": "rstdp"})))
    assert one["parameters"] == "window 1, no reward, so weights stay"


@pytest.mark.thorough("compiles kernels of its own")
def test_the_range_of_the_engine_is_asked_for_by_name_and_kept_by_a_record(door: Door, tmp_path: Path) -> None:
    """Inhibition lowers potentials below 0 in int8w_12: not under its own precision."""
    record = tmp_path / "record"
    answer = door("run", genome("int8w_12"), *RUN, "--precision", "feagi-int8", "--record", record)
    assert "potentials in fp32 clamped to 0...255" in answer.out
    assert lines_of(answer.out, "feature") == [
        "network: precision feagi-int8: potentials and thresholds clamped to 0...255"
    ]
    assert door("verify", record, "--backend", "cpu").code == 0
    with np.load(record.with_suffix(".npz")) as arrays:
        clamped = arrays["end_membrane_potentials"]
    plain = door("run", genome("int8w_12"), *RUN, "--record", record)
    assert "clamped to" not in plain.out
    with np.load(record.with_suffix(".npz")) as arrays:
        free = arrays["end_membrane_potentials"]
    assert 0 <= clamped.min() <= clamped.max() <= 255
    assert not 0 <= free.min() <= free.max() <= 255


@pytest.mark.requirement("BE-1")
@pytest.mark.parametrize("backend", ["cpu", pytest.param("cuda", marks=pytest.mark.gate("gpu"))])
@pytest.mark.parametrize("precision", thinned(["fp32", "feagi-int8"], "a kernel of its own for the CPU", keep=first(1)))
def test_a_genome_with_all_features_at_once_runs_the_same_on_every_backend_and_reports_them(
    precision: str, backend: str, door: Door
) -> None:
    asked = ("--precision", precision)
    runs = [recorded(door, name, ALL_FEATURES, *asked, bursts=60) for name in ("reference", backend)]
    assert runs[0].differs(runs[1]) == []
    one, other = (run.document["features"] for run in runs)
    assert one == other
    assert set(sections_of(grow(read_genome(ALL_FEATURES)))) == set(Section) - {Section.INT8}
    said = {feature["feature"] for feature in one["used"]}
    assert said >= {"homeostatic leak", "spike trains", "degeneration", "memory", "gate", "transmission gain", "R-STDP"}
    assert said >= {"associative memory, STDP", "neuro.leak", "memory.formation"}
    assert ("precision feagi-int8" in said) == (precision == "feagi-int8")
    assert min(modulator["bursts"] for modulator in one["modulators"]) > 0
    assert one["memory"]["formed"] > one["memory"]["lost"] > 0
    assert one["memory"]["long_term"] > 0
    assert one["memory"]["synapses_made"] > 0
    (leak,) = one["leaks"]
    assert 0.02 <= leak["least"] <= leak["most"] <= 1
    firings = {area["name"] or area["cortical_id"]: area["firings"] for area in runs[0].document["areas"]}
    assert sum(count > 0 for count in firings.values()) >= 12


def test_convert_keeps_features(door: Door, tmp_path: Path) -> None:
    network = tmp_path / "n.bpnet"
    assert door("convert", genome("gate_11"), network).code == 0
    assert load_network(network).features == grow(read_genome(genome("gate_11"))).features
    answer = door("convert", network, tmp_path / "n.connectome")
    assert "the features of the genome (only an embedded genome carries them)" in answer.err


def test_info_says_which_backend_models_which_feature(door: Door) -> None:
    answer = door("info", "--json")
    features: dict[str, Any] = answer.document["features"]
    assert features.keys() == {section.value for section in Section}
    assert all("reference" in backends for backends in features.values())
    text = door("info").out
    assert all(section.value in text for section in Section)


def test_a_run_without_associative_mappings_says_nothing_of_associations(door: Door) -> None:
    answer = door("run", genome("mem4_11"), *RUN)
    assert answer.code == 0, answer.err
    assert any(line.startswith("memories: ") for line in lines_of(answer.out, "did"))
    assert "associations" not in answer.out
