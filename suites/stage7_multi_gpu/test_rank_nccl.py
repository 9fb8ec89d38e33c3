"""Ranks joined by NCCL: who may, the same results as on the CPU, and an end where a rank does not come (MG-3, MG-5)."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

from burstproof.device.nccl_library import nccl_library
from burstproof.engine.cluster.rank_lists import LEAST_EAGER, eager_limit
from burstproof.engine.cluster.rank_nccl import RankDevice, agreed_obstacle, open_ranks, poll
from burstproof.engine.sharded.exchange import Exchange
from burstproof.errors import BackendUnavailableError, ShardLostError
from stages.measuring import Measure
from suites.support.shards import mpi_door

pytestmark = [pytest.mark.xdist_group("ranks"), pytest.mark.requirement("MG-3", "MG-5", "ST-7")]

needs_ranks = pytest.mark.skipif(bool(mpi_door.why_not()), reason=mpi_door.why_not() or "ranks can be started")
GENOME = Path(__file__).parents[1] / "data" / "golden" / "genomes" / "test_genome.json"
PATIENCE_S = 100.0
A, B = RankDevice("GPU-a", 22703), RankDevice("GPU-b", 22703)


@pytest.mark.parametrize(
    ("devices", "obstacle"),
    [
        ([A, B], None),
        ([A, B, A], "ranks 0 and 2 share a device"),
        ([A, RankDevice(obstacle="no NCCL")], "rank 1: no NCCL"),
        ([RankDevice(obstacle="no NCCL")] * 2, "no NCCL"),
        ([A, RankDevice("GPU-b", 22907)], "ranks have NCCL of different versions (22703, 22907)"),
        ([RankDevice(f"GPU-{rank}", 22703) for rank in range(65)], "the kernels take lists of at most 64 ranks"),
    ],
    ids=["all can", "shared device", "one cannot", "none can", "versions", "too many"],
)
def test_all_ranks_agree_on_a_path(devices: list[RankDevice], obstacle: str | None) -> None:
    assert agreed_obstacle(devices) == obstacle


def test_a_rank_without_a_device_is_told() -> None:
    """The error of one rank's device goes through the exchange, which raises it in all."""

    def no_device() -> None:
        raise BackendUnavailableError("no device", where="device 0")

    with pytest.raises(BackendUnavailableError, match="no device"):
        open_ranks(Exchange(), no_device, 1, True)  # type: ignore[arg-type]


def test_multicast_is_off_before_nccl_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the environment asks for it, and where the library's own process would read it."""
    monkeypatch.setenv("NCCL_NVLS_ENABLE", "1")
    nccl_library()
    said = subprocess.run(["sh", "-c", "echo $NCCL_NVLS_ENABLE"], capture_output=True, text=True, check=True)
    assert said.stdout == "0\n"


def test_reach_follows_the_longest_list() -> None:
    assert eager_limit(0, 10**6) == LEAST_EAGER
    assert eager_limit(10_000, 10**6) == 13 * LEAST_EAGER
    assert all(eager_limit(most, 5000) >= most for most in range(0, 5001, 50))
    assert eager_limit(5000, 5000) == eager_limit(4500, 5000) == 5000


@needs_ranks
@pytest.mark.thorough("starts ranks, each with a simulator of its own")
def test_simulated_devices_of_ranks_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mailboxes, gathered columns and kernels on two ranks in the CUDA simulator, MPI in the place of NCCL."""
    monkeypatch.setenv("NUMBA_ENABLE_CUDASIM", "1")
    output = tmp_path / "found.json"
    ranks = mpi_door.start(2, ["suites.support.shards.gathered_check", output], mpi_door.ROOT)
    _, errors = ranks.communicate(timeout=PATIENCE_S)
    assert ranks.returncode == 0, errors[-4000:]
    found = json.loads(output.read_text("utf-8"))
    assert len(found) == 7
    assert {name: problems for name, problems in found.items() if problems} == {}


@needs_ranks
@pytest.mark.thorough("waits for seconds")
def test_a_wait_for_nccl_ends() -> None:
    """A rank that polls for what never ends is ended by its watch, which names the rank that does not come."""
    ranks = mpi_door.start(2, ["suites.support.shards.lost_rank_check", 1], mpi_door.ROOT)
    _, errors = ranks.communicate(timeout=PATIENCE_S)
    assert ranks.returncode != 0
    assert "rank 0 of 2: waited 1 s for the exchange of what fired; still at work: rank 1" in errors


def test_what_nccl_reports_ends_a_wait() -> None:
    """The check between two naps raises through the poll."""

    def check() -> None:
        raise ShardLostError("NCCL fails: remote process has gone")

    with pytest.raises(ShardLostError, match="remote process has gone"):
        poll(lambda: False, check)


@pytest.fixture(scope="module")
def expected_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the CPU makes of the million, for the ranks to read."""
    from suites.support.shards.nccl_rank_check import expected_run

    file = tmp_path_factory.mktemp("ranks") / "expected.pickle"
    file.write_bytes(pickle.dumps(expected_run()))
    return file


