"""``import burstproof``: every public name, the page that describes it, and the examples (BE-22)."""

from __future__ import annotations

import ast
import inspect
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import burstproof as bp
from burstproof.engine.state import NO_PLAN, NO_STIMULUS
from burstproof.errors import InputError, NetworkError, StimulusError
from suites.support.plans import thinned

pytestmark = pytest.mark.requirement("BE-22")

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
EXAMPLES = sorted((DOCS / "examples").glob("*.py"))


def _quick(_: int, example: Path) -> bool:
    return example.stem == "own_kernel"


GOLDEN = ROOT / "suites" / "data" / "golden"
FENCE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "impl"), str(ROOT)])}
EXAMPLE_LIMIT_S = 240
HOMES = {"engine": "Session", "network": "Network", "stimulation": "Stimulation", "recording": "RunRecording"}


def chain() -> bp.Network:
    """Three neurons, each of which makes the next one fire a burst later."""
    return bp.Network.from_arrays(
        neurons={"thresholds": [1.0, 1.0, 2.0]},
        synapses={"source_neurons": [0, 1], "target_neurons": [1, 2], "weights": [1.0, 2.0]},
        areas={"first": [0], "rest": slice(1, None)},
    )


def opened(network: bp.Network, **options: Any) -> bp.Session:
    return bp.open_engine(network, "reference", **options)


