"""Whatever way a stage ends, none of its processes is left; a process that died stalls nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from burstproof.errors import ExitCode
from reports.values.measurement import Outcome
from stages import suite_process, supervisor
from suites.unit.stages.test_runner import GOOD, MARK, ROOT, Checkout, run

pytestmark = pytest.mark.requirement("RE-2")

LEAVES_PROCESSES = (
    MARK
    + """
import os, pathlib, subprocess, sys, time
SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]
def test_it():
    child = subprocess.Popen(SLEEP)
    session = subprocess.Popen(SLEEP, start_new_session=True)
    orphan = subprocess.run(["sh", "-c", f"setsid {SLEEP[0]} -c 'import time; time.sleep(600)' & echo $!"],
                            stdout=subprocess.PIPE, text=True).stdout if HOW == "stays" else "0"
    pids = [os.getpid(), child.pid, session.pid]
    partial = pathlib.Path(NOTE + ".partial")
    partial.write_text(" ".join(map(str, pids)))
    partial.rename(NOTE)
    if HOW == "stays":
        time.sleep(600)
    if HOW == "dies":
        os.kill(os.getpid(), 9)
"""
)
STARTS = """
import signal, sys
from pathlib import Path
signal.signal(signal.SIGINT, signal.SIG_IGN)
from stages.__main__ import end_in_order
from stages.command import main
from stages.plan import Stage
plan = (Stage("stage1", "part", "none", "", ("part1",), ""),)
sys.exit(main(["run", "--run", sys.argv[1] + "/run"], Path(sys.argv[1]), plan))
"""


def test_placeholder() -> None:
    assert Path(supervisor.__file__).is_file()
