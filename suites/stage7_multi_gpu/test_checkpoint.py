"""Checkpoints: whole files that say when they are damaged or belong to another run, and runs that go on from them."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from burstproof.engine.fixed_point import plan_fixed_point
from burstproof.engine.options import EngineOptions
from burstproof.engine.reference import ReferenceEngine
from burstproof.engine.sharded.checkpoint import (
    Checkpoint,
    check_identity,
    load_checkpoint,
    run_identity,
    save_checkpoint,
    stimulus_so_far,
)
from burstproof.engine.sharded.checkpoint_format import MAGIC
from burstproof.engine.sharded.checkpoints import chunks
from burstproof.engine.state import EngineState, Recording, Stimulus
from burstproof.errors import CheckpointError, EnvironmentInvalidError
from burstproof.network.files.bpnet_format import HEAD, VERSION
from burstproof.network.model import Network
from burstproof.network.plasticity import PlasticMapping
from burstproof.sources import save, synthetic
from suites.support.cli_door import Door, assert_one_error, door
from suites.support.parity.mixed import mixed_network, mixed_options, mixed_plan
from suites.support.shards.cpu_shards import EVERYTHING_LEARNS, mix_named

__all__ = ["door"]

pytestmark = pytest.mark.requirement("MG-5", "ST-7")

MIX = mix_named(EVERYTHING_LEARNS)
NETWORK = mixed_network(MIX)
GENOME = Path(__file__).parents[1] / "data" / "golden" / "genomes" / "barebones_genome.json"


@pytest.fixture(scope="module")
def checkpoint() -> Checkpoint:
    """After 20 bursts in which every field of the state has come to hold something."""
    engine, plan = ReferenceEngine.create(NETWORK, mixed_options(MIX)), mixed_plan(MIX, NETWORK)
    recording = engine.run(20, plan)
    identity = run_identity(NETWORK, engine.options, engine.fixed_point)
    return Checkpoint(engine.state(), {**identity, **stimulus_so_far(plan, engine.burst_count)}, recording)


def test_a_checkpoint_comes_back_as_it_was(checkpoint: Checkpoint, tmp_path: Path) -> None:
    path = tmp_path / "state.bpstate"
    for wanted in (checkpoint, replace(checkpoint, recording=None)):
        save_checkpoint(path, wanted)
        got = load_checkpoint(path)
        assert wanted.state.differences(got.state) == ()
        assert got.identity == wanted.identity
        for item in fields(EngineState):
            assert type(getattr(got.state, item.name)) is type(getattr(wanted.state, item.name))
        if wanted.recording is None:
            assert got.recording is None
        else:
            assert got.recording is not None
            for item in fields(Recording):
                assert getattr(got.recording, item.name).tobytes() == getattr(wanted.recording, item.name).tobytes()
    assert [file.name for file in tmp_path.iterdir()] == ["state.bpstate"]


@pytest.fixture(scope="module")
def small() -> Checkpoint:
    """After three bursts of a network of few neurons, with a recording."""
    network = synthetic(8, 2, threshold=0.1)
    engine = ReferenceEngine.create(network, EngineOptions())
    recording = engine.run(3, {network.burst_count + 1: Stimulus(forced=np.arange(5, dtype=np.uint32))})
    assert engine.state().fired_ids.size
    return Checkpoint(engine.state(), run_identity(network, engine.options, engine.fixed_point), recording)


@pytest.mark.thorough("changes thousands of bytes one by one")
def test_every_flipped_bit_and_every_other_length_is_found(small: Checkpoint, tmp_path: Path) -> None:
    """Gaps between columns included."""
    path = tmp_path / "state.bpstate"
    save_checkpoint(path, small)
    content = path.read_bytes()
    accepted = []
    for place in range(len(content)):
        path.write_bytes(content[:place] + bytes([content[place] ^ 1 << place % 8]) + content[place + 1 :])
        with suppress(CheckpointError):
            accepted.append((place, load_checkpoint(path)))
    for end in range(0, len(content), 7):
        path.write_bytes(content[:end])
        with suppress(CheckpointError):
            accepted.append((end, load_checkpoint(path)))
    path.write_bytes(content + bytes(64))
    with suppress(CheckpointError):
        accepted.append((len(content), load_checkpoint(path)))
    assert accepted == []
    with pytest.raises(CheckpointError, match="cannot be read"):
        load_checkpoint(tmp_path / "nothing")


def _entry(*keys: str | int, value: object) -> Callable[[Any], None]:
    """A change of one entry of the header."""

    def change(tree: Any) -> None:
        for key in keys[:-1]:
            tree = tree[key]
        tree[keys[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (lambda tree: tree.pop("state"), "other parts"),
        (lambda tree: tree["state"].pop("clamped"), "lacks the key 'clamped'"),
        (_entry("state", value=7), "wrong type"),
        (_entry("state", "burst_count", value="7"), "wrong type"),
        (_entry("state", "fixed_point", value={"k": 3}), "a scale has the entries"),
        (_entry("identity", value=[1]), "identity"),
        (_entry("columns", value=None), "wrong type"),
        (_entry("columns", 0, value={}), "lacks the key 'name'"),
        (_entry("columns", 0, "name", value="thoughts"), "not those of a state"),
        (_entry("columns", 0, "dtype", value="|O8"), "another form"),
        (_entry("columns", 0, "dtype", value="no type"), "another form"),
        (_entry("columns", 0, "shape", value=[1 << 61]), "another form"),
        (_entry("columns", 0, "shape", value=[-1]), "out of range"),
        (_entry("columns", 0, "offset", value=1 << 50), "in front of"),
        (_entry("columns", 0, "crc32", value="00000000"), "membrane_potentials"),
        (lambda tree: tree["columns"].pop(), "not those of a state"),
        (lambda tree: tree["columns"].reverse(), "not those of a state"),
    ],
)
def test_a_header_that_was_made_up_is_refused(
    small: Checkpoint, tmp_path: Path, change: Callable[[Any], object], part: str
) -> None:
    """Under a right CRC-32, so that only its contents speak against it."""
    path = tmp_path / "state.bpstate"
    save_checkpoint(path, small)
    content = path.read_bytes()
    length = HEAD.unpack(content[: HEAD.size])[3]
    tree = json.loads(content[HEAD.size : HEAD.size + length])
    change(tree)
    header = json.dumps(tree).encode()
    path.write_bytes(
        HEAD.pack(MAGIC, VERSION, zlib.crc32(header), len(header)) + header + content[HEAD.size + length :]
    )
    with pytest.raises(CheckpointError, match=re.escape(part)):
        load_checkpoint(path)


def test_another_run_is_told_apart(checkpoint: Checkpoint) -> None:
    """Any column, rule or stimulus before the checkpoint makes it another run; later stimulus does not."""
    options, plan = mixed_options(MIX), mixed_plan(MIX, NETWORK)
    now = checkpoint.state.burst_count
    same = {**run_identity(NETWORK, options, plan_fixed_point(NETWORK, options)), **stimulus_so_far(plan, now)}
    check_identity(checkpoint, same, "here")
    assert stimulus_so_far({b: s for b, s in plan.items() if b <= now}, now) == stimulus_so_far(plan, now)
    neurons = replace(NETWORK.neurons, excitabilities=NETWORK.neurons.excitabilities + np.float32(0.125))
    weights = NETWORK.synapses.weights.copy()
    weights[-1] += 1
    longer = (replace(NETWORK.plastic_mappings[0], window=9), *NETWORK.plastic_mappings[1:])
    others = [
        NETWORK.replace(neurons=neurons),
        NETWORK.replace(synapses=replace(NETWORK.synapses, weights=weights)),
        NETWORK.replace(plastic_mappings=longer),
        NETWORK.replace(plastic_mappings=(PlasticMapping(np.arange(3)),)),
        NETWORK.replace(power_amount=7.0),
        NETWORK.replace(areas=()),
    ]
    fixed_point = plan_fixed_point(NETWORK, options)
    changed = [run_identity(network, options, fixed_point) for network in others]
    changed += [run_identity(NETWORK, replace(options, max_stimulus=99.0), fixed_point)]
    changed += [stimulus_so_far({number: plan[number] for number in list(plan)[1:]}, now)]
    for identity in changed:
        with pytest.raises(CheckpointError, match="belongs to another run"):
            check_identity(checkpoint, identity, "here")


def test_a_folder_that_is_gone_is_an_error_of_the_environment(checkpoint: Checkpoint, tmp_path: Path) -> None:
    with pytest.raises(EnvironmentInvalidError, match="the checkpoint cannot be written"):
        save_checkpoint(tmp_path / "no" / "folder", checkpoint)


@pytest.mark.parametrize(
    ("done", "total", "longest", "stops", "wanted"),
    [
        (0, 10, 256, (None, None), [1, 9]),
        (0, 600, 256, (None, None), [1, 256, 256, 87]),
        (0, 10, 256, (4, None), [1, 3, 4, 2]),
        (4, 10, 256, (4, 5), [1, 3, 2]),
        (0, 7, 256, (3, 2), [1, 1, 1, 1, 2, 1]),
        (0, 1, 256, (1, None), [1]),
    ],
)
def test_runs_are_cut_at_every_checkpoint(
    done: int, total: int, longest: int, stops: tuple[int | None, ...], wanted: list[int]
) -> None:
    assert list(chunks(done, total, longest, stops)) == wanted


@pytest.mark.parametrize(
    ("genome", "given"),
    [(GENOME, "/7:0=2"), (GENOME.parents[1] / "features" / "mem1_11.genome.json.gz", ":3-9=3")],
    ids=["a small network", "memories"],
)
def test_a_resumed_run_writes_the_record_of_the_whole_one(door: Door, tmp_path: Path, genome: Path, given: str) -> None:
    """Three backends go on from one checkpoint, written by shards that were split anew in between."""
    command = ("run", genome, "--stimulate", f"1-60{given}", "--bursts", 60)
    kept = tmp_path / "state.bpstate"
    assert door(*command, "--backend", "cpu", "--record", "whole").code == 0
    split = ("--shards", 2, "--strategy", "dynamic", "--reshard-every", 9)
    more = ("--checkpoint", kept, "--checkpoint-every", 25)
    half = ("--stimulate", f"1-50{given}", "--bursts", 50)
    assert door("run", genome, *half, *split, *more, "--record", "written").code == 0
    assert load_checkpoint(kept).state.burst_count == 50
    for backend in (("--backend", "reference"), ("--backend", "cpu"), ("--shards", 3)):
        answer = door(*command, *backend, "--resume", kept, "--record", "resumed", "--json")
        assert answer.document["resumed_after"] == 50
        assert answer.document["bursts"] == {"first": 1, "last": 60, "count": 60}
        assert Path("resumed.npz").read_bytes() == Path("whole.npz").read_bytes()
    assert "resumed after 50," in door(*command, "--backend", "cpu", "--resume", kept).out


def test_the_last_burst_is_kept_whatever_the_interval(door: Door, tmp_path: Path) -> None:
    """A run that has ended goes on with more bursts, and its record is that of one run."""
    kept = tmp_path / "state.bpstate"
    command = ("run", GENOME, "--backend", "reference", "--stimulate", "1-15/7:0=2")
    keeping = ("--checkpoint", kept, "--record", "record")
    for bursts, every in ((15, ()), (17, ("--checkpoint-every", 4)), (21, ("--checkpoint-every", 1))):
        resume = ("--resume", kept) if kept.exists() else ()
        assert door(*command, *keeping, *every, *resume, "--bursts", bursts).code == 0
        assert load_checkpoint(kept).state.burst_count == bursts
    assert door(*command, "--bursts", 21, "--record", "whole").code == 0
    assert Path("record.npz").read_bytes() == Path("whole.npz").read_bytes()


def test_what_cannot_be_resumed_is_refused(door: Door, tmp_path: Path) -> None:
    kept = tmp_path / "state.bpstate"
    command = ("run", GENOME, "--backend", "reference", "--stimulate", "1-15/7:0=2")
    assert door(*command, "--bursts", 20, "--checkpoint", kept, "--checkpoint-every", 10).code == 0
    resume = ("--resume", kept)
    answer = door(*command, *resume, "--bursts", 30, "--json")
    assert answer.document["bursts"] == {"first": 21, "last": 30, "count": 10}
    assert_one_error(
        door(*command, *resume, "--bursts", 20), 4, "is at burst 20, and the run is to end with burst 20", "21 or more"
    )
    assert_one_error(door(*command, *resume, "--bursts", 30, "--record", "r"), 4, "holds no record")
    assert_one_error(
        door(*command, *resume, "--bursts", 30, "--profile", "feagi-beta"), 4, "its profile is another one"
    )
    assert_one_error(door(*command, *resume, "--bursts", 30, "--force", "3:0"), 4, "its stimulus is another one")
    assert_one_error(door(*command, "--resume", GENOME), 4, "this is no checkpoint")
    assert_one_error(door(*command, "--checkpoint-every", 5), 4, "no file to write checkpoints to")


def test_a_state_that_cannot_be_resumed_is_named_and_takes_no_checkpoint(door: Door, tmp_path: Path) -> None:
    """From burst 3 on, where a leak of 1 meets an infinite potential; the run goes on, its last checkpoint stays."""
    infinite = {"thresholds": 1.0, "threshold_limits": 1.0, "leak_coefficients": 1.0, "membrane_potentials": [np.inf]}
    synapses = {"source_neurons": [0], "target_neurons": [0], "weights": 1.0}
    save(Network.from_arrays(infinite, synapses, areas={"a": [0]}), "infinite.bpnet")
    command = ("run", "infinite.bpnet", "--backend", "cpu", "--stimulate", "3:0=1", "--record", "record")
    kept = ("--checkpoint", "c", "--checkpoint-every", 2)
    answer = door(*command, "--bursts", 8, *kept)
    assert (answer.code, answer.err.count("note")) == (0, 1)
    assert "no checkpoint from burst 4 on while --resume would refuse it; c keeps burst 2: state." in answer.err
    assert "a value is NaN" in answer.err
    whole = Path("record.npz").read_bytes()
    assert door(*command, "--bursts", 8, "--resume", "c").code == 0
    assert Path("record.npz").read_bytes() == whole


def test_fewer_bursts_than_were_done_are_named(door: Door, tmp_path: Path) -> None:
    """Not the stimulus, which is shorter then, nor whether it has fractions; another network is still named first."""
    kept = tmp_path / "state.bpstate"
    command = ("run", GENOME, "--backend", "reference", "--stimulate", "1:0=2", "--resume", kept)
    more = ("--stimulate", "9:0=30.5", "--bursts", 12, "--checkpoint", kept)
    assert door(*command[:-2], *more).code == 0
    said = "is at burst 12, and the run is to end with burst 8 (got '--bursts 8'; allowed: 13 or more"
    assert_one_error(door(*command, "--bursts", 8), 4, said, "Ask for more --bursts, or resume from an earlier")
    assert_one_error(door(*command, "--bursts", 20), 4, "its fractional stimulus is another one")
    other = GENOME.with_name("test_genome.json")
    assert_one_error(door("run", other, *command[2:], "--bursts", 8), 4, "its network is another one")


def test_options_of_a_run_are_part_of_its_identity() -> None:
    options = EngineOptions()
    identity = run_identity(NETWORK, options, plan_fixed_point(NETWORK, options))
    for name in ("profile", "emulate_batch_path", "max_stimulus", "fractional_stimulus"):
        assert name in identity
    assert "cpu" not in identity
