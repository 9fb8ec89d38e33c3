"""The adapter over ``pynvml``: its names exist, its answers are decoded, its errors are ours."""

from __future__ import annotations

import importlib
import re
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hardware.gates import evaluate_gates
from hardware.inventory import take_inventory
from hardware.nvml import Nvml, PynvmlDoor, open_nvml
from hardware.nvml_codes import (
    NVLINK_VERSIONS,
    Clock,
    ClockReason,
    MemoryBytes,
    NvLinkRemote,
    NvmlCode,
    NvmlError,
    NvmlUnavailableError,
    P2pCapability,
    P2pStatus,
    TopologyLevel,
    clock_reason_words,
)
from hardware.timed_calls import TimedCalls
from suites.support.fake_nvml import FakeMachine, FakeNvml, dgx_h100

pytestmark = pytest.mark.requirement("ST-2")

CHECKOUT = Path(__file__).parents[3]


@pytest.fixture
def pynvml() -> Any:
    return importlib.import_module("pynvml")


@pytest.fixture
def door(pynvml: Any, monkeypatch: pytest.MonkeyPatch) -> PynvmlDoor:
    """The adapter over the real module, whose C calls are replaced by recorded answers of an H100."""
    answers = {
        "nvmlSystemGetDriverVersion": "550.54.15",
        "nvmlSystemGetCudaDriverVersion_v2": 12040,
        "nvmlDeviceGetCount": 2,
        "nvmlDeviceGetName": "NVIDIA H100 80GB HBM3",
        "nvmlDeviceGetUUID": "GPU-1",
        "nvmlDeviceGetPciInfo": SimpleNamespace(busId=b"00000000:1B:00.0"),
        "nvmlDeviceGetCudaComputeCapability": (9, 0),
        "nvmlDeviceGetNumGpuCores": 16896,
        "nvmlDeviceGetMemoryInfo": SimpleNamespace(total=80, free=79, used=1),
        "nvmlDeviceGetCurrPcieLinkGeneration": 1,
        "nvmlDeviceGetMaxPcieLinkGeneration": 5,
        "nvmlDeviceGetCurrPcieLinkWidth": 16,
        "nvmlDeviceGetMigMode": [1, 0],
        "nvmlDeviceGetMaxMigDeviceCount": 7,
        "nvmlDeviceGetEccMode": [1, 1],
        "nvmlDeviceGetPersistenceMode": 1,
        "nvmlDeviceGetEnforcedPowerLimit": 700_000,
        "nvmlDeviceGetPowerUsage": 123_456,
        "nvmlDeviceGetTotalEnergyConsumption": 98_765_432,
        "nvmlDeviceGetTemperature": 41,
        "nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=73, memory=5),
        "nvmlDeviceGetNvLinkState": 1,
        "nvmlDeviceGetNvLinkVersion": 6,
        "nvmlDeviceGetNvLinkRemoteDeviceType": 2,
        "nvmlDeviceGetNvLinkRemotePciInfo": SimpleNamespace(busId=b"00000000:05:00.0"),
        "nvmlDeviceGetTopologyCommonAncestor": 50,
    }
    monkeypatch.setattr(pynvml, "nvmlDeviceGetHandleByIndex", lambda index: f"handle {index}")
    for function, answer in answers.items():
        monkeypatch.setattr(pynvml, function, lambda *arguments, answer=answer: answer)
    return PynvmlDoor(pynvml)


def test_plain_answers_are_typed_and_scaled(door: PynvmlDoor) -> None:
    assert door.driver_version() == "550.54.15"
    assert door.cuda_driver_version() == (12, 4)
    assert door.device_count() == 2
    assert (door.name(0), door.uuid(0)) == ("NVIDIA H100 80GB HBM3", "GPU-1")
    assert door.pci_bus_id(0) == "00000000:1B:00.0"
    assert door.compute_capability(0) == (9, 0)
    assert door.core_count(0) == 16896
    assert door.memory(0) == MemoryBytes(total=80, free=79, used=1)
    assert (door.pcie_generation(0), door.pcie_max_generation(0), door.pcie_width(0)) == (1, 5, 16)
    assert (door.mig_enabled(0), door.ecc_enabled(0), door.persistence(0)) == (True, True, True)
    assert (door.power_limit_w(0), door.power_w(0)) == (700.0, 123.456)
    assert door.energy_j(0) == 98_765.432
    assert (door.temperature_c(0), door.utilisation_percent(0)) == (41, 73)
    assert door.topology_level(0, 1) is TopologyLevel.SYSTEM


