"""The sharded engine over MPI ranks of one machine: the same results, and an end when a rank is gone (MG-5)."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from burstproof.cli.main import main
from burstproof.engine.sharded.checkpoint import load_checkpoint
from hardware.host import take_host
from reports.values.units import counted
from stages.measuring import Measure
from suites.support.parity.mixed import compare_run
from suites.support.plans import first, only, thinned
from suites.support.shards import mpi_door
from suites.support.shards.cpu_shards import mix_named, sharded
from suites.support.shards.rank_check import GROUPS, PLAIN
from suites.support.shards.rank_timing import STRATEGY, RecordedRun, in_one_process

pytestmark = [
    pytest.mark.xdist_group("ranks"),
    pytest.mark.requirement("MG-5", "MG-4", "ST-7"),
    pytest.mark.skipif(bool(mpi_door.why_not()), reason=mpi_door.why_not() or "ranks can be started"),
]

GENOME = Path(__file__).parents[1] / "data" / "golden" / "genomes" / "test_genome.json"
PATIENCE_S = 100.0
RANKS = 4
TIMING_S = 300.0
"""Four ranks and then one process make 100 M synapses, which takes longer than what ``PATIENCE_S`` is for."""
CORES = take_host().usable_cores
LONG_RUN = 10_000_000
EVERY = 40


def run_arguments(bursts: int, *more: object) -> list[object]:
    """A run in which neurons fire by power and by stimulus."""
    return ["run", "--genome", GENOME, "--bursts", bursts, "--backend", "cpu", "--stimulate", "1-9:1=2", *more]


@pytest.mark.measures("parity.bursts_agreeing", backend=..., strategy=..., trace=...)
@pytest.mark.parametrize("group", thinned(GROUPS, "kernels of its own for the CPU", keep=only(PLAIN)))
def test_one_to_four_ranks_agree(group: str, tmp_path: Path, measure: Measure) -> None:
    """Recorded traces and mixed networks on 1, 2, 3 and 4 ranks, strategies in turn; mixes on two shards a rank."""
    output = tmp_path / "verdicts.json"
    ranks = mpi_door.start(4, ["suites.support.shards.rank_check", output, group], mpi_door.ROOT)
    _, errors = ranks.communicate(timeout=PATIENCE_S)
    assert ranks.returncode == 0, errors
    found = json.loads(output.read_text("utf-8"))
    assert set(found) == {"1", "2", "3", "4"}
    for count, cases in found.items():
        assert len(cases) == sum(map(len, GROUPS[group]))
        for name, case in cases.items():
            backend, trace = f"cpu, {counted(int(count), 'MPI rank')}", name.removeprefix("trace ")
            conditions = {"backend": backend, "trace": trace, "strategy": case["strategy"]}
            measure("parity.bursts_agreeing", case["agreeing"], "1", conditions=conditions)
            assert case["problem"] is None, f"{name} on {count} ranks: {case['problem']}"


NEURONS = [100_000, 1_000_000]


@pytest.mark.measures(
    "rank.recorded_burst", "rank.recorded_ratio", backend="cpu", ranks=RANKS, neurons=NEURONS, cores=...
)
@pytest.mark.thorough("times a large network")
@pytest.mark.time_limit(2 * TIMING_S)
@pytest.mark.skipif(CORES < RANKS, reason=f"times {RANKS} ranks that wait for each other, each on a core; {CORES} here")
@pytest.mark.parametrize("neurons", NEURONS)
def test_ranks_keep_up_with_one_process(neurons: int, tmp_path: Path, measure: Measure) -> None:
    """A burst with its list recorded, over four ranks and in one process with as many threads: the same lists."""
    output = tmp_path / "ranks.json"
    ranks = mpi_door.start(RANKS, ["suites.support.shards.rank_timing", output, neurons], mpi_door.ROOT)
    try:
        _, errors = ranks.communicate(timeout=TIMING_S)
    finally:
        ranks.kill()
    assert ranks.returncode == 0, errors
    several = RecordedRun(**json.loads(output.read_text("utf-8")))
    alone = in_one_process(neurons, RANKS)
    assert several.digest == alone.digest
    conditions = {
        "backend": "cpu",
        "ranks": RANKS,
        "strategy": STRATEGY,
        "neurons": neurons,
        "synapses_per_neuron": 100,
        "firing_rate": 0.01,
        "cores": CORES,
    }
    note = f"{alone.ms:.3f} ms in one process"
    measure("rank.recorded_burst", several.ms, "ms", samples=several.samples, conditions=conditions, note=note)
    measure("rank.recorded_ratio", several.ms / alone.ms, "x", conditions=conditions, note=note)


@pytest.mark.thorough("starts ranks for seconds")
def test_the_command_writes_the_same_record_and_says_an_error_once(tmp_path: Path) -> None:
    ranks = mpi_door.start(2, ["burstproof", *run_arguments(60, "--record", "ranks", "--json")], tmp_path)
    printed, errors = ranks.communicate(timeout=PATIENCE_S)
    assert ranks.returncode == 0, errors
    document = json.loads(mpi_door.undecorated(printed))
    assert (document["shards"]["shards"], document["shards"]["ranks"]) == (2, 2)
    assert document["shards"]["exchange"] == "through MPI"
    assert main([str(a) for a in run_arguments(60, "--record", tmp_path / "one")]) == 0
    assert (tmp_path / "ranks.npz").read_bytes() == (tmp_path / "one.npz").read_bytes()

    failing = mpi_door.start(2, ["burstproof", *run_arguments(60, "--stimulate", "1:999999=1")], tmp_path)
    printed, errors = failing.communicate(timeout=PATIENCE_S)
    assert failing.returncode == 4
    assert errors.count("burstproof: error:") == 1


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--version"], 0),
        *thinned(
            [
                pytest.param(["info"], 0),
                pytest.param(["verify", "no/such/trace"], 4),
                pytest.param(["verify", "--no-such-option"], 4),
            ],
            "starts ranks for seconds",
            keep=first(0),
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_what_is_not_for_ranks_is_done_and_said_once(tmp_path: Path, arguments: list[str], code: int) -> None:
    """One process and two under a launcher print the same, up to what a launcher adds when a rank fails."""
    alone = mpi_door.start(1, ["burstproof", *arguments], tmp_path)
    wanted = [stream.splitlines() for stream in alone.communicate(timeout=PATIENCE_S)]
    two = mpi_door.start(2, ["burstproof", *arguments], tmp_path)
    printed, errors = (stream.splitlines() for stream in two.communicate(timeout=PATIENCE_S))
    assert (alone.returncode, two.returncode) == (code, code)
    said = [line for line in wanted[0] + wanted[1] if "burstproof" in line]
    assert said
    assert [line for line in printed + errors if line in said] == said


@pytest.fixture(scope="module", autouse=True)
def compiled_once() -> None:
    """Compile for the default profile before ranks start that have no time for it: kernels are found on disk."""
    assert not compare_run(mix_named("fractions"), sharded("round_robin", 2))


@pytest.fixture
def long_run(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """Three ranks in a run that does not end by itself, and the checkpoint that is there already."""
    checkpoint = tmp_path / "state.bpstate"
    more = ("--checkpoint", checkpoint, "--checkpoint-every", EVERY, "--rank-timeout", 1, "--record", tmp_path / "r")
    ranks = mpi_door.start(3, ["burstproof", *run_arguments(LONG_RUN, *more)], tmp_path)
    try:
        deadline = time.monotonic() + PATIENCE_S
        while not checkpoint.exists():
            assert ranks.poll() is None, ranks.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.02)
        yield ranks, checkpoint
    finally:
        if ranks.poll() is None:
            ranks.kill()
            ranks.communicate()


@pytest.mark.thorough("waits for a rank that is lost")
@pytest.mark.parametrize(
    ("ending", "said"),
    [
        (signal.SIGKILL, r"rank 1 of 3 was ended by SIGKILL\. Go on from the last checkpoint: --resume "),
        (signal.SIGSTOP, r"waited 1 s for the exchange of .*; no answer from rank 1: dead, stopped or cut off"),
    ],
    ids=["killed", "stopped"],
)
def test_a_lost_rank_is_named_and_the_run_goes_on_from_its_checkpoint(
    long_run: tuple[subprocess.Popen[str], Path], tmp_path: Path, ending: signal.Signals, said: str
) -> None:
    """The launcher returns, nothing hangs, and the resumed run writes the record of one that nothing happened to."""
    ranks, checkpoint = long_run
    os.kill(mpi_door.process_of(1, str(checkpoint)), ending)
    _, errors = ranks.communicate(timeout=PATIENCE_S)
    assert ranks.returncode != 0
    assert re.search(said, errors)
    reached = load_checkpoint(checkpoint).state.burst_count
    assert reached % EVERY == 0
    last = reached + 30
    for name, more in (("whole", ()), ("resumed", ("--resume", checkpoint, "--shards", 2))):
        assert main([str(a) for a in run_arguments(last, "--record", tmp_path / name, *more)]) == 0
    with np.load(tmp_path / "whole.npz") as whole, np.load(tmp_path / "resumed.npz") as resumed:
        assert len(whole["fired_id"]) > 0
        assert set(whole.files) == set(resumed.files)
        assert all(whole[name].tobytes() == resumed[name].tobytes() for name in whole.files)


def test_a_run_that_is_asked_to_end_says_so_once_at_most(
    long_run: tuple[subprocess.Popen[str], Path], tmp_path: Path
) -> None:
    """SIGTERM, which the launcher passes on to all ranks: none is called lost, and the checkpoint is whole."""
    ranks, checkpoint = long_run
    ranks.terminate()
    _, errors = ranks.communicate(timeout=PATIENCE_S)
    assert ranks.returncode != 0
    said = [line for line in errors.splitlines() if "burstproof:" in line]
    sentence = f"burstproof: the run was ended by SIGTERM. Go on from the last checkpoint: --resume {checkpoint}"
    assert said in ([sentence], []), "a launcher that ends may drop what lies in its pipes"
    assert load_checkpoint(checkpoint).state.burst_count % EVERY == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["state.bpstate"]


def test_an_error_of_one_rank_ends_all(tmp_path: Path) -> None:
    """Rank 0 cannot write its checkpoint, since the folder goes after the start: the other does not wait for it."""
    folder = tmp_path / "gone"
    folder.mkdir()
    more = ("--checkpoint", folder / "c.bpstate", "--checkpoint-every", 500, "--rank-timeout", 60)
    ranks = mpi_door.start(2, ["burstproof", *run_arguments(LONG_RUN, *more)], tmp_path)
    deadline = time.monotonic() + PATIENCE_S
    while not (folder / "c.bpstate").exists():
        assert ranks.poll() is None, ranks.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    shutil.move(folder, tmp_path / "elsewhere")
    started = time.monotonic()
    _, errors = ranks.communicate(timeout=PATIENCE_S)
    assert ranks.returncode == 3
    assert "rank 0 of 2: " in errors
    assert "the checkpoint cannot be written: No such file or directory" in errors
    assert time.monotonic() - started < 60


def _namespaces_missing() -> str:
    """Why no two network namespaces can be joined here; empty if they can."""
    if mpi_door.why_not():
        return mpi_door.why_not()
    shown = subprocess.run([str(mpi_door.launcher()), "--version"], capture_output=True, text=True, check=False)
    if "hydra" not in shown.stdout.lower():
        return "only MPICH's launcher is known to take a command in place of ssh"
    if shutil.which("ip") is None or shutil.which("unshare") is None:
        return "the commands ip and unshare are not installed"
    if os.geteuid() != 0:
        return "making network namespaces needs the rights of root"
    tried = subprocess.run(["unshare", "--net", "true"], capture_output=True, text=True, check=False)
    return f"this host makes no network namespaces: {tried.stderr.strip()}" if tried.returncode else ""


@pytest.fixture
def two_hosts(tmp_path: Path) -> Iterator[Path]:
    """Two network namespaces with one cable between them; yields what the launcher calls instead of ssh."""
    if _namespaces_missing():
        pytest.skip(_namespaces_missing())
    names = [f"burstproof{os.getpid()}{side}" for side in "ab"]
    cable = [f"bp{os.getpid() % 100_000}{side}" for side in "ab"]

    def ip(*words: str, check: bool = True) -> None:
        subprocess.run(["ip", *words], check=check, capture_output=True)

    try:
        for name in names:
            ip("netns", "add", name)
        ip("link", "add", cable[0], "type", "veth", "peer", "name", cable[1])
        for name, end, host in zip(names, cable, (1, 2), strict=True):
            ip("link", "set", end, "netns", name)
            ip("-n", name, "addr", "add", f"10.77.0.{host}/24", "dev", end)
            ip("-n", name, "link", "set", end, "up")
            ip("-n", name, "link", "set", "lo", "up")
        remote = tmp_path / "remote"
        remote.write_text(
            "#!/bin/sh\n"
            'while [ "${1#-}" != "$1" ]; do shift; done\n'
            "host=$1; shift\n"
            f'[ "$host" = 10.77.0.1 ] && space={names[0]} || space={names[1]}\n'
            'exec ip netns exec "$space" sh -c "$*"\n',
            "utf-8",
        )
        remote.chmod(0o755)
        yield remote
    finally:
        for name in names:
            ip("netns", "del", name, check=False)


@pytest.mark.thorough("starts ranks for seconds")
def test_ranks_in_two_network_namespaces_agree(two_hosts: Path, tmp_path: Path) -> None:
    """Two ranks that share no network but a cable, each on a host of its own as far as the launcher knows."""
    found = mpi_door.launcher()
    assert found is not None
    space = two_hosts.read_text("utf-8").split("space=")[1].split()[0]
    command = ["ip", "netns", "exec", space, found, "-launcher", "ssh", "-launcher-exec", str(two_hosts)]
    command += ["-hosts", "10.77.0.1,10.77.0.2", "-n", "2", "-ppn", "1", "-iface", _cable_of(space)]
    inner = [str(a) for a in run_arguments(40, "--record", tmp_path / "far", "--json")]
    environment = {**mpi_door.environment(), "MPIR_CVAR_NOLOCAL": "1", "FI_PROVIDER": "tcp"}
    done = subprocess.run(
        [*command, mpi_door.sys.executable, "-m", "burstproof", *inner],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["shards"]["ranks"] == 2
    assert main([str(a) for a in run_arguments(40, "--record", tmp_path / "near")]) == 0
    assert (tmp_path / "far.npz").read_bytes() == (tmp_path / "near.npz").read_bytes()


def _cable_of(space: str) -> str:
    listed = subprocess.run(["ip", "-n", space, "-o", "link"], capture_output=True, text=True, check=True).stdout
    return next(
        line.split()[1].split("@")[0].rstrip(":") for line in listed.splitlines() if "veth" in line or "bp" in line
    )
