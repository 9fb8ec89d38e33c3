"""Inventory, gates and prerequisites on recorded machines, GPU-free."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hardware.gates import GATE_NAMES, evaluate_gates, peer_group, usable_gpus, visible_indices
from hardware.host import CudaStack
from hardware.inventory import take_inventory
from hardware.nvml_codes import NvmlCode, P2pStatus
from hardware.prerequisites import judge_prerequisites, version_key
from suites.support.fake_nvml import (
    CUDA_12_STACK,
    GTX_1080,
    H100,
    LINUX_HOST,
    V100,
    FakeMachine,
    FakeNvml,
    dgx_h100,
    failing_half_way,
    h200_box,
    mig_box,
    no_nvml,
    old_driver_box,
    pascal_box,
    v100_pair,
)

pytestmark = pytest.mark.requirement("ST-2")

MACHINES = {
    "dgx_h100": dgx_h100(),
    "h200_one": h200_box(1),
    "h200_four": h200_box(4),
    "v100_pair": v100_pair(),
    "old_driver": old_driver_box(),
    "pascal": pascal_box(),
    "mig": mig_box(),
    "mig_empty": mig_box(instances=0),
    "no_nvml": no_nvml(),
    "failing_half_way": failing_half_way(),
    "no_gpu": FakeMachine(),
}
OPEN_GATES = {
    "dgx_h100": {"none", "nvml", "gpu", "multi_gpu"},
    "h200_one": {"none", "nvml", "gpu"},
    "h200_four": {"none", "nvml", "gpu", "multi_gpu"},
    "v100_pair": {"none", "nvml", "gpu", "multi_gpu"},
    "old_driver": {"none", "nvml"},
    "pascal": {"none", "nvml"},
    "mig": {"none", "nvml", "gpu"},
    "mig_empty": {"none", "nvml"},
    "no_nvml": {"none"},
    "failing_half_way": {"none", "nvml", "gpu", "multi_gpu"},
    "no_gpu": {"none"},
}


@pytest.mark.parametrize("name", MACHINES)
def test_gates_of_each_machine(name: str) -> None:
    gates = evaluate_gates(MACHINES[name].inventory())
    assert tuple(gates) == GATE_NAMES
    assert {gate.name for gate in gates.values() if gate.is_open} == OPEN_GATES[name]
    for gate in gates.values():
        assert gate.reason.endswith(".")
        assert ". " not in gate.reason, "a reason is one sentence"
        assert gate.is_open or ":" in gate.reason, "a closed gate states the cure after what is missing"


@pytest.mark.parametrize("name", MACHINES)
def test_the_inventory_survives_json(name: str) -> None:
    plain = MACHINES[name].inventory().to_dict()
    assert json.loads(json.dumps(plain)) == plain
    assert len(plain["gpus"]) == len(MACHINES[name].gpus)


def test_dgx_inventory_is_complete() -> None:
    inventory = dgx_h100().inventory()
    assert inventory.problem is None
    assert inventory.problems == ()
    assert (inventory.driver_version, inventory.cuda_driver_version) == ("550.54.15", (12, 4))
    assert len(inventory.gpus) == 8
    gpu = inventory.gpus[3]
    assert (gpu.name, gpu.compute_capability, gpu.sm_count) == ("NVIDIA H100 80GB HBM3", (9, 0), 132)
    assert (gpu.pcie_generation, gpu.pcie_max_generation, gpu.pcie_width) == (1, 5, 16)
    assert (gpu.mig_enabled, gpu.mig_instances, gpu.ecc) == (False, None, True)
    assert (gpu.memory_total_bytes, len(gpu.nvlinks)) == (int(79.647 * 2**30), 18)
    assert [link.remote for link in gpu.nvlinks] == ["switch"] * 18


def test_old_driver_is_refused_with_the_cure() -> None:
    inventory = old_driver_box().inventory()
    gate = evaluate_gates(inventory)["gpu"]
    assert "470.256.02 is older than 520.61.05: install an NVIDIA driver" in gate.reason
    assert inventory.gpus[0].sm_count is None
    assert inventory.problems == (), "a call that the driver does not know is no failure"


def test_a_driver_for_an_older_cuda_than_the_packages_is_refused() -> None:
    inventory = FakeMachine(gpus=(H100,), driver="520.61.05", cuda=(11, 8)).inventory()
    gate = evaluate_gates(inventory)["gpu"]
    assert not gate.is_open
    assert "serves CUDA 11.8, but the installed packages are for CUDA 12: install" in gate.reason


def test_volta_is_refused_under_cuda_13_packages() -> None:
    machine = replace(v100_pair(), driver="580.65.06", cuda=(13, 0))
    refused = machine.inventory(stack=CudaStack(cupy=True, numba_cuda=True, cuda_major=13))
    reason = evaluate_gates(refused)["gpu"].reason
    assert reason.startswith("None of the 2 GPUs is usable; GPU 0 (")
    assert "CUDA 13 dropped: pip install '.[cuda12]'" in reason
    assert evaluate_gates(machine.inventory())["gpu"].is_open


@pytest.mark.parametrize(
    ("stack", "named"),
    [
        (CudaStack(cupy=False, numba_cuda=True), "cupy is"),
        (CudaStack(cupy=True, numba_cuda=False), "numba_cuda is"),
        (CudaStack(cupy=False, numba_cuda=False), "cupy, numba_cuda is"),
    ],
)
def test_missing_packages_close_the_gate(stack: CudaStack, named: str) -> None:
    gates = evaluate_gates(h200_box(2).inventory(stack=stack))
    assert named in gates["gpu"].reason
    assert "'.[cuda12]'" in gates["gpu"].reason
    assert not gates["multi_gpu"].is_open
    assert gates["nvml"].is_open


def test_the_open_gate_says_the_mig_state() -> None:
    assert "MIG off" in evaluate_gates(dgx_h100().inventory())["gpu"].reason
    assert "MIG on with 2 slices" in evaluate_gates(mig_box().inventory())["gpu"].reason
    assert "no MIG device: create one" in evaluate_gates(mig_box(instances=0).inventory())["gpu"].reason
    assert "no peer access: turn MIG off" in evaluate_gates(mig_box().inventory())["multi_gpu"].reason


def test_a_gpu_without_the_mig_feature_has_mig_off() -> None:
    assert v100_pair().inventory().gpus[0].mig_enabled is False


@pytest.mark.parametrize(
    ("code", "cure"),
    [
        (NvmlCode.PYTHON_PACKAGE_MISSING, "nvidia-ml-py"),
        (NvmlCode.LIBRARY_NOT_FOUND, "install the NVIDIA driver"),
        (NvmlCode.DRIVER_NOT_LOADED, "modprobe"),
        (NvmlCode.LIB_RM_VERSION_MISMATCH, "reboot"),
        (NvmlCode.NO_PERMISSION, "/dev/nvidia"),
        (NvmlCode.UNKNOWN, "nvidia-smi"),
    ],
)
def test_missing_nvml_says_why_and_what_to_do(code: NvmlCode, cure: str) -> None:
    inventory = no_nvml(code).inventory()
    assert inventory.gpus == ()
    assert inventory.problem is not None
    assert code.words.lower() in inventory.problem.lower()
    assert cure in inventory.problem
    gates = evaluate_gates(inventory)
    assert gates["nvml"].reason == gates["gpu"].reason == gates["multi_gpu"].reason == inventory.problem


def test_a_lost_gpu_costs_only_itself() -> None:
    inventory = failing_half_way().inventory()
    assert [gpu.name for gpu in inventory.gpus] == ["NVIDIA H200", "NVIDIA H200", None, "NVIDIA H200"]
    about_it = [problem for problem in inventory.problems if problem.startswith("GPU 2:")]
    assert len(about_it) == 1, "one sentence per subject and reason"
    assert "the GPU fell off the bus" in about_it[0]
    assert "memory" in about_it[0]
    assert [gpu.index for gpu in usable_gpus(inventory)] == [0, 1, 3]
    assert peer_group(inventory) == (0, 1, 3)
    assert "1 GPU cannot be used" in evaluate_gates(inventory)["gpu"].reason


def test_no_peer_access_closes_multi_gpu_with_nvmls_word() -> None:
    machine = replace(h200_box(2), p2p=P2pStatus.CHIPSET_NOT_SUPPORTED)
    gate = evaluate_gates(machine.inventory())["multi_gpu"]
    assert not gate.is_open
    assert "chipset not supported" in gate.reason


@pytest.mark.parametrize(
    ("variable", "expected"),
    [
        (None, (0, 1, 2, 3)),
        ("", ()),
        ("-1", ()),
        ("2,0", (2, 0)),
        ("1,9,2", (1,)),
        ("1,1", (1,)),
        ("GPU-00000003", (3,)),
        ("NoDevFiles", ()),
    ],
)
def test_cuda_visible_devices(variable: str | None, expected: tuple[int, ...]) -> None:
    inventory = h200_box(4).inventory(host=replace(LINUX_HOST, visible_devices=variable))
    assert visible_indices(inventory) == expected
    gate = evaluate_gates(inventory)["gpu"]
    assert gate.is_open is bool(expected)
    if not expected:
        assert "CUDA_VISIBLE_DEVICES" in gate.reason


def test_a_mig_uuid_keeps_the_sliced_gpus_visible() -> None:
    inventory = mig_box().inventory(host=replace(LINUX_HOST, visible_devices="MIG-0123"))
    assert visible_indices(inventory) == (0, 1)


def test_the_only_gpu_is_refused_by_its_own_reason() -> None:
    gate = evaluate_gates(FakeMachine(gpus=(GTX_1080,)).inventory())["gpu"]
    assert gate.reason.startswith("GPU 0 (")


def test_an_old_display_gpu_beside_a_good_one_does_not_close_the_gate() -> None:
    gate = evaluate_gates(FakeMachine(gpus=(GTX_1080, H100)).inventory())["gpu"]
    assert gate.is_open
    assert "H100" in gate.reason


def test_prerequisites_of_a_dgx_are_all_met() -> None:
    inventory = replace(dgx_h100().inventory(), nccl_version="2.27.3")
    judged = judge_prerequisites(inventory)
    assert len(judged) == 3 + 3 * 8
    assert {one.met for one in judged} == {True}
    assert {one.subject for one in judged} == {"machine"} | {f"GPU {index}" for index in range(8)}


@pytest.mark.parametrize(
    ("machine", "name", "found"),
    [
        (old_driver_box(), "driver", "470.256.02"),
        (old_driver_box(), "cuda", "11.4"),
        (pascal_box(), "compute_capability", "6.1"),
        (FakeMachine(gpus=(replace(V100, memory_gib=6.0),)), "memory", "6.4 GB"),
        (FakeMachine(gpus=(replace(V100, pcie=(3, 8)),)), "pcie", "up to PCIe 3.0 x8"),
        (FakeMachine(gpus=(replace(V100, pcie=(2, 16)),)), "pcie", "up to PCIe 2.0 x16"),
    ],
)
def test_each_prerequisite_can_fail_alone(machine: FakeMachine, name: str, found: str) -> None:
    inventory = replace(machine.inventory(), nccl_version="2.16.5")
    failed = [one for one in judge_prerequisites(inventory) if one.met is False]
    by_name = {one.name: one for one in failed}
    assert name in by_name
    assert by_name[name].found.startswith(found)
    assert by_name[name].cure
    assert set(by_name) <= ({"driver", "cuda"} if machine == old_driver_box() else {name})


@pytest.mark.parametrize(("version", "met"), [(None, False), ("2.15.9", False), ("2.16.0", True), ("2.27", True)])
def test_nccl_is_judged_by_version(version: str | None, met: bool) -> None:
    judged = judge_prerequisites(replace(h200_box(2).inventory(), nccl_version=version))
    assert {one.name: one.met for one in judged}["nccl"] is met


@pytest.mark.parametrize(
    ("system", "driver", "met"),
    [
        ("Linux", "520.61.05", True),
        ("Linux", "520.61.04", False),
        ("Linux", "1000.1", True),
        ("Windows", "527.41", True),
        ("Windows", "526.98", False),
        ("Darwin", "600.0", None),
    ],
)
def test_the_least_driver_depends_on_the_system(system: str, driver: str, met: bool | None) -> None:
    inventory = replace(h200_box(1), driver=driver).inventory(host=replace(LINUX_HOST, os=system))
    assert {one.name: one.met for one in judge_prerequisites(inventory)}["driver"] is met


def test_versions_compare_as_numbers() -> None:
    assert version_key("520.61.05") < version_key("520.100.0") < version_key("1000.1")


def test_without_nvml_prerequisites_are_undetermined_with_the_reason() -> None:
    judged = judge_prerequisites(no_nvml().inventory())
    assert {one.name for one in judged} == {"driver", "cuda", "nccl", "compute_capability", "memory", "pcie"}
    undetermined = [one for one in judged if one.name != "nccl"]
    assert {one.met for one in undetermined} == {None}
    assert all(one.found.startswith("not determinable: NVML") for one in undetermined)


def test_a_lost_gpu_leaves_its_own_prerequisites_undetermined() -> None:
    judged = judge_prerequisites(failing_half_way().inventory())
    lost = {one.name: one.met for one in judged if one.subject == "GPU 2"}
    assert lost == {"compute_capability": None, "memory": None, "pcie": None}
    assert all(one.met for one in judged if one.subject == "GPU 3")


def test_every_prerequisite_has_its_target() -> None:
    targets = tomllib.loads((Path(__file__).parents[2] / "reports" / "targets.toml").read_text(encoding="utf-8"))
    aimed = {target["measurement"] for target in targets["target"]}
    assert {f"prerequisite.{one.name}" for one in judge_prerequisites(h200_box(1).inventory())} <= aimed


ERRORS = st.sampled_from([code for code in NvmlCode if code is not NvmlCode.PYTHON_PACKAGE_MISSING])
BOXES = st.sampled_from([h200_box(2), v100_pair(), mig_box(), pascal_box()])


@settings(max_examples=150, deadline=None)
@given(BOXES, st.dictionaries(st.integers(0, 330), ERRORS, max_size=12))
def test_no_pattern_of_failures_makes_the_inventory_raise(machine: FakeMachine, fail_nth: dict[int, NvmlCode]) -> None:
    broken = FakeNvml(replace(machine, fail_nth=fail_nth))
    inventory = replace(take_inventory(broken), host=LINUX_HOST, stack=CUDA_12_STACK)
    json.dumps(inventory.to_dict())
    assert set(evaluate_gates(inventory)) == set(GATE_NAMES)
    assert len(judge_prerequisites(inventory)) >= 6
    hit = [code for number, code in fail_nth.items() if number < len(broken.calls)]
    loud = [code for code in hit if not code.means_absent and code is not NvmlCode.INVALID_ARGUMENT]
    assert bool(inventory.problem or inventory.problems) >= bool(loud), "a failure that broke something is told"
    assert inventory.problem is None or inventory.gpus == ()


def test_every_single_call_may_fail() -> None:
    whole = FakeNvml(h200_box(2))
    take_inventory(whole)
    assert len(whole.calls) > 150
    for number in range(len(whole.calls)):
        broken = replace(h200_box(2), fail_nth={number: NvmlCode.UNKNOWN})
        inventory = take_inventory(FakeNvml(broken))
        assert inventory.problem or len(inventory.problems) == 1, whole.calls[number]


@pytest.mark.parametrize(
    ("cuda", "extra"), [((12, 4), "cuda12"), ((13, 0), "cuda13"), ((13, 9), "cuda13"), ((14, 0), "cuda13")]
)
def test_the_extra_that_is_named_serves_the_gates_driver(cuda: tuple[int, int], extra: str) -> None:
    inventory = FakeMachine(gpus=(H100,), driver="580.65.06", cuda=cuda).inventory(stack=CudaStack(False, False))
    assert f"pip install '.[{extra}]'" in evaluate_gates(inventory)["gpu"].reason
    unknown = replace(inventory, cuda_driver_version=None)
    assert "numba_cuda is not installed: pip install '.[cuda12]'" in evaluate_gates(unknown)["gpu"].reason


@pytest.mark.parametrize(
    ("capability", "major", "is_open"),
    [((7, 0), 12, True), ((6, 2), 12, False), ((7, 5), 13, True), ((7, 2), 13, False), ((7, 0), None, True)],
)
def test_the_least_capability_opens_the_gate(capability: tuple[int, int], major: int | None, is_open: bool) -> None:
    card = replace(H100, capability=capability)
    machine = FakeMachine(gpus=(card,), driver="580.65.06", cuda=(13, 0))
    inventory = machine.inventory(stack=CudaStack(True, True, major))
    assert evaluate_gates(inventory)["gpu"].is_open is is_open
