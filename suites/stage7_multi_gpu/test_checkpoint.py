"""Checkpoints: whole files that say when they are damaged or belong to another run, and runs that go on from them."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

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
from burstproof.engine.sharded.checkpoints import chunks
from burstproof.engine.state import EngineState, Recording
from burstproof.errors import CheckpointError, EnvironmentInvalidError
from burstproof.network.plasticity import PlasticMapping
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


def test_any_damage_is_found(checkpoint: Checkpoint, tmp_path: Path) -> None:
    """One bit turned anywhere outside the gaps between columns, or an end cut off."""
    path = tmp_path / "state.bpstate"
    save_checkpoint(path, checkpoint)
    content = path.read_bytes()
    gaps = set(range(len(content))) - _meaning(content)
    rng = np.random.default_rng(1)
    for place in [0, 8, 12, 16, 30, *rng.integers(24, len(content), 60).tolist()]:
        if place in gaps:
            continue
        path.write_bytes(content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :])
        with pytest.raises(CheckpointError):
            load_checkpoint(path)
    for length in (0, 10, 100, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:length])
        with pytest.raises(CheckpointError):
            load_checkpoint(path)
    with pytest.raises(CheckpointError, match="cannot be read"):
        load_checkpoint(tmp_path / "nothing")


def _meaning(content: bytes) -> set[int]:
    """Places of a checkpoint that mean something: head, header and columns."""
    import json

    length = int.from_bytes(content[16:24], "little")
    columns = json.loads(content[24 : 24 + length])["columns"]
    spans = [range(24 + length), *(range(c["offset"], c["offset"] + c["bytes"]) for c in columns)]
    return {place for span in spans for place in span}


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


def test_a_resumed_run_writes_the_record_of_the_whole_one(door: Door, tmp_path: Path) -> None:
    """Three backends go on from one checkpoint, written by shards that were split anew in between."""
    command = ("run", GENOME, "--stimulate", "1-60/7:0=2", "--bursts", 60)
    kept = tmp_path / "state.bpstate"
    assert door(*command, "--backend", "cpu", "--record", "whole").code == 0
    split = ("--shards", 2, "--strategy", "dynamic", "--reshard-every", 9)
    more = ("--checkpoint", kept, "--checkpoint-every", 25)
    half = ("--stimulate", "1-50/7:0=2", "--bursts", 50)
    assert door("run", GENOME, *half, *split, *more, "--record", "written").code == 0
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