def _ranks() -> int:
    """Four, or two where there are fewer GPUs."""
    from burstproof.engine.cuda.exchange.devices import device_count

    if nccl_library() is None:
        pytest.skip("the library NCCL is not installed (package nvidia-nccl-cu13 or nvidia-nccl-cu12)")
    return 4 if device_count() >= 4 else 2


@needs_ranks
@pytest.mark.gate("multi_gpu")
@pytest.mark.measures("parity.disagreements", "rank.burst", "rank.exchange")
def test_nccl_and_hosts_give_what_the_cpu_gives(expected_file: Path, tmp_path: Path, measure: Measure) -> None:
    """Recordings, everything mixed and a million neurons, a GPU for each rank; then times of bursts and exchanges."""
    from suites.support.shards.nccl_rank_check import CONDITIONS, PARTS

    ranks = _ranks()
    output = tmp_path / "found.json"
    program = ["suites.support.shards.nccl_rank_check", expected_file, output]
    started = mpi_door.start(ranks, program, mpi_door.ROOT)
    _, errors = started.communicate(timeout=PATIENCE_S)
    assert started.returncode == 0, errors[-4000:]
    by_nccl, by_hosts = json.loads(output.read_text("utf-8"))
    assert by_nccl["path"].startswith("NCCL between ranks")
    assert by_hosts["path"] == "through host memory and MPI (cuda.multi_gpu.use_nccl is off)"
    for row, path in ((by_nccl, "nccl"), (by_hosts, "host and MPI")):
        assert row["problems"] == []
        conditions: dict[str, object] = {"backend": f"cuda, {ranks} MPI ranks", "path": path}
        for name, problem in row["cases"].items():
            trace = {"trace": name.removeprefix("trace ")}
            measure("parity.disagreements", int(problem is not None), "1", conditions={**conditions, **trace})
            assert problem is None, f"{name} by {path}: {problem}"
        conditions |= {"ranks": ranks, **CONDITIONS}
        note = f"{sum(PARTS)} bursts, state and last exchange equal the CPU's; lists are recorded"
        measure("rank.burst", row["burst_ms"], "ms", conditions=conditions, note=note)
        samples = row["exchange_us"]
        note = f"{row['fired']} firings from devices to all devices and hosts, slowest rank, one burst's lists again"
        value = float(np.median(samples))
        measure("rank.exchange", value, "us", samples=samples, conditions=conditions, note=note)


@needs_ranks
@pytest.mark.gate("multi_gpu")
def test_a_rank_that_nccl_waits_for_is_named(tmp_path: Path) -> None:
    """Of two runs over NCCL one loses a rank by SIGKILL, the other has it stopped: both end and name it."""
    _ranks()
    cases = {
        signal.SIGKILL: "rank 1 of 2 was ended by SIGKILL",
        signal.SIGSTOP: "waited 4 s for the exchange of what fired; no answer from rank 1: dead, stopped or cut off",
    }
    runs = {ending: _endless_run(tmp_path, ending.name) for ending in cases}
    try:
        for ending, ranks in runs.items():
            checkpoint = tmp_path / f"{ending.name}.bpstate"
            _await(checkpoint, ranks)
            os.kill(mpi_door.process_of(1, str(checkpoint)), ending)
        for ending, ranks in runs.items():
            _, errors = ranks.communicate(timeout=PATIENCE_S)
            assert ranks.returncode != 0
            assert cases[ending] in errors
    finally:
        for ranks in runs.values():
            if ranks.poll() is None:
                ranks.kill()
                ranks.communicate()


def _endless_run(folder: Path, name: str) -> subprocess.Popen[str]:
    """Two CUDA ranks in a run that does not end by itself."""
    often = ("--checkpoint", folder / f"{name}.bpstate", "--checkpoint-every", 3000, "--rank-timeout", 4)
    run = ("run", "--genome", GENOME, "--bursts", 10_000_000, "--backend", "cuda", "--stimulate", "1-9:1=2")
    return mpi_door.start(2, ["burstproof", *run, *often], folder)


def _await(file: Path, ranks: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not file.exists():
        assert ranks.poll() is None, ranks.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)
