"""What a driver says as an error of the package: its type, and the cure."""

from __future__ import annotations

from unittest import mock

import pytest

from burstproof.cli.main import main
from burstproof.device.faults import error_of, translated
from burstproof.errors import DeviceFaultError, ExitCode, OutOfMemoryError

pytestmark = pytest.mark.requirement("BE-15")

BUSY, RESET, RESTART, AGAIN = "End the program", "have the device reset", "restart the machine", "If it fails again"


class CUDAError(Exception):
    """Stands for cuda.core's error of this name."""


@pytest.mark.parametrize(
    ("said", "cure"),
    [
        ("CUDA_ERROR_DEVICE_UNAVAILABLE", BUSY),
        ("cudaErrorDevicesUnavailable: CUDA-capable device(s) is/are busy or unavailable", BUSY),
        ("CUDA_ERROR_ECC_UNCORRECTABLE", RESET),
        ("cudaErrorECCUncorrectable: uncorrectable ECC error encountered", RESET),
        ("CUDA_ERROR_NVLINK_UNCORRECTABLE", RESET),
        ("CUDA_ERROR_CONTEXT_IS_DESTROYED", RESTART),
        ("CUDA_ERROR_DEINITIALIZED: driver shutting down", RESTART),
        ("cudaErrorNoDevice: no CUDA-capable device is detected", RESTART),
        ("CUDA_ERROR_LAUNCH_FAILED: unspecified launch failure", AGAIN),
        ("cudaErrorIllegalAddress: an illegal memory access was encountered", AGAIN),
        ("CUDA_ERROR_UNKNOWN", AGAIN),
        ("cudaErrorContained: Invalid access of peer GPU memory over nvlink or a hardware error", RESET),
        ("cudaErrorInvalidDevice: invalid device ordinal", RESTART),
        ("cudaErrorInvalidDeviceFunction: invalid device function", AGAIN),
        ("CUDA_ERROR_INVALID_CONTEXT: invalid device context", AGAIN),
        ("CUDA_ERROR_LAUNCH_FAILED: Common causes include dereferencing an invalid device pointer", AGAIN),
        ("CUDA_ERROR_ASSERT: All existing device memory allocations from this context are invalid", AGAIN),
    ],
)
def test_a_failed_device_states_the_cure(said: str, cure: str) -> None:
    error = error_of(CUDAError(said))
    assert type(error) is DeviceFaultError
    assert said in str(error)
    assert cure in str(error.cure)


@pytest.mark.parametrize(
    "said", ["CUDA_ERROR_OUT_OF_MEMORY", "cudaErrorMemoryAllocation: out of memory", "[2] Out  of\nmemory"]
)
def test_memory_that_ran_out_is_no_fault(said: str) -> None:
    assert type(error_of(CUDAError(said))) is OutOfMemoryError


def test_what_no_driver_said_stays_as_it_is() -> None:
    """Errors of the package too, one of which is called as CuPy's."""
    for error in (ValueError("CUDA_ERROR_LAUNCH_FAILED"), OutOfMemoryError("it does not fit")):
        assert error_of(error) is None
        with pytest.raises(type(error)) as raised:
            translated(mock.Mock(side_effect=error, __name__="call"))()
        assert raised.value is error


def test_any_command_ends_with_3_and_the_cure(capsys: pytest.CaptureFixture[str]) -> None:
    """Not only engines call a driver: here ``train``."""
    with mock.patch("burstproof.cli.train.train_text", side_effect=CUDAError("CUDA_ERROR_DEVICE_UNAVAILABLE")) as call:
        call.__name__ = "train_text"
        assert main(["train"]) == ExitCode.INVALID_ENVIRONMENT
    said = capsys.readouterr().err
    assert BUSY in said
    assert len(said.splitlines()) == 1
