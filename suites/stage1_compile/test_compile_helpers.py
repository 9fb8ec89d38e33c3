"""Kernels of an engine that helpers compile in processes of their own, on cores that are idle."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from burstproof.compile.code import NumbaCode
from burstproof.compile.numba_cubin import Image, compile_kernel
from burstproof.device.protocol import DeviceRuntime
from burstproof.engine.cuda.host.compiling import kernels_of
from burstproof.engine.cuda.kernels.catalogue import catalogue
from burstproof.engine.cuda.plan.shard_variant import ShardVariant, whole
from suites.support.compile.tools import needs_tools
from suites.support.compile.variants import chosen_variants

pytestmark = [
    pytest.mark.requirement("KL-1", "BE-6"),
    pytest.mark.xdist_group("helpers that compile"),
    needs_tools,
]

HOPPER = (9, 0)
LONGEST_S = 120.0


@pytest.fixture
def lean() -> ShardVariant:
    return whole(chosen_variants()["lean"])


@pytest.fixture
def own_work(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Names of what this process compiles, in its order, with an empty cache and four idle cores."""
    names: list[str] = []

    def noted(name: str, *rest: Any) -> Image:
        names.append(name)
        return compile_kernel(name, *rest)

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("burstproof.compile.code.compile_kernel", noted)
    monkeypatch.setattr("burstproof.engine.cuda.host.compiling.idle_cores", lambda: 4)
    return names


def device(load: Callable[[NumbaCode], Image]) -> DeviceRuntime:
    """A model of device of its own, whose kernels are images."""
    return cast(DeviceRuntime, SimpleNamespace(simulated=False, capability=HOPPER, name=object(), kernel=load))


def _once_others_are_kept(code: NumbaCode, shard: ShardVariant) -> Image:
    """The image of ``code``; that of the burst only when helpers have done all others."""
    others = [spec.code for spec in catalogue(shard) if spec.name != "burst"]
    deadline = time.monotonic() + LONGEST_S
    while code.name == "burst" and not all(other.is_kept(HOPPER) for other in others):
        assert time.monotonic() < deadline, "helpers keep nothing"
        time.sleep(0.1)
    return code.image(HOPPER)


@pytest.mark.thorough("compiles the lean kernels again")
def test_helpers_compile_all_but_the_longest(lean: ShardVariant, own_work: list[str]) -> None:
    kernels = kernels_of(device(lambda code: _once_others_are_kept(code, lean)), lean)
    assert own_work == ["burst"]
    assert kernels.keys() == {spec.name for spec in catalogue(lean)}
    assert all(kernel.cubin.startswith(b"\x7fELF") for kernel in kernels.values())


@pytest.mark.thorough("compiles the lean kernels again")
@pytest.mark.parametrize("interpreter", ["/bin/false", "/nowhere/python", ""])
def test_without_helpers_this_process_compiles_everything(
    lean: ShardVariant, own_work: list[str], monkeypatch: pytest.MonkeyPatch, interpreter: str
) -> None:
    monkeypatch.setattr(sys, "executable", interpreter)
    kernels_of(device(lambda code: code.image(HOPPER)), lean)
    assert sorted(own_work) == sorted(spec.code.name for spec in catalogue(lean))


@pytest.mark.thorough("compiles the lean kernels again")
def test_helpers_find_modules_where_this_process_does(
    lean: ShardVariant, own_work: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Not in the folder at hand, where a file may be called like a module; what is no text is no place to look."""
    folder = tmp_path / "here"
    folder.mkdir()
    (folder / "pickle.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\nraise SystemExit")
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", [*sys.path, tmp_path])
    kernels_of(device(lambda code: _once_others_are_kept(code, lean)), lean)
    assert own_work == ["burst"]
    assert not (tmp_path / "ran").exists()


@pytest.mark.thorough("compiles the lean kernels again")
@pytest.mark.parametrize("what", ["frozen", "helper"])
def test_programs_that_would_begin_again_have_no_helpers(
    lean: ShardVariant, own_work: list[str], monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    if what == "frozen":
        monkeypatch.setattr(sys, "frozen", True, raising=False)
    else:
        monkeypatch.setenv("BURSTPROOF_COMPILES_FOR_ANOTHER", "1")
    monkeypatch.setattr(subprocess, "Popen", _refused)
    kernels_of(device(lambda code: code.image(HOPPER)), lean)
    assert len(own_work) == len(catalogue(lean))


def _refused(*_: Any, **__: Any) -> None:
    raise AssertionError("a helper was started")


@pytest.mark.thorough("compiles the lean kernels again")
def test_busy_machines_and_full_caches_need_no_helpers(
    lean: ShardVariant, own_work: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subprocess, "Popen", _refused)
    monkeypatch.setattr("burstproof.engine.cuda.host.compiling.idle_cores", lambda: 2)
    kernels_of(device(lambda code: code.image(HOPPER)), lean)
    made = len(own_work)
    monkeypatch.setattr("burstproof.engine.cuda.host.compiling.idle_cores", lambda: 16)
    kernels_of(device(lambda code: code.image(HOPPER)), lean)
    assert len(own_work) == made == len(catalogue(lean))
