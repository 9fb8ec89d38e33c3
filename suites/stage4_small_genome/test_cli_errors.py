"""Errors of the command: one message, the right exit code, no traceback, nothing half written (BE-18, BE-14)."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from burstproof import __version__
from burstproof.cli import main as cli
from burstproof.cli import run as run_module
from burstproof.door import PIPE_CLOSED
from burstproof.engine.machine import CudaDevice, CudaFacts, Machine, Obstacle
from burstproof.engine.reference import ReferenceEngine
from burstproof.engine.state import Recording
from burstproof.errors import EnvironmentInvalidError
from burstproof.network.files.atomic import write_atomically
from suites.support.cli_door import BUSY, GENOMES, SMALL, Door, assert_one_error, door

__all__ = ["door"]

pytestmark = pytest.mark.requirement("BE-18")

PACKAGE_ROOT = Path(cli.__file__).parents[2]


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        ([], ["COMMAND"]),
        (["fly"], ["fly"]),
        (["rnu", SMALL], ["'rnu'", "Did you mean run? See burstproof --help"]),
        (["--synthetic", "1K", "run"], ["Put the command first: burstproof run ..."]),
        (["run", "--synth", "20K"], ["--synth", "Did you mean --synthetic?"]),
        (["run", SMALL, "--burs", "2"], ["--burs", "Did you mean --bursts?"]),
        (
            ["run", SMALL, "--stimulus", "1:0=1"],
            ["--stimulus", "Did you mean --stimulate?", "See burstproof run --help"],
        ),
        (["compile", SMALL, "--bursts", "2"], ["arguments: --bursts 2. See burstproof compile --help"]),
        (["compile", SMALL, SMALL], ["unrecognized arguments", "See burstproof compile --help"]),
        (["--jsno", "info"], ["Did you mean --json? See burstproof --help"]),
        (["--json", "info"], ["Write it after the command. See burstproof --help"]),
        (["run"], ["name one genome, connectome or network"]),
        (["run", SMALL, "--genome", SMALL], ["FILE", "--genome"]),
        (["run", "--network", SMALL], ["--network", "genome by its extension", "Use --genome"]),
        (["run", "absent.json"], ["absent.json", "No such file"]),
        (["run", SMALL, "--synthetic", "20K"], ["name one", "got '--synthetic, FILE'"]),
        (["run", "--synthetic", "1Q"], ["--synthetic", "'1Q' is no size", "20K"]),
        (["run", "--synthetic", "0"], ["--synthetic", "'0' is no size"]),
        (["run", "--synthetic", "-1M"], ["--synthetic"]),
        (["run", "--synthetic", "1.0005K"], ["--synthetic", "is no size"]),
        (["run", "--synthetic", "20K", "--synapses", "many"], ["--synapses", "is no size"]),
        (["run", "--synthetic", "20K", "--rate", "1.5"], ["--rate", "outside 0"]),
        (["run", "--synthetic", "100", "--rate", "0.01"], ["--synthetic: ", "got 100;", "fluctuates", "Raise --rate"]),
        (["run", "--synthetic", "20K", "--rate", "0.9"], ["--rate: ", "at most 0.499 with 100 syn", "Lower --rate, "]),
        (["run", "--synthetic", "20K", "--synapses", "1"], ["--rate: ", "no rate holds with 1 synapse each"]),
        (["run", "--synthetic", "20K", "--kind", "power-law", "--synapses", "20000"], ["--synapses: ", "largest 2000"]),
        (["run", "--synthetic", "20K", "--rate", "0"], ["--rate: ", "got 0.0"]),
        (["run", "--synthetic", "20K", "--seed", str(2**40)], ["--seed: ", "allowed: 0...4294967295"]),
        (["run", "--synthetic", "20K", "--seed", str(2**64 - 1)], ["--seed: ", "allowed: 0...4294967295"]),
        (["run", SMALL, "--seed", str(2**64)], ["--seed: ", "is outside 0 to 18446744073709551615"]),
        (["run", "--kind", "weights"], ["--kind: the size", "got 'weights'", "Add --synthetic N"]),
        (["run", "--kind", "microcircuit"], ["--kind: the size", "Add --synthetic 77169"]),
        (["run", "--rate", "0.1"], ["--rate: the size of the synthetic network is missing", "Add --synthetic N"]),
        (["run", SMALL, "--synapses", "10"], ["--synapses: only a synthetic network has it", "Add --synthetic"]),
        (["run", SMALL, "--rate", "0.1"], ["--rate: only a synthetic network has it"]),
        (["run", SMALL, "--kind", "areas"], ["--kind: only a synthetic network has it", "Add --synthetic"]),
        (["run", "--synthetic", "20K", "--kind", "odd"], ["--kind", "microcircuit"]),
        (
            ["run", "--synthetic", "20K", "--kind", "microcircuit"],
            ["--kind: the microcircuit has one size", "77169"],
        ),
        (["info", "--plan", "absent.json"], ["--plan", "absent.json", "No such file"]),
        (["info", "--plan", "x.txt"], ["--plan: unknown extension"]),
        (["info", "--plan", SMALL, "--synthetic", "20K"], ["name one", "See burstproof info --help"]),
        (["info", "--plan"], ["name one", "See burstproof info --help"]),
        (["info", "--synthetic", "20K", "--shards", "2"], ["--shards: info plans for a whole network on one device"]),
        (["info", "--plan", SMALL, "--multi-gpu"], ["--multi-gpu: info plans", "docs/sharding.md"]),
        (["info", "--plan", SMALL, "--num-gpus", "2"], ["--num-gpus: info plans"]),
        (["info", "--synapses", "10"], ["--synapses", "Add --synthetic"]),
        (["info", "--plan", SMALL, "--backend", "reference"], ["--backend", "no plan", "allowed: cuda, cpu"]),
        (["run", "x.txt"], ["unknown extension", ".bpnet"]),
        (["run", SMALL, "--bursts", "0"], ["--bursts", "outside 1"]),
        (["run", SMALL, "--bursts", "1e3"], ["--bursts", "no whole number"]),
        (["run", SMALL, "--seed", "-1"], ["--seed: -1 is outside 0 to 18446744073709551615"]),
        (["run", SMALL, "--firing-rate", "nan"], ["--firing-rate"]),
        (["run", SMALL, "--backend", "gpu"], ["--backend", "cuda"]),
        (["run", SMALL, "--profile", "feagi-3"], ["--profile", "feagi-2.6"]),
        (["run", SMALL, "--record", "no/such/folder/r"], ["--record", "folder does not exist"]),
        (["run", SMALL, "--raster", "no/such/folder/r.svg"], ["--raster", "folder does not exist"]),
        (["run", SMALL, "--raster", "r.gif"], ["--raster", "allowed: .svg"]),
        (["run", SMALL, "--raster", "."], ["--raster", "folder"]),
        (["run", SMALL, "--config", "absent.toml"], ["absent.toml"]),
        (["run", SMALL, "--record=--"], ["an option without a value", "--record=--"]),
        (["run", SMALL, "--record", "."], ["folder", "NAME.npz"]),
        (["run", SMALL, "--record", "a", "--checkpoint", "a.npz"], ["--checkpoint", "another option"]),
        (["run", SMALL, "--raster", "a.svg", "--checkpoint", "a.svg"], ["--checkpoint", "another option"]),
        (["run", "--synthetic", "2K"], ["2000", "6721 or more"]),
        (["run", "--synthetic", "6720"], ["6720", "6721 or more"]),
        (["run", "--synthetic", "9K", "--synapses", "999M"], ["--synapses: ", "1...268435455"]),
        (["verify", "."], ["folder", "NAME.npz"]),
        (["verify", SMALL], ["barebones_genome.npz: cannot be read", "burstproof run --record NAME"]),
        (["verify", "absent"], ["absent.json: cannot be read", "NAME.npz and", "burstproof run --record NAME"]),
        (["verify", __file__], ["test_cli_errors.py: not a trace. ", "NAME.npz", "burstproof run --record NAME"]),
        (["verify"], ["TRACE"]),
        (["convert", SMALL], ["OUT"]),
        (["convert", SMALL, "x.txt"], ["OUT: unknown extension (got 'x.txt'; allowed: .connectome, .bpnet)"]),
        (["convert", SMALL, "y.json"], ["OUT: a genome cannot be made", "allowed: .connectome, .bpnet", "Keep the"]),
    ],
)
def test_bad_usage_exits_with_4(door: Door, arguments: list[Any], parts: list[str]) -> None:
    assert_one_error(door(*arguments), 4, *parts)
    assert list(Path.cwd().iterdir()) == []


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["verify", "--help"], ["--version"]])
def test_help_and_version_exit_with_0(door: Door, arguments: list[str]) -> None:
    answer = door(*arguments)
    assert answer.code == 0
    assert "burstproof" in answer.out
    assert answer.err == ""


@pytest.mark.requirement("BE-14")
@pytest.mark.parametrize(
    ("text", "arguments", "asked"),
    [
        ("", ["--multi-gpu", "--num-gpus", "8"], "--multi-gpu"),
        ("", ["--backend", "cuda"], "--backend"),
        ("[cuda.multi_gpu]\nenabled = true\n", [], "cuda.multi_gpu.enabled (file "),
        ("[compute]\nbackend = 'cuda'\n", [], "compute.backend (file "),
    ],
    ids=["multi-GPU option", "backend option", "multi-GPU key", "backend key"],
)
def test_gpus_that_are_not_there_are_missed_and_not_ignored(
    door: Door, monkeypatch: pytest.MonkeyPatch, text: str, arguments: list[str], asked: str
) -> None:
    monkeypatch.setattr(
        run_module, "this_machine", lambda: Machine(4, CudaFacts(Obstacle("no driver here", "Install one")))
    )
    Path("feagi_configuration.toml").write_text(text, "utf-8")
    assert_one_error(door("run", SMALL, *arguments), 3, f"error: {asked}", ": the backend cuda cannot start")


@pytest.mark.requirement("BE-14", "MG-1")
def test_shards_of_gpus_on_another_backend_name_who_asked(door: Door) -> None:
    Path("feagi_configuration.toml").write_text(
        "[compute]\nbackend = 'cpu'\n[cuda.multi_gpu]\nenabled = true\n", "utf-8"
    )
    cure = "set cuda.multi_gpu.enabled to false; --shards N"
    assert_one_error(door("run", SMALL), 4, "error: compute.backend (file ", cure)


def test_mpi_that_cannot_be_loaded(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    answer = door("run", SMALL, "--mpi", "on")
    assert_one_error(answer, 3, "mpi4py: MPI, which several ranks need, cannot be loaded", "--mpi off")


@pytest.mark.requirement("MG-1")
@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["--shards", "2", "--multi-gpu"], ["the number of shards is given twice"]),
        (["--shards", "2", "--backend", "reference"], ["--backend: this backend has no shards", "cuda, cpu"]),
        (["--multi-gpu", "--backend", "cpu"], ["--backend: this backend has no shards of that kind", "--shards N"]),
        (["--shards", "99"], ["a number of shards that this network does not admit"]),
        (["--reshard-every", "5"], ["nothing to split anew"]),
        (["--shards", "2", "--reshard-every", "5"], ["this strategy does not follow the activity", "dynamic"]),
        (["--strategy", "hash"], ["invalid choice"]),
        (["--strategy", "dynamic"], ["--strategy: nothing to split", "Add --shards N"]),
        (["--num-gpus", "2"], ["--num-gpus: several GPUs are not asked for", "Add --multi-gpu"]),
    ],
)
def test_shards_that_cannot_be_are_refused(door: Door, arguments: list[str], parts: list[str]) -> None:
    assert_one_error(door("run", SMALL, *arguments), 4, *parts)


@pytest.mark.requirement("MG-1")
def test_more_gpus_than_the_driver_shows_are_an_error_that_counts_them(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    two = CudaFacts(None, tuple(CudaDevice(number, "H200", (9, 0)) for number in range(2)), (13, 0), (13, 0))
    monkeypatch.setattr(run_module, "this_machine", lambda: Machine(4, two))
    assert_one_error(door("run", SMALL, "--multi-gpu", "--num-gpus", "3"), 3, "--num-gpus", "got 3", "1...2")


def test_an_output_is_checked_before_the_network_is_grown(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    grown: list[object] = []
    monkeypatch.setattr(run_module, "read_source", lambda *arguments: grown.append(arguments))
    assert door("run", SMALL, "--record", "no/folder/r").code == 4
    assert grown == []


def test_a_record_never_overwrites_the_genome_it_came_from(door: Door) -> None:
    genome = Path("brain.json")
    genome.write_bytes(SMALL.read_bytes())
    assert_one_error(door("run", genome, "--record", "brain"), 4, "the output is the input itself")
    assert genome.read_bytes() == SMALL.read_bytes()


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"\x00" * 64, b'{"blueprint": 5}'], ids=["empty", "brace", "list", "zeros", "number"]
)
@pytest.mark.parametrize("name", ["g.json", "g.json.gz", "c.connectome", "n.bpnet"])
def test_a_damaged_input_is_one_clear_error(door: Door, name: str, content: bytes) -> None:
    Path(name).write_bytes(content)
    assert_one_error(door("run", name, "--backend", "reference"), 4, name)


@pytest.mark.parametrize(
    ("option", "text", "part"),
    [
        ("--stimulate", "1001:0", "no finite amount"),
        ("--stimulate", "1001=1", "no ':' between bursts and neurons"),
        ("--stimulate", "1001:0=inf", "no finite amount"),
        ("--stimulate", "1001:0=1e39", "no finite amount"),
        ("--stimulate", "1:0=1", "allowed: 1001 to 1005"),
        ("--stimulate", "1001-1006:0=1", "allowed: 1001 to 1005"),
        ("--stimulate", "1001:487=1", "allowed: 0 to 486"),
        ("--stimulate", "1001:@nowhere=1", "no such cortical area"),
        ("--stimulate", "1001:vision_C=1.5", "got 'vision_C'; allowed: N, N-M or N-M/STEP). Write an area"),
        ("--force", "1001:vision_C", "Write an area as @NAME"),
        ("--force", "1001:0-24=1", "a forced firing takes no amount (got '1001:0-24=1'). Leave it out, or"),
        ("--force", "1001:-3", "not a list of numbers"),
        ("--force", "1003-1001:3", "an empty range"),
        ("--force", "1001-1003/0:3", "an empty range"),
        ("--force", "99999999999999999999:3", "not a list of numbers"),
    ],
)
def test_a_faulty_stimulus_is_named(door: Door, option: str, text: str, part: str) -> None:
    answer = door("run", BUSY, "--backend", "reference", "--bursts", 5, option, text)
    assert_one_error(answer, 4, option, part)


def test_ctrl_c_exits_with_130_and_leaves_nothing(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(run_module, "_go", interrupt)
    assert_one_error(door("run", SMALL, "--backend", "reference", "--record", "r"), 130, "interrupted")
    assert list(Path.cwd().iterdir()) == []


def test_an_interrupted_run_says_how_it_goes_on(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[int] = []
    run_bursts = ReferenceEngine.run

    def interrupted(engine: ReferenceEngine, bursts: int, *others: Any) -> Recording:
        steps.append(bursts)
        if len(steps) == 4:
            raise KeyboardInterrupt
        return run_bursts(engine, bursts, *others)

    monkeypatch.setattr(ReferenceEngine, "run", interrupted)
    command = ("run", SMALL, "--backend", "reference", "--bursts", 40, "--checkpoint", "c", "--checkpoint-every", 10)
    answer = door(*command)
    assert (answer.code, steps) == (130, [1, 9, 10, 10])
    assert "burst 20 is in the checkpoint: the same command with --resume c goes on after it" in answer.err
    monkeypatch.setattr(ReferenceEngine, "run", run_bursts)
    assert door(*command, "--resume", "c", "--json").document["resumed_after"] == 20


@pytest.mark.parametrize(
    ("error", "part"),
    [
        (MemoryError("Unable to allocate 9 TiB"), "not enough memory (Unable to allocate 9 TiB)"),
        (OSError(errno.ENOSPC, "No space left on device", "r.npz"), "No space left on device"),
    ],
)
def test_a_machine_that_runs_out_is_one_clear_error(
    door: Door, monkeypatch: pytest.MonkeyPatch, error: Exception, part: str
) -> None:
    def fail(*_arguments: object) -> None:
        raise error

    monkeypatch.setattr(run_module, "_go", fail)
    assert_one_error(door("run", SMALL, "--backend", "reference"), 3, part)


def test_a_failed_write_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_source: object, _target: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    target = tmp_path / "picture.svg"
    target.write_bytes(b"old")
    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(EnvironmentInvalidError, match="No space left"):
        write_atomically(target, b"new")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"old"]


def command(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """``python -m burstproof`` in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE_ROOT)}
    line = [sys.executable, "-m", "burstproof", *(str(argument) for argument in arguments)]
    return subprocess.run(line, env=environment, text=True, capture_output=True, timeout=120, check=False, **options)