def run_python(*arguments: str, folder: Path) -> str:
    """Standard output of a fresh Python."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=EXAMPLE_LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def described() -> Iterator[tuple[str, str]]:
    """Every call of docs/api.md as the dotted name and its parameters."""
    for block in FENCE.findall((DOCS / "api.md").read_text(encoding="utf-8")):
        yield from re.findall(r"^(\S+?)\((.*?)\)$", block, re.MULTILINE | re.DOTALL)


def parameters(text: str) -> str:
    """Parameters in one form."""
    return ast.unparse(ast.parse(f"def f({text}): pass").body[0].args)  # type: ignore[attr-defined]


def default_in_words(value: object) -> str:
    return "{}" if value is NO_PLAN else "Stimulus()" if value is NO_STIMULUS else repr(value)


def parameters_of(function: Any) -> str:
    """Parameters of ``function`` without annotations, in the same form."""
    found = [item for item in inspect.signature(function).parameters.values() if item.name != "self"]
    if inspect.isclass(function) and function is bp.Stimulus:
        return ", ".join(item.name for item in found)
    parts, keywords = [], False
    for item in found:
        if item.kind is item.KEYWORD_ONLY and not keywords:
            parts.append("*")
            keywords = True
        stars = "**" if item.kind is item.VAR_KEYWORD else ""
        default = "" if item.default is item.empty else f"={default_in_words(item.default)}"
        parts.append(f"{stars}{item.name}{default}")
    return parameters(", ".join(parts))


@pytest.mark.parametrize(("name", "text"), list(described()), ids=[name for name, _ in described()])
def test_a_call_of_the_page_has_the_parameters_of_the_code(name: str, text: str) -> None:
    home, *path = name.split(".")
    found: Any = bp if home == "bp" else getattr(bp, HOMES[home])
    for part in path:
        found = getattr(found, part)
    assert parameters(text) == parameters_of(found)


def test_the_page_names_everything_public_and_nothing_else() -> None:
    page = (DOCS / "api.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\bbp\.(\w+)", page)) == set(bp.__all__)
    methods = {f"{home}.{name}" for home, kind in HOMES.items() for name in vars(getattr(bp, kind)) if home == "engine"}
    public = {name for name in methods if not name.split(".")[1].startswith("_")}
    shown = {name for name, _ in described()} | {"engine.burst_count"}
    assert public <= shown


@pytest.mark.parametrize("name", bp.__all__)
def test_a_public_name_is_there_and_says_what_it_is(name: str) -> None:
    assert inspect.getdoc(getattr(bp, name))
    assert name in dir(bp)


def test_what_help_names_exists() -> None:
    """The laws of a synthetic network are described elsewhere."""
    said = "".join(inspect.getdoc(getattr(bp, name)) or "" for name in bp.__all__)
    named = re.findall(r"`(burstproof(?:\.\w+)+)`", said)
    assert "burstproof.network.synthetic.spec.SyntheticSpec" in named
    for name in named:
        resolve_name(name)


def test_another_name_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="nothing_like_it"):
        bp.nothing_like_it  # noqa: B018


def test_the_import_loads_no_heavy_module(tmp_path: Path) -> None:
    heavy = "import sys, burstproof; print([m for m in ('numpy', 'numba', 'cupy', 'wgpu', 'rich') if m in sys.modules])"
    assert run_python("-c", heavy, folder=tmp_path) == "[]\n"


@pytest.mark.parametrize("example", thinned(EXAMPLES, "seconds each", keep=_quick), ids=lambda path: path.stem)
def test_an_example_runs(example: Path, tmp_path: Path) -> None:
    out = run_python(str(example), folder=tmp_path)
    if example.stem == "own_kernel" and "not here" in out:
        pytest.skip(out.splitlines()[-1])
    assert "DIFFER" not in out
    if example.stem == "multi_gpu":
        assert "state: agrees" in out
    for picture in tmp_path.glob("*.svg"):
        ElementTree.parse(picture)


def test_the_first_example_is_short_and_its_network_lives(tmp_path: Path) -> None:
    example = DOCS / "examples" / "ei_network.py"
    assert len(example.read_text(encoding="utf-8").splitlines()) < 40
    rates = re.findall(r"^(?:ex|in)\w+ory .* ([\d.]+) %", run_python(str(example), folder=tmp_path), re.MULTILINE)
    assert len(rates) == 2
    assert all(0.5 < float(rate) < 25 for rate in rates)
    assert (tmp_path / "ei_network.svg").exists()


def test_the_network_of_the_page_does_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = FENCE.findall((DOCS / "own-network.md").read_text(encoding="utf-8"))
    exec(compile(example, "own-network.md", "exec"), {})
    assert capsys.readouterr().out.splitlines() == re.findall(r"\)  # (.*)$", example, re.MULTILINE)


def test_the_stimulus_of_the_page_starts_a_seeded_network() -> None:
    (shown,) = re.findall(r"`(\{b: .*made\.start.*\})`", (DOCS / "api.md").read_text("utf-8"))
    made = bp.seeded_network("weights", 20_000, 50)
    with bp.open_engine(made.network(), "cpu") as engine:
        counts = engine.run(20, eval(shown, {"bp": bp, "made": made})).fired_counts
    assert abs(counts.mean() / 200 - 1) < 0.2


def test_the_modules_of_the_page_have_the_names() -> None:
    text = (DOCS / "network.md").read_text("utf-8")
    rows = re.findall(r"^\| .* \| `(\w+)[.(].*` \| `([\w.]+)` \|", text, re.MULTILINE)
    assert len(rows) == 6
    named = [("SyntheticSpec", "synthetic.spec"), ("driven_spec", "synthetic.spec"), ("GenomePolicy", "grow.blueprint")]
    for name, module in [*rows, *named, ("with_features", "grow.genome_features")]:
        assert hasattr(import_module(f"burstproof.network.{module}"), name)


def test_the_columns_of_the_page_are_those_of_the_tables() -> None:
    from burstproof.network.schema import NEURON_FIELDS, SYNAPSE_FIELDS

    page = (DOCS / "own-network.md").read_text(encoding="utf-8")
    for heading, fields in (("## Neurons", NEURON_FIELDS), ("## Synapses", SYNAPSE_FIELDS)):
        table = page.split(heading)[1].split("##")[0]
        named = [name for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE) for name in row.split(", ")]
        assert {name.strip("`") for name in named} == set(fields)


def test_arrays_become_a_network_with_named_areas() -> None:
    network = chain()
    assert repr(network) == "Network(3 neurons, 2 synapses, 2 areas, burst count 0)"
    assert network.ids_of("rest").tolist() == [1, 2]
    assert network.ids_of(network.areas[0].cortical_id).tolist() == [0]
    assert network.neurons.cortical_areas.tolist() == [7, 8, 8]
    masked = bp.Network.from_arrays(
        {"thresholds": [1.0] * 3}, {"source_neurons": [], "target_neurons": []}, {"odd": np.array([False, True, False])}
    )
    assert masked.neurons.cortical_areas.tolist() == [8, 7, 8]


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        ({"neurons": {"thresholds": 1.0}}, ["count"]),
        ({"neurons": {"refractory_periods": [0, 70000, 0]}}, ["refractory_periods[1]", "70000"]),
        ({"neurons": {"threshold": [1.0]}}, ["threshold", "thresholds"]),
        ({"synapses": {"source_neurons": [0]}}, ["target_neurons"]),
        ({"synapses": {"source_neurons": [0], "target_neurons": [3]}}, ["target_neurons[0]", "0...2"]),
        ({"synapses": {"source_neurons": [0], "target_neurons": [1], "delay_bursts": 256}}, ["256", ", 1...255"]),
        ({"synapses": {"source_neurons": [0], "target_neurons": [1], "delay_bursts": 0}}, ["bursts[0]", " 1...255"]),
        ({"neurons": {"thresholds": [1.0, np.nan, 1.0]}}, ["neurons.thresholds[1]", "NaN"]),
        ({"neurons": {"excitabilities": np.nan}, "count": 3}, ["neurons.excitabilities[0]", "NaN"]),
        ({"synapses": {"source_neurons": [0.5], "target_neurons": [1]}}, ["source_neurons[0]", "0.5"]),
        ({"areas": {"a": [0, 1], "b": [1]}}, ["overlap", "'b'", "got 1"]),
        ({"areas": {"a": [3]}}, ["not neurons", "'a'"]),
        ({"areas": {"a": [0]}, "neurons": {"cortical_areas": [7, 7, 7]}}, ["twice"]),
        ({"neurons": None}, ["neurons", "mapping"]),
        ({"areas": {7: [0]}}, ["areas", "names"]),
        ({"neurons": {"leak_coefficients": [[0], [0, 1]]}}, ["neurons", "different lengths"]),
        ({"neurons": {"thresholds": np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0])}}, ["thresholds", "masked"]),
        ({"neurons": {}, "count": -1}, ["count", "-1", "0..."]),
        ({"neurons": {}, "count": 1.5}, ["count", "1.5"]),
        ({"areas": {"a": slice(0, 3, 0)}}, ["'a'", "slice"]),
        ({"areas": {"a": range(2**40)}}, ["'a'", "ids in 0...2"]),
        ({"areas": {"a": {"neurons": [0], "dimensions": (1, -1, 1)}}}, ["'dimensions'", "-1"]),
        ({"areas": {"a": {"neurons": [0], "neurons_per_voxel": "x"}}}, ["'neurons_per_voxel'", "'x'"]),
        ({"areas": {"a": {"neurons": [0], "cortical_id": 5}}}, ["'cortical_id'", "5"]),
        ({"areas": {"a": {"neurons": [0], "mp_driven_psp": 1}}}, ["'mp_driven_psp'", "True, False"]),
        ({"areas": {n: {"neurons": [i], "cortical_id": "x"} for i, n in enumerate("ab")}}, ["same", "'a', 'b'"]),
        ({"plastic_mappings": ("x",)}, ["plastic_mappings", "'x'"]),
        ({"plastic_mappings": (bp.PlasticMapping([1]),)}, ["plastic_mappings[0].synapses", "0...0"]),  # type: ignore[arg-type]
        ({"plastic_mappings": (bp.PlasticMapping(np.array([0]), constant="x"),)}, ["[0].constant", "'x'"]),  # type: ignore[arg-type]
    ],
)
def test_arrays_that_make_no_network_are_refused(change: dict[str, Any], parts: list[str]) -> None:
    arrays = {
        "neurons": {"thresholds": [1.0, 1.0, 1.0]},
        "synapses": {"source_neurons": [0], "target_neurons": [1]},
        **change,
    }
    with pytest.raises(NetworkError) as caught:
        bp.Network.from_arrays(**arrays)
    assert all(part in str(caught.value) for part in parts), caught.value


def test_stimulus_goes_in_by_id_and_by_area() -> None:
    drive = bp.Stimulation(chain()).add(1, area="first", bursts=1).add([3, 4], ids=[1, 2], bursts=range(1, 6, 4))
    drive.force(ids=2, bursts=5)
    assert repr(drive) == "Stimulation(2 bursts, 1 to 5)"
    assert drive[1].ids.tolist() == [0, 1, 2]
    assert drive[1].amounts.tolist() == [1, 3, 4]
    assert drive[5].forced.tolist() == [2]
    drive.add(1, ids=[0], bursts=9)
    assert list(drive) == [1, 5, 9]
    text = bp.Stimulation(chain()).add(2, ids="0,1-2", bursts="3-9/3,11")
    assert (list(text), text[3].ids.tolist()) == ([3, 6, 9, 11], [0, 1, 2])


@pytest.mark.parametrize(
    "given",
    [
        {"amount": 1},
        {"amount": 1, "ids": [0], "area": "first"},
        {"amount": 1, "ids": [3]},
        {"amount": 1, "ids": [-1]},
        {"amount": 1, "ids": [0.5]},
        {"amount": 1, "area": "frst"},
        {"amount": [1, 2], "ids": [0]},
        {"amount": float("nan"), "ids": [0]},
        {"amount": 1e39, "ids": [0]},
        {"amount": 1, "ids": [0], "bursts": 0},
        {"amount": 1, "ids": [0], "bursts": [1.5]},
        {"amount": 1, "ids": [0], "bursts": "0-3"},
        {"amount": 1, "ids": [0], "bursts": "1-"},
        {"amount": 1, "ids": "2-3"},
        {"amount": 1, "ids": [[0], [0, 1]]},
        {"amount": 1, "area": 5},
        {"amount": 1j, "ids": [0]},
        {"amount": "3", "ids": [0]},
        {"amount": 1, "ids": [0], "bursts": 1.5},
        {"amount": 1, "ids": [0], "bursts": None},
        {"amount": 1, "ids": [0], "bursts": b"1"},
        {"amount": 1, "ids": [0], "bursts": 2**70},
    ],
    ids=str,
)
def test_a_stimulus_that_cannot_be_is_refused_when_it_is_built(given: dict[str, Any]) -> None:
    with pytest.raises((StimulusError, NetworkError)):
        bp.Stimulation(chain()).add(**{"bursts": 1, **given})


@pytest.mark.parametrize(
    ("given", "cure"),
    [
        ({"amount": [1, 2], "ids": [0]}, "Give one amount for all neurons, or one for each"),
        ({"amount": 1, "ids": [3]}, "area=NAME takes the neurons of an area"),
        ({"amount": 1, "ids": [True, False, True]}, r"np\.flatnonzero\(mask\)"),
    ],
)
def test_a_stimulus_that_is_refused_says_what_would_do(given: dict[str, Any], cure: str) -> None:
    with pytest.raises(StimulusError, match=cure):
        bp.Stimulation(chain()).add(bursts=1, **given)


def test_a_run_gives_spikes_potentials_statistics_and_a_picture(tmp_path: Path) -> None:
    drive = bp.Stimulation(chain()).add(1, area="first", bursts=range(1, 4))
    with opened(chain(), stimulus=drive) as engine:
        assert repr(engine).startswith("Session(reference: asked for; after burst 0 of Network(3 neurons")
        recording = engine.run(6, drive, watch="rest")
        assert engine.burst_count == 6
    assert repr(recording) == "RunRecording(bursts 1 to 6, 9 firings)"
    bursts, ids = recording.spikes()
    assert (bursts.dtype, ids.dtype) == (np.int64, np.uint32)
    assert list(zip(bursts.tolist(), ids.tolist(), strict=True)) == sorted(
        (b + i, i) for b in (1, 2, 3) for i in range(3)
    )
    assert recording.spikes("first")[0].tolist() == [1, 2, 3]
    assert recording.watched_ids.tolist() == [1, 2]
    assert recording.watched_potentials.shape == (6, 2)
    found = bp.statistics(recording)
    assert (found["rest"].firings, found["first"].rate, found.firings) == (6, 0.5, 9)
    assert "rest" in str(found)
    with pytest.raises(InputError, match=r"no area of this name .*first, rest"):
        found["nowhere"]
    picture = bp.raster(recording, tmp_path / "x.svg", title="chain")
    assert ElementTree.parse(picture).getroot().findtext("{http://www.w3.org/2000/svg}title") == "chain"
    with pytest.raises(InputError, match="extension"):
        bp.raster(recording, tmp_path / "x.gif")


def test_watched_potentials_are_those_of_the_state_and_change_no_result() -> None:
    network = bp.synthetic(200, 10, seed=2, threshold=4.0, leak=0.3, inhibitory_fraction=0.2)
    drive = bp.Stimulation(network).add(3, ids=range(0, 200, 3), bursts=range(1, 21))
    with opened(network) as plain, opened(network) as watched:
        expected = plain.run(20, drive)
        found = watched.run(20, drive, watch=[7, 3])
        assert np.array_equal(found.spikes(), expected.spikes())
        assert found.watched_potentials[-1].tolist() == plain.state().membrane_potentials[[7, 3]].tolist()
        assert not plain.state().differences(watched.state())
    with opened(network) as none:
        assert none.run(0, watch=[1]).watched_potentials.shape == (0, 1)


@pytest.mark.parametrize("backend", ["reference", "cpu"])
def test_watching_copies_no_state(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with bp.open_engine(chain(), backend) as engine:
        monkeypatch.setattr(engine.engine, "state", None)
        drive = bp.Stimulation(chain()).add(1, ids=[2], bursts=1)
        assert engine.run(2, drive, watch="rest").watched_potentials.tolist() == [[0, 1], [0, 1]]


def test_a_record_saved_from_python_replays(tmp_path: Path) -> None:
    drive = bp.Stimulation(chain()).add(1.5, ids=[0], bursts=1).force(ids=[2], bursts=2)
    with opened(chain(), stimulus=drive) as engine:
        recording = engine.run(4, drive)
        npz, document = engine.save_record(recording, tmp_path / "mine", drive)
        assert (npz.name, document.name) == ("mine.npz", "mine.json")
        result = bp.verify(tmp_path / "mine", "cpu")
        assert (result.agrees, result.bursts) == (True, 4)
        engine.save_record(recording, tmp_path / "wrong", dict.fromkeys((1, 2), bp.Stimulus()))
        assert not bp.verify(tmp_path / "wrong", "reference").agrees
        engine.step()
        with pytest.raises(InputError, match=r"every burst up to the last one done .*allowed: bursts 1 to 5"):
            engine.save_record(recording, tmp_path / "mine", drive)
    with opened(chain(), stimulus=drive) as engine:
        counts = engine.run(4, drive, record="counts")
        with pytest.raises(InputError, match=r"another network.*Save it with the session that made it"):
            engine.save_record(recording, tmp_path / "mine", drive)
        with pytest.raises(InputError, match="no fired lists"):
            engine.save_record(counts, tmp_path / "mine", drive)


def test_a_record_without_the_stimulus_of_its_bursts_is_refused(tmp_path: Path) -> None:
    drive = bp.Stimulation(chain()).add(1, ids=[0], bursts=2).force(ids=[2], bursts=4)
    with opened(chain()) as ran, opened(chain()) as stepped:
        recording = ran.run(8, drive, watch=[0])
        for given, burst in (({}, 2), ({2: drive[2]}, 4), ({4: drive[4]}, 2)):
            with pytest.raises(InputError, match=rf"put into burst {burst}, .* Pass stimulus=, all that run and step"):
                ran.save_record(recording, tmp_path / "r", given)
        ran.save_record(recording, tmp_path / "r", drive)
        assert bp.verify(tmp_path / "r", "reference").agrees
        steps = stepped.recording_of([stepped.step(bp.Stimulus()), stepped.step()])
        stepped.save_record(steps, tmp_path / "s")
        assert bp.verify(tmp_path / "s", "reference").agrees
        steps = stepped.recording_of([stepped.step(ids=[0]) for _ in range(3)])
        with pytest.raises(InputError, match="every burst up to the last"):
            stepped.save_record(steps, tmp_path / "s")
    with opened(chain()) as stepped:
        steps = stepped.recording_of([stepped.step(ids=[0]) for _ in range(3)])
        with pytest.raises(InputError, match="put into burst 1, "):
            stepped.save_record(steps, tmp_path / "s")


def test_a_stimulus_for_bursts_that_are_done_is_refused() -> None:
    drive = {burst: bp.Stimulus(forced=np.array([0], np.uint32)) for burst in (3, 1)}
    with opened(chain()) as engine, opened(chain()) as later:
        engine.run(5)
        with pytest.raises(InputError, match=r"burst 1 is done, .*allowed: 6 or more.*after burst 5"):
            engine.run(5, drive)
        assert engine.burst_count == 5
        engine.run(5, {**drive, 20: drive[1]})
        later.restore(engine.state())
        later.run(5, drive)
    with opened(chain()) as engine:
        for _ in range(3):
            engine.run(5, drive)  # the runs share one stimulus, which the first of them saw
        assert engine.burst_count == 15


def test_a_stimulus_that_is_past_is_passed_over_where_that_says_nothing() -> None:
    """One that puts nothing in, a run of no bursts, and input of a closed loop, which nobody keeps account of."""
    drive = {2: bp.Stimulus(forced=np.array([0], np.uint32))}
    with opened(chain()) as engine:
        engine.run(5, {2: bp.Stimulus()})
        engine.run(5, {2: bp.Stimulus()})
        engine.run(0, drive)
        with pytest.raises(InputError, match="burst 2 is done"):
            engine.run(1, drive)
        with engine.closed_loop() as loop:
            loop.step(forced=np.array([0], np.uint32))
        engine.run(5, drive)
        assert engine.burst_count == 16


def test_every_engine_closes_at_the_end_of_its_block(monkeypatch: pytest.MonkeyPatch) -> None:
    from burstproof.engine.options import EngineOptions
    from burstproof.engine.registry import create_sharded, engine_factory
    from burstproof.engine.sharded.partition import make_partition

    split = create_sharded(chain(), EngineOptions(), make_partition(chain(), 2, "contiguous"))
    for engine in (engine_factory("cpu")(chain(), EngineOptions()), split):
        closed: list[str] = []
        monkeypatch.setattr(engine, "close", lambda engine=engine, closed=closed: closed.append(engine.backend))
        with engine as opened_engine:
            assert opened_engine is engine
            assert closed == []
        assert closed == ["cpu"]


def test_areas_of_arrays_carry_their_flags() -> None:
    arrays: dict[str, Any] = {
        "neurons": {"thresholds": 1.0},
        "synapses": {"source_neurons": [0, 0], "target_neurons": [1, 2]},
    }
    areas = {"in": {"neurons": [0], "psp_uniform_distribution": False, "dimensions": (1, 1, 1)}, "out": [1, 2]}
    network = bp.Network.from_arrays(**arrays, areas=areas, count=3)
    assert network.flags_registered
    assert network.areas[0].psp_uniform_distribution is False
    with opened(network) as engine:
        engine.step(ids=[0])
        fired = engine.step().fired_ids
    assert fired.tolist() == []  # the contribution of 1 is divided by 2
    plain = bp.Network.from_arrays(**arrays, areas={"in": [0], "out": [1, 2]}, count=3)
    assert not plain.flags_registered
    for wrong in ({"mp_driven_psp": True}, {"neurons": [0], "index": 3}, {"neurons": [0], "mp_driven_psp": "yes"}):
        with pytest.raises(NetworkError, match="'in'"):
            bp.Network.from_arrays(**arrays, areas={"in": wrong}, count=3)


def test_steps_do_what_a_run_does_and_states_go_across() -> None:
    drive = bp.Stimulation(chain()).add(1, ids=[0], bursts=1).force(ids=[2], bursts=2)
    with opened(chain()) as whole, opened(chain()) as stepped, opened(chain()) as later:
        expected = whole.run(4, drive)
        done = [stepped.step(amount=1, ids=[0]), stepped.step(area=None, ids=[2]), stepped.step()]
        later.restore(stepped.state())
        done.append(later.step())
        recording = stepped.recording_of(done)
        assert np.array_equal(recording.spikes(), expected.spikes())
        assert not later.state().differences(whole.state())
        assert bp.statistics(recording).firings == len(expected.fired_ids)
        with pytest.raises(InputError, match="twice"):
            stepped.step(drive[1], ids=[0])


def test_a_closed_loop_does_what_steps_do_and_shows_the_areas_asked_for() -> None:
    with opened(chain()) as stepped, opened(chain()) as looped, looped.closed_loop() as loop:
        with looped.closed_loop("rest") as rest, looped.closed_loop(["first", "rest"]) as both:
            assert loop.step(np.array([0], np.uint32), np.array([1], np.float32)).tolist() == [0]
            assert rest.step(forced=np.array([0], np.uint32)).tolist() == [1]
            assert both.step(np.array([0], np.uint32), np.array([1], np.float32)).tolist() == [0, 1, 2]
        for given in ({"amount": 1, "ids": [0]}, {"ids": [0]}, {"amount": 1, "ids": [0]}):
            stepped.step(**given)
        assert looped.burst_count == 3
        assert not looped.state().differences(stepped.state())
        with pytest.raises(InputError, match="closed loop has ended"):
            rest.step()
        with pytest.raises(NetworkError, match="elsewhere"):
            looped.closed_loop("elsewhere")


def test_without_fired_lists_there_are_no_spikes() -> None:
    drive = bp.Stimulation(chain()).add(1, ids=[0], bursts=1)
    with opened(chain()) as engine:
        recording = engine.run(3, drive, record="counts")
        assert recording.fired_counts.tolist() == [1, 1, 1]
        with pytest.raises(InputError, match="no fired lists"):
            recording.spikes()
        with pytest.raises(InputError, match="no fired lists"):
            bp.statistics(recording)
        for call in (bp.statistics, lambda made: bp.raster(made, "r.svg")):
            with pytest.raises(InputError, match=r"recording of no bursts .* with record='fired', the default"):
                call(engine.run(3, record="none"))
        with pytest.raises(InputError, match="none, counts, fired"):
            engine.run(1, record="all")


def test_bounds_follow_from_the_declared_stimulus() -> None:
    drive = bp.Stimulation(chain()).add(300.5, ids=[0], bursts=1)
    with opened(chain(), stimulus=drive) as engine:
        assert (engine.engine.options.max_stimulus, engine.engine.options.fractional_stimulus) == (300.5, True)
        assert len(engine.run(1, drive).fired_ids) == 1
    with opened(chain()) as engine, pytest.raises(StimulusError):
        engine.run(1, drive)


@pytest.mark.parametrize(
    "options",
    [
        {"backend": "gpu"},
        {"precision": "fp8"},
        {"profile": "feagi"},
        {"shards": 0},
        {"shards": 2, "devices": [0, 1]},
        {"devices": []},
        {"backend": "cpu", "devices": [0]},
        {"backend": "reference", "shards": 2},
        {"shards": 2, "strategy": "best"},
        {"strategy": "metis"},
        {"backend": "reference", "threads": 2},
        {"max_stimulus": -1.0},
        {"max_stimulus": 10**400},
        {"profile": {}},
        {"backend": ["cpu"]},
        {"fractional_stimulus": "x"},
        {"emulate_batch_path": 2},
        {"threads": -1},
        {"threads": 1.5},
        {"shards": "2"},
        {"devices": 0},
        {"firing_rate": "x"},
        {"firing_rate": False, "backend": "cpu"},
        {"firing_rate": np.array([0.1, 0.2]), "backend": "cpu"},
        {"firing_rate": 2, "backend": "reference"},
        {"stimulus": None},
        {"stimulus": {1: None}},
        {"stimulus": {"1": bp.Stimulus()}},
    ],
    ids=lambda options: str(options)[:100],
)
def test_options_that_cannot_be_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        bp.open_engine(chain(), **options)


@pytest.mark.parametrize("backend", ["cpu", "reference"])
@pytest.mark.parametrize(
    "misuse",
    [
        lambda e: e.run(1.5),
        lambda e: e.run("x", watch=[0]),
        lambda e: e.run(True),
        lambda e: e.run(10**30),
        lambda e: e.closed_loop(5),
        lambda e: e.run(1, None),
        lambda e: e.run(1, "x"),
        lambda e: e.run(1, {"1": bp.Stimulus()}),
        lambda e: e.step({1: bp.Stimulus()}),
        lambda e: e.step(bp.Stimulus(np.array([0]), np.array(["x"]))),
        lambda e: e.recording_of([1]),
        lambda e: e.recording_of([e.step(), e.step()][::-1]),
        lambda e: e.save_record(None, "r"),
        lambda e: e.save_record(e.run(0), "r"),
        lambda e: e.save_record(e.run(1), "."),
        lambda e: e.save_record(opened(chain()).run(e.run(1).bursts.size), "r"),
        lambda e: e.restore(None),
        lambda e: e.restore(opened(bp.synthetic(10, 2)).state()),
    ],
)
def test_misuse_of_an_engine_is_one_error_and_leaves_no_file(
    backend: str, misuse: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with bp.open_engine(chain(), backend) as engine, pytest.raises(InputError):
        misuse(engine)
    assert not list(tmp_path.iterdir())


def test_nobody_is_watched() -> None:
    with opened(chain()) as engine:
        assert engine.run(2, watch=[]).watched_potentials.shape == (2, 0)


def test_a_closed_engine_says_so() -> None:
    with opened(chain()) as engine:
        state = engine.state()
    engine.close()
    for call in (lambda: engine.run(1), engine.step, engine.state, lambda: engine.restore(state)):
        with pytest.raises(InputError, match="closed"):
            call()


@pytest.mark.parametrize("backend", ["cpu", "reference"])
def test_a_loop_ends_with_its_engine(backend: str) -> None:
    engine = bp.open_engine(chain(), backend)
    loop = engine.closed_loop()
    loop.step()
    engine.close()
    with pytest.raises(InputError, match="the engine is closed"):
        loop.step()


def test_an_engine_in_use_is_refused_to_another_thread() -> None:
    """The run goes on; its own callback may ask the engine, another thread may when it is over. So with a loop."""
    refused: list[BaseException] = []

    def ask() -> None:
        for call in (engine.step, loop.step):
            try:
                call()
            except InputError as error:
                refused.append(error)

    def told(done: int) -> None:
        engine.state()
        thread = threading.Thread(target=ask)
        thread.start()
        thread.join()

    with opened(chain()) as engine, engine.closed_loop() as loop:
        engine.run(3, progress=told)
        assert len(refused) >= 2
        assert [str(error) for error in refused] == [str(refused[0])] * len(refused)
        assert "another thread is using the engine" in str(refused[0])
        assert engine.burst_count == 3
        ask()
        assert engine.burst_count == 5


def test_a_loop_is_not_closed_while_another_thread_uses_the_engine() -> None:
    refused: list[BaseException] = []

    def close() -> None:
        try:
            loop.close()
        except InputError as error:
            refused.append(error)

    def told(done: int) -> None:
        thread = threading.Thread(target=close)
        thread.start()
        thread.join()

    with opened(chain()) as engine, engine.closed_loop() as loop:
        engine.run(1, progress=told)
        assert ["another thread is using the engine" in str(error) for error in refused] == [True]
        loop.step()
        assert engine.burst_count == 2


def test_a_state_of_other_stimulus_bounds_names_them_and_goes_on_with_them() -> None:
    with bp.open_engine(chain(), "cpu", fractional_stimulus=True) as engine:
        engine.run(3)
        state = engine.state()
    named = pytest.raises(NetworkError, match="max_stimulus=255 and fractional_stimulus=True")
    with bp.open_engine(chain(), "reference") as engine, named:
        engine.restore(state)
    with bp.open_engine(chain(), "reference", max_stimulus=255, fractional_stimulus=True) as engine:
        engine.restore(state)
        assert engine.burst_count == 3


@pytest.mark.parametrize(
    ("option", "wrong"), [("threads", -1), ("max_stimulus", -1.0), ("fractional_stimulus", 1), ("firing_rate", 3.0)]
)
def test_a_wrong_option_is_named_as_it_was_given(option: str, wrong: Any) -> None:
    with pytest.raises(InputError, match=rf"^{option}: not a "):
        bp.open_engine(chain(), "cpu", **{option: wrong})


def test_a_network_without_areas_says_so() -> None:
    with pytest.raises(NetworkError, match=r"names no areas.*ids of neurons"):
        bp.synthetic(10, 2).replace(areas=()).ids_of("motor")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize(("threads", "said"), [(1, "went on"), (2, "stayed in the process")])
def test_a_forked_process_has_no_threads_of_the_engine(threads: int, said: str) -> None:
    """It says so and does not wait for them; an engine without any goes on there."""
    program = f"""if True:
        import os, sys
        import burstproof as bp
        engine = bp.open_engine(bp.synthetic(3000, 10), "cpu", threads={threads})
        engine.step()
        if not os.fork():
            try:
                engine.step()
                print("went on", flush=True)
            except bp.BurstproofError as error:
                print(error, flush=True)
            engine.close()
            os._exit(0)
        sys.exit(os.wait()[1])
    """
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert said in done.stdout


@pytest.mark.thorough("compiles kernels of its own")
def test_strings_choose_precision_and_shards_change_nothing() -> None:
    drive = bp.Stimulation(chain()).add(1, ids=[0], bursts=1)
    with opened(chain(), precision="fp16") as half, bp.open_engine(chain(), shards=2, strategy="contiguous") as split:
        assert half.engine.options.precision.value == "fp16"
        assert np.array_equal(half.run(4, drive).spikes(), split.run(4, drive).spikes())


def test_devices_are_those_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two GPUs that the driver shows; the engine is only asked for."""
    from burstproof import session
    from burstproof.engine.cuda import engine as cuda_engine
    from burstproof.engine.machine import CudaDevice, CudaFacts, Machine
    from burstproof.engine.reference import ReferenceEngine

    asked: list[Any] = []

    def create(network: bp.Network, options: Any, *, choice: Any) -> ReferenceEngine:
        asked.append((options.cuda.device_id, choice.devices, choice.strategy))
        return ReferenceEngine.create(network, options)

    two = CudaFacts(None, tuple(CudaDevice(number, "H200", (9, 0)) for number in range(2)), (13, 0), (13, 0))
    monkeypatch.setattr(session, "this_machine", lambda: Machine(4, two))
    monkeypatch.setattr(cuda_engine.CudaEngine, "create", create)
    with bp.open_engine(chain(), devices=[1, 0], strategy="dynamic") as engine:
        assert engine.reason == "2 shards, dynamic"
    assert asked == [(1, (1, 0), "dynamic")]
    with pytest.raises(bp.EnvironmentInvalidError, match=r"^backend: .*no CUDA device 5"):
        bp.open_engine(chain(), devices=[5, 0])


