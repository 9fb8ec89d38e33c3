"""Kernels of the CPU engine kept on disk: a later process loads what an earlier one compiled, and nothing else."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from numba.core import config

from burstproof.engine import disk
from burstproof.engine.cpu import kernels as cpu_kernels
from burstproof.engine.cpu.engine import CpuEngine
from burstproof.engine.reference import ReferenceEngine
from suites.support.homeless import leave_home
from suites.support.parity.mixed import MIXES, mixed_network, mixed_options, mixed_plan

ROOT = Path(__file__).parents[4]

pytestmark = pytest.mark.requirement("BE-5")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder, not made yet, that is the only one in which numba may keep compiled functions."""
    monkeypatch.setattr(config, "CACHE_LOCATOR_CLASSES", "UserProvidedCacheLocator")
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "kernels"))
    return tmp_path / "kernels"


def multiplier(factor: int, key: object) -> Any:
    """A function that calls a function made at run time, as kernels do; made anew by each call."""

    @numba.njit
    def inner(value: int) -> int:
        return value * factor

    @numba.njit
    def outer(value: int) -> int:
        return inner(value) + 1

    disk.keep_on_disk(outer, key)
    return outer


def loaded(function: Any) -> int:
    """How many signatures of ``function`` came from disk."""
    return sum(function.stats.cache_hits.values())


def test_the_same_key_is_loaded_and_another_is_compiled(folder: Path) -> None:
    first, again, other = multiplier(3, "three"), multiplier(3, "three"), multiplier(5, "five")
    assert [function(7) for function in (first, again, other)] == [22, 22, 36]
    assert [loaded(function) for function in (first, again, other)] == [0, 1, 0]
    assert again(0.5) == 2.5, "another signature"
    assert loaded(again) == 1
    assert len([file for file in folder.rglob("*") if file.is_file()]) == 3


def test_without_a_home_nothing_is_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The key would have no place that is closed to others."""
    leave_home(monkeypatch)
    first, again = multiplier(3, "three"), multiplier(3, "three")
    assert (first(7), again(7), loaded(again)) == (22, 22, 0)
    assert not folder.exists()


_COMPILES = """
import sys, time
from pathlib import Path
from suites.unit.burstproof.engine.test_disk import loaded, multiplier

function = multiplier(3, "three")
Path(sys.argv[1]).touch()
while not Path(sys.argv[2]).exists():
    time.sleep(0.01)
assert function(7) == 22
print(loaded(function))
"""


def _compiling(ready: Path, go: Path, folder: Path) -> subprocess.Popen[str]:
    paths = os.pathsep.join([str(ROOT / "impl"), str(ROOT)])
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder), "PYTHONPATH": paths}
    command = [sys.executable, "-c", _COMPILES, str(ready), str(go)]
    return subprocess.Popen(command, env=environment, cwd=ROOT, stdout=subprocess.PIPE, text=True)


@pytest.mark.thorough("starts three processes that compile")
def test_processes_that_lack_a_kernel_compile_it_once(tmp_path: Path, folder: Path) -> None:
    ready, go = [tmp_path / f"ready{number}" for number in range(3)], tmp_path / "go"
    processes = [_compiling(file, go, folder) for file in ready]
    while not all(file.exists() for file in ready):
        assert all(process.poll() is None for process in processes)
        time.sleep(0.01)
    go.touch()
    assert sorted(process.communicate(timeout=120)[0].strip() for process in processes) == ["0", "1", "1"]
    assert len([file for file in folder.rglob("*") if file.is_file()]) == 1, "locks are gone"


def test_who_holds_a_kernel_for_too_long_is_not_waited_for(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "MOST_COMPILING_S", 0.2)
    held = disk._folder()
    assert held is not None
    monkeypatch.setattr(disk.DiskCache, "_file", lambda *_: "burstproof-kernel-x")
    claimed = held.claim("burstproof-kernel-x", 0.0)
    assert claimed is not None
    function = multiplier(3, "three")
    assert function(7) == 22
    assert loaded(function) == 0
    held.release("burstproof-kernel-x", claimed)


def test_the_sources_of_kernels_name_their_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """A change of any module with functions that are compiled into kernels makes other files."""
    packages = set()

    def named(function: Any) -> Any:
        packages.add(function.__module__.rpartition(".")[0])
        return function

    monkeypatch.setattr("burstproof.engine.compiler._named", named)
    monkeypatch.setattr("burstproof.engine.cpu.memory.kernels_for", cpu_kernels.kernels_for.__wrapped__)
    CpuEngine.create(mixed_network(MIXES[6]), mixed_options(MIXES[6])).close()
    assert packages
    assert packages <= set(disk._SOURCES)


def test_kernels_of_other_sources_go(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    assert multiplier(3, "three")(7) == 22
    monkeypatch.setattr(disk, "SOURCES_DIGEST", "changed")
    newer = multiplier(4, "three")
    assert newer(7) == 29
    assert loaded(newer) == 0
    (file,) = (file for file in folder.rglob("*") if file.is_file())
    assert "changed" in file.name


_KERNELS_OF_A_PROCESS = """
import sys
import numpy as np
from burstproof.engine.compiler import compiler, inner_compiler, names_of
from burstproof.engine.disk import keep_on_disk

