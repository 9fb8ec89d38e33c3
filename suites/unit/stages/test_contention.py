"""What others took of the CPU while a stage ran, from the kernel's counters."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from stages.contention import CpuTimes, contention_between, read_times

pytestmark = pytest.mark.requirement("RE-7")


def test_shares_of_others_and_of_stolen_time(tmp_path: Path) -> None:
    """Of 100 s over all cores 20 were idle, 10 stolen; of the 70 that are left 10 were this run's."""
    (tmp_path / "cpuinfo").write_text("cpu MHz : 2000.0\nx\ncpu MHz : 3000.0\n", encoding="utf-8")
    found = contention_between(CpuTimes(100, 50, 1, 5), CpuTimes(200, 70, 11, 15), tmp_path)
    assert (found["others"], found["steal"], found["clock_mhz"]) == (0.6, 0.1, 2500.0)
    assert found["load"] >= 0.0


def test_columns_of_the_kernel(tmp_path: Path) -> None:
    """User, nice, system, idle, iowait, irq, softirq, steal; guest time is in user time already."""
    (tmp_path / "stat").write_text("cpu  100 200 300 400 500 600 700 800 900 0\ncpu0 1\n", encoding="ascii")
    times = read_times(tmp_path)
    assert times is not None
    assert times.total_s == pytest.approx(times.idle_s * 4)
    assert times.steal_s == pytest.approx(times.idle_s * 8 / 9)


def test_nothing_is_claimed_where_nothing_can_be_read(tmp_path: Path) -> None:
    assert read_times(tmp_path / "absent") is None
    assert contention_between(None, CpuTimes(1, 1, 1, 1)) == {}
    assert contention_between(CpuTimes(1, 1, 1, 1), CpuTimes(1, 1, 1, 1)) == {}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the counters are those of Linux")
def test_the_work_of_a_child_that_ended_is_this_runs() -> None:
    before = read_times()
    subprocess.run([sys.executable, "-c", "import time\nwhile time.process_time() < 1: pass"], check=True)
    after = read_times()
    assert before is not None
    assert after is not None
    assert after.own_s - before.own_s >= 0.9
