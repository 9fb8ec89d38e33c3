"""``burstproof run``: genomes, connectomes and networks, statistics, records, pictures (BE-18)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from burstproof.cli import run as run_module
from burstproof.cli.arguments import build_parser
from burstproof.cli.progress import Bar
from burstproof.engine.machine import CudaFacts, Machine, Obstacle
from burstproof.engine.reference import ReferenceEngine
from burstproof.engine.trace import read_trace
from burstproof.network.files.connectome import read_connectome
from suites.support.cli_door import BUSY, GENOMES, SMALL, Door, door

__all__ = ["door"]

pytestmark = pytest.mark.requirement("BE-18")


@pytest.mark.parametrize("genome", ["barebones", "essential", "test", "vision"])
def test_a_shipped_genome_runs(door: Door, genome: str) -> None:
    answer = door(
        "run", "--genome", GENOMES / f"{genome}_genome.json", "--backend", "reference", "--bursts", 5, "--json"
    )
    assert answer.code == 0, answer.err
    assert answer.err == ""
    assert answer.document["bursts"] == {"first": 1, "last": 5, "count": 5}
    power = next(area for area in answer.document["areas"] if area["index"] == 1)
    assert power["neurons"] == 1
    assert power["firings"] == power["active"] * round(power["rate"] * 5)
    assert answer.document["firings"] == sum(area["firings"] for area in answer.document["areas"]) > 0


def test_the_statistics_are_those_of_the_engine(door: Door) -> None:
    bursts = 40
    answer = door("run", BUSY, "--backend", "reference", "--bursts", bursts, "--json")
    network = read_connectome(BUSY).network
    engine = ReferenceEngine.create(network)
    fired = [engine.step().fired_ids for _ in range(bursts)]
    area_of = network.neurons.cortical_areas
    assert len(answer.document["areas"]) == len(np.unique(area_of))
    for area in answer.document["areas"]:
        mine = [ids[area_of[ids] == area["index"]] for ids in fired]
        assert area["neurons"] == int((area_of == area["index"]).sum())
        assert area["firings"] == sum(len(ids) for ids in mine)
        assert area["active"] == len(np.unique(np.concatenate(mine)))
        assert area["peak"] == max(len(ids) for ids in mine)
        assert area["rate"] == pytest.approx(area["firings"] / area["neurons"] / bursts)
    assert answer.document["firings"] == sum(len(ids) for ids in fired)


def test_the_text_shows_backend_reason_and_a_row_per_area(door: Door) -> None:
    answer = door("run", SMALL, "--backend", "reference", "--bursts", 3)
    assert answer.code == 0
    assert "reference: asked for" in answer.out
    assert "feagi-2.6" in answer.out
    areas = ("Brain_Power", "Brain_Death", "hope")
    assert [line.split()[0] for line in answer.out.splitlines() if line.startswith(areas)] == ["Brain_Power"]
    assert answer.out.rstrip().endswith("6 more areas did not fire")
    everything = door("run", SMALL, "--backend", "reference", "--bursts", 3, "--all")
    assert sum(line.startswith(areas) for line in everything.out.splitlines()) == 3
    assert "did not fire" not in everything.out


def test_auto_says_why_it_took_the_cpu(door: Door) -> None:
    answer = door("run", SMALL, "--bursts", 2, "--json")
    backend = answer.document["backend"]
    assert (backend["requested"], backend["backend"]) == ("auto", "cpu")
    assert backend["reason"].startswith("a GPU hardly pays off: a burst of ")
    available = {item["backend"]: item["available"] for item in backend["considered"]}
    assert set(available) == {"cuda", "wgpu", "cpu", "reference"}
    for_wgpu = "for wgpu, " in backend["reason"] and "neurons are fewer than gpu_min_neurons" in backend["reason"]
    assert for_wgpu != available["cuda"], "what is not worth CUDA is not worth WGPU"


def test_a_record_replays_and_says_how_it_was_made(door: Door, tmp_path: Path) -> None:
    record = tmp_path / "record"
    answer = door("run", BUSY, "--backend", "reference", "--bursts", 30, "--record", record, "--json")
    assert answer.document["files"] == [f"{record}.npz", f"{record}.json"]
    trace = read_trace(record)
    assert trace.exact
    assert len(trace.bursts) == 30
    assert len(trace.fired_id) == answer.document["firings"]
    assert trace.settings["backend"] == "reference"
    assert trace.settings["backend_reason"] == "asked for"
    assert trace.settings["fallback"] == ""
    assert trace.settings["seed"] == 0
    replayed = door("verify", "--backend", "reference", record)
    assert replayed.code == 0, replayed.err
    assert "agrees" in replayed.out


def test_a_long_run_is_the_same_in_chunks(door: Door, tmp_path: Path) -> None:
    record = tmp_path / "long"
    answer = door("run", BUSY, "--backend", "reference", "--bursts", 600, "--record", record, "--json")
    trace = read_trace(record)
    engine = ReferenceEngine.create(read_connectome(BUSY).network)
    whole = engine.run(600)
    assert np.array_equal(trace.fired_id, whole.fired_ids)
    assert np.array_equal(trace.bursts, whole.bursts)
    assert answer.document["firings"] == len(whole.fired_ids)


def test_stimulus_reaches_the_network_and_the_record(door: Door, tmp_path: Path) -> None:
    record = tmp_path / "stimulated"
    arguments = ["run", BUSY, "--apply-flags", "--backend", "reference", "--bursts", 12, "--json"]
    quiet = door(*arguments)
    loud = door(*arguments, "--stimulate", "1001-1012/3:0-40=2.5", "--force", "1004,1006:@cA", "--record", record)
    assert loud.code == 0, loud.err
    assert loud.document["stimulus"] == {"bursts": 5, "max_stimulus": 255.0, "fractional_stimulus": True}
    area = next(area for area in loud.document["areas"] if area["name"] == "cA")
    assert area["peak"] == area["neurons"]
    assert loud.document["firings"] > quiet.document["firings"]
    assert sorted(read_trace(record).plan) == [1001, 1004, 1006, 1007, 1010]
    assert door("verify", "--backend", "reference", record).code == 0


def test_the_configuration_decides_what_the_command_line_leaves_open(door: Door) -> None:
    Path("feagi_configuration.toml").write_text("[compute]\nbackend = 'reference'\n", "utf-8")
    answer = door("run", SMALL, "--bursts", 2, "--json")
    assert answer.document["backend"]["backend"] == "reference"
    origin = next(item for item in answer.document["configuration"] if item["key"] == "compute.backend")["origin"]
    assert origin.endswith("feagi_configuration.toml")
    assert door("run", SMALL, "--bursts", 2, "--json", "--backend", "cpu").document["backend"]["backend"] == "cpu"


@pytest.mark.requirement("BE-15")
def test_a_fallback_is_said_on_the_terminal_and_in_the_record(
    door: Door, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_module, "this_machine", lambda: Machine(2, CudaFacts(Obstacle("no driver", "Install it"))))
    record = tmp_path / "fallen"
    arguments = ["run", SMALL, "--backend", "wgpu", "--bursts", 3]
    refused = door(*arguments)
    assert refused.code == 3
    assert "--allow-fallback" in refused.err
    answer = door(*arguments, "--allow-fallback", "--record", record, "--json")
    assert answer.code == 0
    assert answer.err.startswith("burstproof: note: running on cpu: wgpu could not start: ")
    assert "wgpu could not start" in answer.document["backend"]["fallback"]
    assert "wgpu could not start" in str(read_trace(record).settings["fallback"])
    assert "wgpu could not start" in door(*arguments, "--allow-fallback").out


def test_the_svg_raster_shows_every_area_and_every_burst(door: Door, tmp_path: Path) -> None:
    picture = tmp_path / "raster.svg"
    answer = door("run", BUSY, "--apply-flags", "--backend", "reference", "--bursts", 50, "--raster", picture, "--json")
    assert answer.document["files"] == [str(picture)]
    root = ElementTree.parse(picture).getroot()
    texts = [element.text or "" for element in root.iter("{http://www.w3.org/2000/svg}text")]
    for area in answer.document["areas"]:
        assert f"{area['name']} ({area['neurons']})" in texts
    assert {"1001", "1050", "burst", "firings per burst"} <= set(texts)
    description = root.find("{http://www.w3.org/2000/svg}desc")
    assert description is not None
    assert (description.text or "").startswith(f"{answer.document['firings']} firings of {answer.document['neurons']}")
    assert "http" not in picture.read_text("utf-8").replace("http://www.w3.org/2000/svg", "")


def test_a_synthetic_network_runs_and_its_record_replays(door: Door) -> None:
    arguments = ("run", "--synthetic", "10K", "--synapses", "50", "--rate", "0.02", "--backend", "reference")
    answer = door(*arguments, "--seed", 3, "--bursts", 20, "--record", "r", "--raster", "r.svg", "--json")
    assert answer.code == 0, answer.err
    document = answer.document
    assert (document["neurons"], document["synapses"]) == (10_000, 500_000)
    assert document["source"] == {
        "path": "10000 x 50 synapses, rate 0.02, seed 3",
        "kind": "synthetic",
        "seed": 3,
        "apply_flags": False,
    }
    assert document["rate"] == pytest.approx(0.02, rel=0.2)
    assert document["files"] == ["r.npz", "r.json", "r.svg"]
    assert door("verify", "r", "--backend", "reference").code == 0
    again, other = (door(*arguments, "--seed", seed, "--bursts", 20, "--json").document for seed in (3, 4))
    assert again["firings"] == document["firings"] != other["firings"]


def test_a_kind_runs_from_the_first_burst_and_its_record_replays(door: Door) -> None:
    """Sixteen bursts are forced, one for each delay; the source names the kind."""
    arguments = ("run", "--synthetic", "10K", "--kind", "everything", "--rate", "0.02", "--backend", "reference")
    answer = door(*arguments, "--seed", 3, "--bursts", 20, "--record", "r", "--json")
    assert answer.code == 0, answer.err
    assert answer.document["source"]["path"] == "everything, 10000 x 100 synapses, rate 0.02, seed 3"
    assert answer.document["firings"] > 16 * 150
    assert door("verify", "r", "--backend", "cpu").code == 0


def test_the_size_of_a_synthetic_network_takes_a_suffix() -> None:
    sizes = [build_parser().parse_args(["run", "--synthetic", text]).synthetic for text in ("1M", "1.5k", "20K", "7")]
    assert sizes == [1_000_000, 1_500, 20_000, 7]


def test_kernels_being_compiled_are_said_in_the_progress_line(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first burst compiles what is not in the cache; the bar is renamed after it."""
    said: list[str] = []

    @contextmanager
    def task(description: str, _total: int | None = None, *, shown: bool = True) -> Iterator[Bar]:
        said.append(description)
        bar = Bar(None)
        monkeypatch.setattr(bar, "rename", said.append)
        yield bar

    monkeypatch.setattr(run_module, "task", task)
    assert door("run", SMALL, "--backend", "reference", "--bursts", 3).code == 0
    assert said == [
        "compiling kernels, starting reference",
        "compiling kernels, running on reference",
        "running on reference",
        "running on reference",
    ]