def make(factor):
    @inner_compiler
    def inner(values, rounds):
        total = 0
        for k in range(rounds):
            for j in range(len(values)):
                if values[j] % 3 == k % 3:
                    total += values[j] * factor
                elif values[j] > k:
                    total -= k
                else:
                    values[j] += 1
            for j in range(k):
                total += j * k % 5
        return total

    @compiler
    def outer(values):
        return inner(values, 3) + inner(values, 4) + inner(values, 5) + inner(values[1:], 6)

    return outer

for factor in map(int, sys.argv[1:]):
    with names_of(factor):
        kernel = make(factor)
    keep_on_disk(kernel, factor)
    print(kernel(np.arange(10)), sum(kernel.stats.cache_hits.values()))
"""


@pytest.mark.thorough("compiles kernels in processes of their own")
def test_a_loaded_kernel_calls_its_own_functions(tmp_path: Path) -> None:
    """Not those of the same name and number that this process compiled for another key."""

    script = tmp_path / "kernels_of_a_process.py"
    script.write_text(_KERNELS_OF_A_PROCESS)

    def results(*factors: int) -> list[list[str]]:
        done = subprocess.run(
            [sys.executable, str(script), *map(str, factors)],
            env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "kernels"), "PYTHONPATH": str(ROOT / "impl")},
            capture_output=True,
            text=True,
            check=True,
        )
        return [line.split() for line in done.stdout.splitlines()]

    ((three, compiled),) = results(3)
    (five, _), (again, loaded) = results(5, 3)
    assert (compiled, loaded) == ("0", "1")
    assert again == three != five


def kept_file(folder: Path) -> Path:
    """The file of ``multiplier(3, "three")``."""
    assert multiplier(3, "three")(7) == 22
    (file,) = (file for file in folder.rglob("burstproof-kernel-*") if file.is_file())
    return file


def _no_folder(folder: Path) -> None:
    folder.write_text("a file where the folder should be")


def _truncated(folder: Path) -> None:
    file = kept_file(folder)
    file.write_bytes(file.read_bytes()[:100])


def _planted(folder: Path) -> None:
    """A file that runs a command when it is unpickled, as it is and behind something that looks like a seal."""
    file = kept_file(folder)
    content = pickle.dumps(_Command(folder / "command was run"))
    file.write_bytes(content)
    assert multiplier(3, "three")(7) == 22
    file.write_bytes(file.read_bytes()[:32] + content)


class _Command:
    def __init__(self, file: Path) -> None:
        self._file = file

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self._file,)


@pytest.mark.parametrize("damage", [_no_folder, _truncated, _planted])
def test_without_a_usable_file_the_function_is_compiled(damage: Callable[[Path], None], folder: Path) -> None:
    def damaged_and_made_again() -> tuple[int, int]:
        damage(folder)
        function = multiplier(3, "three")
        return function(7), loaded(function)

    with pytest.warns(UserWarning, match="the kernels are compiled again") as said:
        result = damaged_and_made_again()
    assert result == (22, 0)
    assert len(said) == 1, "said once"
    assert not (folder / "command was run").exists()


def test_a_bad_file_is_built_anew(folder: Path) -> None:
    _truncated(folder)
    with pytest.warns(UserWarning, match="is damaged, or was not written by this user"):
        multiplier(3, "three")(7)
    again = multiplier(3, "three")
    assert (again(7), loaded(again)) == (22, 1)


_FLIPS = """
import sys
import time
from pathlib import Path
import burstproof.engine.disk as disk
from suites.unit.burstproof.engine.test_disk import kept_file, loaded, multiplier

folder, step = Path(sys.argv[1]), int(sys.argv[2])
file = kept_file(folder)
whole = file.read_bytes()
accepted = []
for at in range(1, len(whole), len(whole) // step):
    damaged = bytearray(whole)
    damaged[at] ^= 1 << at % 8
    file.write_bytes(damaged)
    function = multiplier(3, "three")
    assert function(7) == 22
    if loaded(function):
        accepted.append(at)
print(accepted)
"""


@pytest.mark.thorough("seconds")
def test_no_flipped_bit_is_loaded(tmp_path: Path) -> None:
    """In a process of its own: a kernel with a flipped bit may end the process that runs it."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _FLIPS, str(tmp_path / "kernels"), "9"],
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "kernels"), "PYTHONPATH": f"{ROOT / 'impl'}:{ROOT}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr


def test_a_folder_that_cannot_be_written_any_more_does_no_harm(folder: Path) -> None:
    kept_file(folder)
    function = multiplier(3, "three")
    shutil.rmtree(folder)
    _no_folder(folder)
    with pytest.warns(UserWarning, match="this is no folder"):
        assert function(7) == 22


@pytest.mark.thorough("compiles kernels in processes of their own")
def test_a_loaded_kernel_agrees_with_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels made anew, as in another process: the first are compiled, the second loaded; both run alike."""
    monkeypatch.setattr("burstproof.engine.cpu.memory.kernels_for", cpu_kernels.kernels_for.__wrapped__)
    mix = MIXES[6]
    network, options = mixed_network(mix), mixed_options(mix)
    plan = mixed_plan(mix, network)
    reference = ReferenceEngine.create(network, options)
    expected = reference.run(mix.bursts, plan)
    engines = [CpuEngine.create(network, options) for _ in range(2)]
    for engine in engines:
        np.testing.assert_array_equal(engine.run(mix.bursts, plan).fired_ids, expected.fired_ids)
        assert engine.state().differences(reference.state()) == ()
    assert [loaded(engine.kernels.run_batch) for engine in engines] == [0, 1]
