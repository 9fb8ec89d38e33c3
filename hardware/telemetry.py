"""Telemetry beside a measurement: clocks, power, temperature, throttle reasons, ECC, sampled in a thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from types import TracebackType

from hardware.nvml import Nvml, OpenNvml, open_nvml
from hardware.nvml_codes import THROTTLING, Clock, NvmlCode, NvmlError, clock_reason_words

Scalar = str | int | float | bool


def find_device(nvml: Nvml, device: int | str) -> int:
    """NVML's index of a device given as index, UUID or PCI address.

    CUDA code that knows its ordinal should pass the PCI address: ordinals and NVML indices may differ.

    Raises
    ------
    NvmlError
        NOT_FOUND when no device carries the name.
    """
    if isinstance(device, int):
        return device
    wanted = device.lower()
    for index in range(nvml.device_count()):
        if nvml.uuid(index).lower() == wanted or nvml.pci_bus_id(index).lower().endswith(wanted):
            return index
    raise NvmlError(f"search for {device}", NvmlCode.NOT_FOUND)


class Telemetry:
    """Samples one GPU while a ``with`` block runs.

    Parameters
    ----------
    device : int or str
        NVML index, UUID or PCI address.
    interval_s : float
        Pause between samples, in seconds. One sample is always taken on entry and one on exit.
    open_door : callable
        Opens NVML; tests hand a fake machine's.

    Notes
    -----
    Without NVML the block runs all the same and the summary says why nothing was sampled. What a device does not
    report (``NOT_SUPPORTED``) is missing from the summary; other failures are counted in ``failed_reads``.
    """

    def __init__(self, device: int | str = 0, *, interval_s: float = 0.05, open_door: OpenNvml = open_nvml) -> None:
        self._device = device
        self._interval_s = interval_s
        self._open_door = open_door
        self._doors = ExitStack()
        self._nvml: Nvml | None = None
        self._index = 0
        self._reason = ""
        self._values: dict[str, list[float]] = {}
        self._clock_reasons: int | None = None
        self._failures: dict[str, int] = {}
        self._samples = 0
        self._started = self._stopped = 0.0
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Telemetry:
        self._started = time.perf_counter()
        try:
            self._nvml = self._doors.enter_context(self._open_door())
            self._index = find_device(self._nvml, self._device)
        except NvmlError as error:
            self._nvml = None
            self._reason = error.sentence
            return self
        self._sample(self._nvml)
        self._thread = threading.Thread(target=self._sample_until_stopped, name="telemetry", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._thread is not None:
            self._stop.set()
            self._thread.join()
        if self._nvml is not None:
            self._sample(self._nvml)
        self._stopped = time.perf_counter()
        self._doors.close()

    def _sample_until_stopped(self) -> None:
        while self._nvml is not None and not self._stop.wait(self._interval_s):
            self._sample(self._nvml)

    def _sample(self, nvml: Nvml) -> None:
        index = self._index
        self._read("sm_clock_mhz", lambda: nvml.clock_mhz(index, Clock.SM))
        self._read("memory_clock_mhz", lambda: nvml.clock_mhz(index, Clock.MEMORY))
        self._read("power_w", lambda: nvml.power_w(index))
        self._read("energy_j", lambda: nvml.energy_j(index))
        self._read("temperature_c", lambda: nvml.temperature_c(index))
        self._read("utilisation_percent", lambda: nvml.utilisation_percent(index))
        self._read("memory_used_mib", lambda: nvml.memory(index).used / 2**20)
        self._read("ecc_corrected", lambda: nvml.ecc_errors(index, corrected=True))
        self._read("ecc_uncorrected", lambda: nvml.ecc_errors(index, corrected=False))
        reasons = self._answer("clock reasons", lambda: nvml.clock_reasons(index))
        if reasons is not None:
            self._clock_reasons = (self._clock_reasons or 0) | int(reasons)
        self._samples += 1

    def _read(self, name: str, question: Callable[[], float]) -> None:
        value = self._answer(name, question)
        if value is not None:
            self._values.setdefault(name, []).append(value)

    def _answer(self, name: str, question: Callable[[], float]) -> float | None:
        try:
            return question()
        except NvmlError as error:
            if not error.code.means_absent:
                self._failures[f"{name}: {error.reason}"] = self._failures.get(f"{name}: {error.reason}", 0) + 1
            return None

    def summary(self) -> dict[str, Scalar]:
        """What was sampled, as flat scalars fit for a measurement's telemetry.

        Returns
        -------
        dict
            ``available``; without NVML ``reason``; else ``device``, ``samples``, ``duration_s``, minimum, mean and
            maximum of both clocks (MHz), mean and maximum power (W), ``energy_j`` (J) of the block from the card's own
            counter, ``temperature_c_max``,
            ``utilisation_percent_mean``, ``memory_used_mib_max``, new ECC errors in the block, ``throttled`` and
            ``clock_reasons`` (words, or ``none``), ``failed_reads`` and what failed. What the device does not report
            is left out.
        """
        if self._nvml is None:
            return {"available": False, "reason": self._reason or "telemetry was not started"}
        shown: dict[str, Scalar] = {
            "available": True,
            "device": self._device,
            "samples": self._samples,
            "duration_s": round((self._stopped or time.perf_counter()) - self._started, 6),
        }
        for name in ("sm_clock_mhz", "memory_clock_mhz"):
            shown.update(self._statistics(name, "min", "mean", "max"))
        shown.update(self._statistics("power_w", "mean", "max"))
        shown.update(self._statistics("temperature_c", "max"))
        shown.update(self._statistics("utilisation_percent", "mean"))
        shown.update(self._statistics("memory_used_mib", "max"))
        shown.update(self._energy())
        shown.update(self._new_ecc_errors())
        shown.update(self._throttling())
        return shown | self._failed_reads()

    def _statistics(self, name: str, *wanted: str) -> dict[str, Scalar]:
        values = self._values.get(name)
        if not values:
            return {}
        all_of_them = {"min": min(values), "mean": round(sum(values) / len(values), 3), "max": max(values)}
        return {f"{name}_{statistic}": all_of_them[statistic] for statistic in wanted}

    def _energy(self) -> dict[str, Scalar]:
        values = self._values.get("energy_j")
        return {"energy_j": round(values[-1] - values[0], 3)} if values else {}

    def _new_ecc_errors(self) -> dict[str, Scalar]:
        kinds = ("ecc_corrected", "ecc_uncorrected")
        return {kind: int(self._values[kind][-1] - self._values[kind][0]) for kind in kinds if kind in self._values}

    def _throttling(self) -> dict[str, Scalar]:
        if self._clock_reasons is None:
            return {}
        words = clock_reason_words(self._clock_reasons)
        throttled = bool(self._clock_reasons & THROTTLING)
        return {"throttled": throttled, "clock_reasons": ", ".join(words) or "none"}

    def _failed_reads(self) -> dict[str, Scalar]:
        if not self._failures:
            return {}
        return {"failed_reads": sum(self._failures.values()), "failures": "; ".join(self._failures)}