@pytest.mark.gate("gpu")
def test_a_gpu_gives_the_same_spikes() -> None:
    drive = bp.Stimulation(chain()).add(1, ids=[0], bursts=1)
    with (
        opened(chain()) as judge,
        bp.open_engine(chain(), "cuda") as engine,
        bp.open_engine(chain(), devices=[0]) as one,
    ):
        expected = judge.run(4, drive).spikes()
        assert np.array_equal(engine.run(4, drive, watch=[2]).spikes(), expected)
        assert np.array_equal(one.run(4, drive).spikes(), expected)


def test_auto_says_why() -> None:
    with bp.open_engine(chain()) as engine:
        assert engine.backend == "cpu"
        assert "a GPU hardly pays off" in engine.reason
    engine.close()


def test_networks_come_from_files_and_go_to_files(tmp_path: Path) -> None:
    genome = GOLDEN / "genomes" / "barebones_genome.json"
    grown = bp.load(genome)
    assert bp.grow(genome, seed=0).synapse_count == grown.synapse_count
    for name in ("x.bpnet", "x.connectome"):
        bp.save(grown, tmp_path / name)
        assert bp.load(tmp_path / name).neuron_count == grown.neuron_count
    with pytest.raises(InputError, match="extension"):
        bp.load("brain.txt")
    with pytest.raises(InputError, match="not grown"):
        bp.grow(tmp_path / "x.bpnet")
    with pytest.raises(InputError, match="genome"):
        bp.save(grown, tmp_path / "x.json")
    with pytest.raises(InputError, match="not a network"):
        bp.save(genome, tmp_path / "x.bpnet")  # type: ignore[arg-type]
    with pytest.raises(NetworkError, match="thresholds"):
        bp.synthetic(100, 2, thresholds=2.0)


def test_a_recording_of_the_real_engine_is_verified() -> None:
    result = bp.verify(GOLDEN / "traces" / "lif_mix", "reference")
    assert result.agrees
    assert result.fired_agree == result.bursts == 151