def test_links_are_decoded(door: PynvmlDoor) -> None:
    assert door.nvlink_active(0, 3) is True
    assert door.nvlink_version(0, 3) == "4.0"
    assert door.nvlink_remote(0, 3) is NvLinkRemote.SWITCH
    assert door.nvlink_remote_bus_id(0, 3) == "00000000:05:00.0"


def test_arguments_reach_the_module(door: PynvmlDoor, pynvml: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def remember(answer: int) -> Any:
        def answering(*arguments: Any) -> int:
            seen.append(arguments)
            return answer

        return answering

    seen: list[tuple[Any, ...]] = []
    monkeypatch.setattr(pynvml, "nvmlDeviceGetP2PStatus", remember(1))
    monkeypatch.setattr(pynvml, "nvmlDeviceGetClockInfo", remember(1980))
    monkeypatch.setattr(pynvml, "nvmlDeviceGetMaxClockInfo", remember(2619))
    monkeypatch.setattr(pynvml, "nvmlDeviceGetTotalEccErrors", remember(3))
    assert door.p2p_status(0, 1, P2pCapability.READ) is P2pStatus.CHIPSET_NOT_SUPPORTED
    assert door.clock_mhz(0, Clock.SM) == 1980
    assert door.max_clock_mhz(1, Clock.MEMORY) == 2619
    assert door.ecc_errors(0, corrected=True) == 3
    assert door.ecc_errors(0, corrected=False) == 3
    assert seen == [
        ("handle 0", "handle 1", 0),
        ("handle 0", pynvml.NVML_CLOCK_SM),
        ("handle 1", pynvml.NVML_CLOCK_MEM),
        ("handle 0", pynvml.NVML_MEMORY_ERROR_TYPE_CORRECTED, pynvml.NVML_VOLATILE_ECC),
        ("handle 0", pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, pynvml.NVML_VOLATILE_ECC),
    ]


def test_mig_slots_are_counted(door: PynvmlDoor, pynvml: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def slot(handle: str, number: int) -> str:
        if number >= 3:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
        return "slice"

    monkeypatch.setattr(pynvml, "nvmlDeviceGetMigDeviceHandleByIndex", slot)
    assert door.mig_instances(0) == 3


def test_old_driver_is_asked_by_the_old_name(door: PynvmlDoor, pynvml: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(handle: str) -> int:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)

    monkeypatch.setattr(pynvml, "nvmlDeviceGetCurrentClocksEventReasons", unknown)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetCurrentClocksThrottleReasons", lambda handle: 4)
    assert door.clock_reasons(0) == ClockReason.SW_POWER_CAP


def test_an_nvml_error_becomes_ours(door: PynvmlDoor, pynvml: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(handle: str) -> str:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)

    monkeypatch.setattr(pynvml, "nvmlDeviceGetName", lost)
    with pytest.raises(NvmlError, match="nvmlDeviceGetName: the GPU fell off the bus") as caught:
        door.name(0)
    assert caught.value.code is NvmlCode.GPU_IS_LOST
    assert "Xid" in str(caught.value)


def test_a_code_that_nobody_knows_is_unknown(door: PynvmlDoor, pynvml: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert NvmlCode(424242) is NvmlCode.UNKNOWN
    monkeypatch.setattr(pynvml, "nvmlDeviceGetNvLinkVersion", lambda handle, link: 200)
    with pytest.raises(NvmlError, match="answered 200"):
        door.nvlink_version(0, 0)


def test_a_function_that_the_module_lacks_is_named(pynvml: Any) -> None:
    with pytest.raises(NvmlError, match="nvmlDeviceGetCount") as caught:
        PynvmlDoor(SimpleNamespace(NVMLError=pynvml.NVMLError)).device_count()
    assert caught.value.code is NvmlCode.FUNCTION_NOT_FOUND


def test_numbers_agree_with_the_installed_module(pynvml: Any) -> None:
    ours = {f"NVML_ERROR_{code.name}": code.value for code in NvmlCode if code.value > 0}
    theirs = {name: value for name, value in vars(pynvml).items() if name in ours}
    assert theirs == ours
    versions = {f"NVML_NVLINK_VERSION_{text.replace('.', '_')}": code for code, text in NVLINK_VERSIONS.items()}
    assert {name: getattr(pynvml, name) for name in versions} == versions
    bits = {
        "GpuIdle": ClockReason.GPU_IDLE,
        "SwPowerCap": ClockReason.SW_POWER_CAP,
        "HwSlowdown": ClockReason.HW_SLOWDOWN,
        "SwThermalSlowdown": ClockReason.SW_THERMAL_SLOWDOWN,
        "HwThermalSlowdown": ClockReason.HW_THERMAL_SLOWDOWN,
        "HwPowerBrakeSlowdown": ClockReason.HW_POWER_BRAKE,
    }
    assert {name: getattr(pynvml, f"nvmlClocksEventReason{name}") for name in bits} == bits


def test_every_name_that_the_adapter_calls_exists(pynvml: Any) -> None:
    source = (CHECKOUT / "hardware" / "nvml.py").read_text(encoding="utf-8")
    called = set(re.findall(r'"(nvml[A-Z]\w+)"', source))
    assert len(called) > 25
    assert {name for name in called if not hasattr(pynvml, name)} == set()


def test_missing_package_names_the_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr("hardware.nvml.importlib.import_module", refuse)
    with pytest.raises(NvmlUnavailableError, match="nvidia-ml-py") as caught, open_nvml():
        pytest.fail("the block must not run")
    assert caught.value.code is NvmlCode.PYTHON_PACKAGE_MISSING


def test_refused_start_is_typed(pynvml: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH)

    monkeypatch.setattr(pynvml, "nvmlInit", refuse)
    with pytest.raises(NvmlUnavailableError, match=r"different versions.*Reboot"), open_nvml():
        pytest.fail("the block must not run")


def test_the_door_is_closed_even_when_the_driver_is_gone(pynvml: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    closed = []

    def gone() -> None:
        closed.append(True)
        raise pynvml.NVMLError(pynvml.NVML_ERROR_UNINITIALIZED)

    monkeypatch.setattr(pynvml, "nvmlInit", lambda: None)
    monkeypatch.setattr(pynvml, "nvmlShutdown", gone)
    monkeypatch.setattr(pynvml, "nvmlSystemGetDriverVersion", lambda: "550.54.15")
    with open_nvml() as nvml:
        assert nvml.driver_version() == "550.54.15"
    assert closed == [True]


@pytest.mark.parametrize("hangs", ["nvmlInit", "nvmlSystemGetDriverVersion", "nvmlDeviceGetName", "nvmlShutdown"])
@pytest.mark.usefixtures("door")
def test_a_call_that_never_returns_closes_the_gates(pynvml: Any, monkeypatch: pytest.MonkeyPatch, hangs: str) -> None:
    """With that reason; NVML is not asked again."""
    for name in ("nvmlInit", "nvmlShutdown"):
        monkeypatch.setattr(pynvml, name, lambda: None)
    hanging = threading.Event()
    monkeypatch.setattr(pynvml, hangs, lambda *_: hanging.wait(60.0))
    monkeypatch.setattr("hardware.nvml.START_LIMIT_S", 0.2)
    calls = TimedCalls(0.2)
    if hangs == "nvmlShutdown":
        with open_nvml(calls) as nvml:
            assert nvml.device_count() == 2
    inventory = take_inventory(open_door=lambda: open_nvml(calls))
    hanging.set()
    gates = evaluate_gates(inventory)
    assert [gate.name for gate in gates.values() if gate.is_open] == ["none"]
    for name in ("nvml", "gpu", "multi_gpu"):
        assert "NVML does not answer: a call did not return within its time limit: look for Xid" in gates[name].reason


def test_a_fake_machine_that_stops_answering_has_closed_gates() -> None:
    """Whichever question it is that is not answered."""
    questions = len(asked_of(dgx_h100()))
    for number in range(0, questions, 7):
        inventory = replace(dgx_h100(), fail_nth={number: NvmlCode.NO_ANSWER}).inventory()
        assert not evaluate_gates(inventory)["nvml"].is_open
        assert "does not answer" in (inventory.problem or "")


def asked_of(machine: FakeMachine) -> list[tuple[str, int | None]]:
    nvml = FakeNvml(machine)
    take_inventory(nvml)
    return nvml.calls


def test_a_timed_call_returns_and_raises_as_the_function_does() -> None:
    calls = TimedCalls(5.0)
    assert calls.call("ask", lambda: 7) == 7
    with pytest.raises(KeyError):
        calls.call("ask", lambda: {}["no"])
    assert calls.call("ask", lambda: 8) == 8


def test_clock_reasons_become_words() -> None:
    assert clock_reason_words(0) == ()
    assert clock_reason_words(0x44) == ("sw power cap", "hw thermal slowdown")
    assert clock_reason_words(0x1000 | 1) == ("gpu idle", "unknown reason 0x1000")


def test_fake_and_adapter_answer_the_whole_protocol() -> None:
    asked = {name for name in vars(Nvml) if not name.startswith("_")}
    assert len(asked) > 25
    for implementation in (PynvmlDoor, FakeNvml):
        assert asked - set(dir(implementation)) == set()
    assert FakeNvml(dgx_h100()).device_count() == 8