def test_python_m_burstproof_is_the_command(tmp_path: Path) -> None:
    assert command("--version", cwd=tmp_path).stdout.strip() == f"burstproof {__version__}"
    ran = command("run", SMALL, "--backend", "reference", "--bursts", 2, cwd=tmp_path)
    assert ran.returncode == 0
    assert ran.stderr == ""
    assert "Brain_Power" in ran.stdout
    failed = command("run", "absent.json", cwd=tmp_path)
    assert failed.returncode == 4
    assert failed.stderr.count("\n") == 1


def test_a_reader_that_goes_away_is_no_traceback(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE_ROOT)}
    line = [sys.executable, "-m", "burstproof", "info"]
    with subprocess.Popen(
        line, env=environment, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        errors = process.stderr.read()
        assert process.wait(120) == PIPE_CLOSED
    assert errors == ""


def test_names_that_the_terminal_cannot_show_are_no_traceback(tmp_path: Path) -> None:
    genome = tmp_path / "essential.json"
    genome.write_text(
        GENOMES.joinpath("barebones_genome.json").read_text("utf-8").replace("Brain_Power", "Brain_Pow\\u00e9r"),
        "utf-8",
    )
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE_ROOT), "PYTHONIOENCODING": "ascii"}
    line = [sys.executable, "-m", "burstproof", "run", str(genome), "--backend", "reference", "--bursts", "1"]
    ran = subprocess.run(line, env=environment, text=True, capture_output=True, timeout=120, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "Brain_Pow\\xe9r" in ran.stdout
