"""Telemetry on fake machines: what is sampled, what is left out, what happens without NVML or on a dying GPU."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from hardware.nvml_codes import ClockReason, NvmlCode, NvmlError
from hardware.telemetry import Telemetry, find_device
from suites.support.fake_nvml import H200, FakeMachine, FakeNvml, failing_half_way, h200_box, no_nvml, pascal_box

pytestmark = pytest.mark.requirement("RE-1")

LONG = 3600.0


def sampled(machine: FakeMachine, device: int | str = 0) -> dict[str, str | int | float | bool]:
    """The summary of an empty block: one sample on entry, one on exit."""
    with Telemetry(device, interval_s=LONG, open_door=machine.open) as telemetry:
        pass
    return telemetry.summary()


def test_two_samples_of_a_healthy_gpu() -> None:
    summary = sampled(h200_box(2), device=1)
    assert summary["available"] is True
    assert (summary["device"], summary["samples"]) == (1, 2)
    for statistic in ("min", "mean", "max"):
        assert summary[f"sm_clock_mhz_{statistic}"] == 1980
        assert summary[f"memory_clock_mhz_{statistic}"] == 2619
    assert (summary["power_w_mean"], summary["power_w_max"]) == (350.0, 350.0)
    assert summary["energy_j"] == 10.0
    assert summary["temperature_c_max"] == 41
    assert summary["memory_used_mib_max"] == 1024
    assert summary["utilisation_percent_mean"] == 50
    assert (summary["ecc_corrected"], summary["ecc_uncorrected"]) == (1, 0)
    assert (summary["throttled"], summary["clock_reasons"]) == (False, "gpu idle")
    assert "failed_reads" not in summary


def test_summary_is_flat_scalars() -> None:
    for machine in (h200_box(1), pascal_box(), no_nvml()):
        assert {type(value) for value in sampled(machine).values()} <= {str, int, float, bool}


def test_the_thread_samples_while_the_block_runs() -> None:
    with Telemetry(interval_s=0.001, open_door=h200_box(1).open) as telemetry:
        give_up = time.monotonic() + 60
        while int(telemetry.summary()["samples"]) < 6 and time.monotonic() < give_up:
            time.sleep(0.001)
    summary = telemetry.summary()
    assert int(summary["samples"]) >= 7
    assert summary["temperature_c_max"] == 39 + int(summary["samples"])


@pytest.mark.parametrize(
    ("reason", "throttled"),
    [
        (ClockReason.SW_POWER_CAP, True),
        (ClockReason.HW_THERMAL_SLOWDOWN, True),
        (ClockReason.HW_POWER_BRAKE, True),
        (ClockReason.APPLICATION_CLOCKS, False),
        (ClockReason.SYNC_BOOST, False),
    ],
)
def test_a_reason_seen_once_is_remembered(reason: ClockReason, throttled: bool) -> None:
    gpu = replace(H200, clock_reasons=(reason, ClockReason.GPU_IDLE))
    summary = sampled(replace(h200_box(1), gpus=(gpu,)))
    assert summary["throttled"] is throttled
    words = str(summary["clock_reasons"]).split(", ")
    assert set(words) == {"gpu idle", reason.name.lower().replace("_", " ")}  # type: ignore[union-attr]


def test_free_clocks_have_no_reason() -> None:
    gpu = replace(H200, clock_reasons=(ClockReason(0),))
    summary = sampled(replace(h200_box(1), gpus=(gpu,)))
    assert (summary["throttled"], summary["clock_reasons"]) == (False, "none")


def test_what_the_gpu_does_not_report_is_left_out() -> None:
    summary = sampled(pascal_box())
    assert "ecc_corrected" not in summary
    assert "temperature_c_max" in summary
    assert "failed_reads" not in summary


@pytest.mark.parametrize("code", [NvmlCode.LIBRARY_NOT_FOUND, NvmlCode.PYTHON_PACKAGE_MISSING])
def test_without_nvml_the_block_runs_and_the_summary_says_why(code: NvmlCode) -> None:
    ran = []
    with Telemetry(open_door=no_nvml(code).open) as telemetry:
        ran.append(True)
    summary = telemetry.summary()
    assert ran == [True]
    assert summary["available"] is False
    assert code.words.lower() in str(summary["reason"]).lower()


def test_a_gpu_that_is_lost_is_counted_not_raised() -> None:
    summary = sampled(failing_half_way(), device=2)
    assert summary["samples"] == 2
    assert summary["failed_reads"] == 2 * 10
    assert "the GPU fell off the bus" in str(summary["failures"])
    assert "power_w_mean" not in summary
    assert "throttled" not in summary, "unknown is not the same as not throttled"


def test_a_failing_block_keeps_its_own_error() -> None:
    telemetry = Telemetry(interval_s=LONG, open_door=h200_box(1).open)
    with pytest.raises(ZeroDivisionError), telemetry:
        raise ZeroDivisionError
    assert telemetry.summary()["samples"] == 2


def test_a_device_is_found_by_index_uuid_and_pci_address() -> None:
    nvml = FakeNvml(h200_box(4))
    assert find_device(nvml, 2) == 2
    assert find_device(nvml, nvml.uuid(3)) == 3
    assert find_device(nvml, "00000000:1C:00.0") == 1
    assert find_device(nvml, "0000:1c:00.0") == 1, "CUDA writes the domain with four digits"
    with pytest.raises(NvmlError, match="GPU-none"):
        find_device(nvml, "GPU-none")


def test_an_unknown_device_is_said_not_raised() -> None:
    summary = sampled(h200_box(1), device="GPU-none")
    assert summary["available"] is False
    assert "not found" in str(summary["reason"]).lower()
