"""Occupancy worked out without a device, and the command that prints what a file's kernels need."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from burstproof.cli.main import main
from burstproof.compile.numba_cubin import refusal, toolkit_version
from burstproof.compile.resources import occupancy
from burstproof.errors import InputError
from suites.support.compile.tools import needs_tools

pytestmark = pytest.mark.requirement("KL-4", "ST-1")

SCALE = 'extern "C" __global__ void scale(float* v, float f) { v[threadIdx.x] *= f; }\n'


@pytest.mark.parametrize(
    ("capability", "registers", "shared", "block", "blocks", "bound"),
    [
        ((9, 0), 32, 0, 256, 8, "threads"),  # 2048 threads
        ((9, 0), 32, 0, 32, 32, "blocks"),
        ((9, 0), 128, 0, 256, 2, "registers"),  # 4096 registers a warp, 8 warps: 65536 / 32768
        ((9, 0), 129, 0, 256, 1, "registers"),  # 4352 registers a warp: 15 warps, 12 in fours
        ((9, 0), 32, 100 << 10, 256, 2, "shared memory"),  # 228 KiB / 101 KiB
        ((8, 6), 32, 0, 256, 6, "threads"),  # 1536 threads
        ((7, 0), 32, 48 << 10, 256, 2, "shared memory"),  # 96 KiB, nothing reserved
        ((9, 0), 255, 0, 512, 0, "registers"),  # 8192 registers a warp: 8 warps, a block has 16
    ],
)
def test_occupancy_worked_out_by_hand(
    capability: tuple[int, int], registers: int, shared: int, block: int, blocks: int, bound: str
) -> None:
    found = occupancy(capability, registers, shared, block)
    assert (found.blocks, found.bound_by) == (blocks, bound)


def test_no_occupancy_for_what_is_not_known() -> None:
    with pytest.raises(InputError, match="no occupancy"):
        occupancy((3, 5), 32, 0, 256)
    with pytest.raises(InputError, match=r"1\.\.\.1024 threads"):
        occupancy((9, 0), 32, 0, 2048)


@needs_tools
def test_the_command_prints_the_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, cubin = tmp_path / "scale.cu", tmp_path / "scale.cubin"
    file.write_text(SCALE)
    assert main(["compile", str(file), "--capability", "9.0", "--json", "--output", str(cubin)]) == 0
    (image,) = json.loads(capsys.readouterr().out)["images"]
    (kernel,) = image["kernels"]
    assert (image["capability"], kernel["kernel"], kernel["occupancy"]["blocks"]) == ("9.0", "scale", 8)
    assert cubin.read_bytes().startswith(b"\x7fELF")
    assert main(["compile", str(file), "--capability", "8.0", "--capability", "9.0"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["scale.cu", "kernel", "scale"] * 2


def test_a_capability_that_no_device_has_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "scale.cu"
    file.write_text(SCALE)
    assert main(["compile", str(file), "--capability", "6.0"]) == 3
    assert "--capability: unknown capability (got '6.0'; allowed: 7.0" in capsys.readouterr().err


@needs_tools
def test_the_oldest_capability_is_built_or_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """CUDA 12 builds 7.0, whose machine code nvdisasm does not read; the tools of CUDA 13 do not build it any more."""
    file = tmp_path / "scale.cu"
    file.write_text(SCALE)
    code, said = main(["compile", str(file), "--capability", "7.0"]), capsys.readouterr()
    if toolkit_version() < (13, 0):
        assert code == 0
        assert "unknown: nvdisasm reads machine code from capability 7.5 on" in said.out
    else:
        assert code == 3
        assert said.out == ""
        assert "no longer builds for this capability (got '7.0'). Use an environment with the extra compile" in said.err


@needs_tools
def test_what_newer_tools_have_dropped_is_an_error_of_the_environment(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with a capability that no tools know: nothing is wrong with the command, other tools would build it."""
    monkeypatch.setattr("burstproof.compile.numba_cubin.toolkit_version", lambda: (13, 4))
    file = tmp_path / "scale.cu"
    file.write_text(SCALE)
    assert main(["compile", str(file), "--capability", "7.0"]) == 3
    said = capsys.readouterr().err
    assert "--capability: the installed tools are of CUDA 13.4" in said
    assert said.count("7.0") == 1
    assert refusal((7, 5)) is None


@needs_tools
@pytest.mark.parametrize(
    ("arguments", "code", "part"),
    [
        (["--capability", "9"], 4, "such as 9.0"),
        (["--capability", "9.0", "--define", "1"], 4, "NAME or NAME=VALUE"),
        (["--capability", "9.0", "--capability", "8.0", "--output", "x"], 4, "Compile once for each capability"),
        (["--capability", "9.0", "--template", "nix<3>"], 4, "got 'nix<3>'"),
        (["--capability", "9.0", "--output", "no/such/x"], 4, "--output: the folder does not exist"),
        (["--capability", "99.0"], 3, "Choose a capability that the installed compiler knows"),
    ],
)
def test_the_command_refuses(
    arguments: list[str], code: int, part: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "scale.cu"
    file.write_text(SCALE)
    assert main(["compile", str(file), *arguments]) == code
    assert part in capsys.readouterr().err


@needs_tools
@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("template <typename T> __global__ void f(T* x) { *x = 1; }", ["holds no kernel", "--template"]),
        ("", ["holds no kernel", "__global__"]),
        ("__global__ void f(int* x) { *x = y; }", ["bad.cu, line 1", '"y" is undefined']),
    ],
    ids=["template without instance", "empty", "undefined name"],
)
def test_a_source_that_is_wrong_is_exit_code_4(
    text: str, parts: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "bad.cu"
    file.write_text(text)
    assert main(["compile", str(file), "--capability", "9.0"]) == 4
    said = capsys.readouterr().err
    assert all(part in said for part in parts)
