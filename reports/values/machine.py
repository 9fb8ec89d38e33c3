"""The machine of a record: its identity, and the coarser class of comparable machines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from reports.values.record import RunRecord

Value = TypeVar("Value")

_GIB = 2**30
_UUID_SHOWN = 12


@dataclass(frozen=True)
class Machine:
    """Identity of a machine; what the inventory did not say is ``None`` or empty.

    Attributes
    ----------
    gpu_uuids, gpu_names : tuple of str
        In NVML's order; empty without a GPU.
    gpu_memory_gib : tuple of int
        Memory of each GPU, rounded down to GiB.
    gpu_clocks_mhz : tuple of tuple of int or None
        Highest SM clock and highest memory clock of each GPU.
    driver : str or None
    host : str or None
        Host name; inside a container, that of the container.
    machine_id : str or None
        Hash of the system's machine id; ``None`` in a container, where the id is that of the image.
    container : bool
    cpu : str
        Model name of the processor.
    cores : int
        Logical cores that the run could use.
    cpu_clock_mhz : float or None
        Highest clock of the processor.
    others : int
        Number of other machines on which parts of the run were done.
    """

    gpu_uuids: tuple[str, ...]
    gpu_names: tuple[str, ...]
    gpu_memory_gib: tuple[int, ...]
    gpu_clocks_mhz: tuple[tuple[int | None, int | None], ...]
    driver: str | None
    host: str | None
    machine_id: str | None
    container: bool
    cpu: str
    cores: int
    cpu_clock_mhz: float | None
    others: int = 0

    def same_machine(self, other: Machine) -> bool:
        """Whether both are one machine in one state: GPUs, driver, clocks, host and CPU.

        If a host is unknown, or both are containers, equal GPU UUIDs are enough. Without a GPU an unknown host is never
        the same machine, nor is a record that several machines made.
        """
        if self._state != other._state or self.others or other.others:
            return False
        host_says_nothing = None in (self.host, other.host) or (self.container and other.container)
        if self.gpu_uuids and host_says_nothing:
            return True
        return self.host is not None and (self.host, self.machine_id) == (other.host, other.machine_id)

    def same_class(self, other: Machine) -> bool:
        """Whether both have the same models: GPUs by name and memory, CPU by name."""
        return self._model == other._model

    @property
    def label(self) -> str:
        """The machine in one line: ``4 × NVIDIA H200 (GPU-8e0d22e5, ...), driver 580.1, Xeon, 64 cores, host a``."""
        counted = Counter(self.gpu_names).items()
        names = " + ".join(name if count == 1 else f"{count} × {name}" for name, count in counted)
        uuids = ", ".join(uuid[:_UUID_SHOWN] for uuid in self.gpu_uuids)
        words = [f"{names} ({uuids})" if uuids else names or "no GPU", f"driver {self.driver}" if self.driver else ""]
        words += [self.cpu or "unknown CPU", f"{self.cores} cores", f"host {self.host}" if self.host else ""]
        words += [f"and on {self.others} more" if self.others else ""]
        return ", ".join(filter(None, words))

    @property
    def _state(self) -> tuple[object, ...]:
        return (
            self.gpu_uuids,
            self.gpu_clocks_mhz,
            self.driver,
            self.cpu,
            self.cores,
            self.cpu_clock_mhz,
        )

    @property
    def _model(self) -> tuple[object, ...]:
        return tuple(sorted(zip(self.gpu_names, self.gpu_memory_gib, strict=True))), self.cpu


def machine_of(record: RunRecord) -> Machine:
    """The machine of a record: the last one, if the starts of the runner were on several."""
    named = {one.machine for one in record.invocations if one.machine}
    return replace(machine_in(record.hardware), others=max(0, len(named) - 1))


def machine_in(hardware: Mapping[str, object]) -> Machine:
    """The machine that an inventory, given as JSON values, describes."""
    found = hardware.get("gpus")
    gpus = [gpu for gpu in found if isinstance(gpu, Mapping)] if isinstance(found, list | tuple) else []
    host = hardware.get("host")
    host = host if isinstance(host, Mapping) else {}
    return Machine(
        gpu_uuids=tuple(_of(str, gpu.get("uuid")) or "" for gpu in gpus),
        gpu_names=tuple(_of(str, gpu.get("name")) or "unknown GPU" for gpu in gpus),
        gpu_memory_gib=tuple((_of(int, gpu.get("memory_total_bytes")) or 0) // _GIB for gpu in gpus),
        gpu_clocks_mhz=tuple(
            (_of(int, gpu.get("max_sm_clock_mhz")), _of(int, gpu.get("max_memory_clock_mhz"))) for gpu in gpus
        ),
        driver=_of(str, hardware.get("driver_version")),
        host=_of(str, host.get("name")),
        machine_id=_of(str, host.get("machine_id")),
        container=host.get("container") is not None,
        cpu=_of(str, host.get("cpu")) or "",
        cores=_of(int, host.get("usable_cores")) or 0,
        cpu_clock_mhz=_of(float, host.get("cpu_max_mhz")),
    )


def _of(kind: type[Value], value: object) -> Value | None:
    return value if isinstance(value, kind) else None
