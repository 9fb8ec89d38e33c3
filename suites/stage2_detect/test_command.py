"""``python -m hardware``: readable on any machine, exit code 0."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from burstproof.errors import ExitCode
from hardware.__main__ import main
from hardware.nvml_codes import NvmlCode
from hardware.show import to_text
from suites.support.fake_nvml import FakeMachine, dgx_h100, failing_half_way, mig_box, no_nvml, pascal_box

pytestmark = pytest.mark.requirement("ST-2")

CHECKOUT = Path(__file__).parents[2]


@pytest.mark.parametrize("machine", [dgx_h100(), pascal_box(), no_nvml(), failing_half_way(), FakeMachine()])
def test_json_on_every_machine(machine: FakeMachine, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--json"], open_door=machine.open) == 0
    printed = json.loads(capsys.readouterr().out)
    assert set(printed) == {"inventory", "gates", "prerequisites"}
    assert len(printed["inventory"]["gpus"]) == len(machine.gpus)
    assert all(gate["reason"] for gate in printed["gates"].values())


def test_text_without_nvml_says_so_with_the_cure(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([], open_door=no_nvml(NvmlCode.DRIVER_NOT_LOADED).open) == 0
    printed = capsys.readouterr().out
    assert "GPUs: none. The NVIDIA kernel driver is not loaded: load the kernel module" in printed
    assert "CLOSED" in printed


def test_text_of_a_dgx() -> None:
    printed = to_text(dgx_h100().inventory())
    assert "GPU 7: NVIDIA H100 80GB HBM3, capability 9.0, 79.6 GiB, 132 SMs" in printed
    assert "GPU 0 - GPU 7: nvlink x18, 450 GB/s" in printed
    assert "GPUs 0, 1, 2, 3, 4, 5, 6, 7 reach each other's memory." in printed


def test_text_tells_what_is_not_met_and_what_failed() -> None:
    assert "NOT MET  requires >= 7.0; found 6.1" in to_text(pascal_box().inventory())
    assert "Failed half-way: GPU 2: the GPU fell off the bus" in to_text(failing_half_way().inventory())
    assert "MIG on" in to_text(mig_box().inventory())
    nameless = replace(pascal_box(), failures={("name", None): NvmlCode.UNKNOWN})
    assert "GPU 0: name unknown" in to_text(nameless.inventory())


def test_wrong_usage_is_exit_code_4(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["--foo"], open_door=no_nvml().open)
    assert end.value.code == ExitCode.USAGE
    assert "unrecognized arguments: --foo" in capsys.readouterr().err


def test_the_command_on_this_machine() -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(CHECKOUT / "impl"), str(CHECKOUT)])}
    done = subprocess.run(
        [sys.executable, "-m", "hardware", "--json"],
        cwd=CHECKOUT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    printed = json.loads(done.stdout)
    assert printed["inventory"]["host"]["python"].startswith(f"{sys.version_info.major}.{sys.version_info.minor}")
    assert printed["gates"]["none"]["is_open"] is True


def test_taking_the_inventory_imports_no_cuda_package() -> None:
    code = (
        "import sys; before = set(sys.modules); from hardware.inventory import take_inventory; "
        "from hardware.gates import evaluate_gates; evaluate_gates(take_inventory()); "
        "roots = {name.split('.')[0] for name in set(sys.modules) - before}; "
        "print(sorted(roots & {'cupy', 'numba', 'numba_cuda', 'cuda', 'numpy'}))"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(CHECKOUT / "impl"), str(CHECKOUT)])}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=CHECKOUT, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
