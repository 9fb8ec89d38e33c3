"""The inventory of a machine: its GPUs, the links between them, driver, host and installed CUDA packages.

Taking it creates no CUDA context and never raises. If a call fails, its value is ``None`` and ``problems`` names it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import TypeVar

from hardware.host import CudaStack, Host, find_cuda_stack, find_nccl_version, take_host
from hardware.nvml import NVLINK_MAX_LINKS, Nvml, OpenNvml, open_nvml
from hardware.nvml_codes import Clock, NvLinkRemote, NvmlCode, NvmlError, P2pCapability, P2pStatus

Value = TypeVar("Value")

PEER_OK = P2pStatus.OK.words
"""The text of a granted peer capability in :class:`Link`."""


@dataclass(frozen=True)
class NvLink:
    """One active NVLink of a GPU: what is at its other end (``gpu``, ``switch``, ``ibm npu``, ``unknown``)."""

    index: int
    version: str | None
    remote: str
    remote_bus_id: str | None


@dataclass(frozen=True)
class Gpu:
    """One GPU as NVML describes it; ``None`` for what NVML did not say or the GPU does not have.

    Attributes
    ----------
    index : int
        NVML's index (PCI bus order).
    pcie_generation, pcie_max_generation, pcie_width : int or None
        The PCIe link now (idle GPUs lower the generation), the highest that GPU and slot allow, and its lanes.
    sm_count : int or None
        Streaming multiprocessors, derived from the number of cores and the compute capability.
    mig_enabled : bool or None
        Whether the GPU is cut into slices; a GPU without the feature says ``False``.
    mig_instances : int or None
        Slices that exist; ``None`` when MIG is off.
    nvlinks : tuple of NvLink
        Active links only.
    """

    index: int
    uuid: str | None = None
    name: str | None = None
    bus_id: str | None = None
    compute_capability: tuple[int, int] | None = None
    memory_total_bytes: int | None = None
    memory_free_bytes: int | None = None
    pcie_generation: int | None = None
    pcie_max_generation: int | None = None
    pcie_width: int | None = None
    sm_count: int | None = None
    mig_enabled: bool | None = None
    mig_instances: int | None = None
    ecc: bool | None = None
    persistence: bool | None = None
    power_limit_w: float | None = None
    max_sm_clock_mhz: int | None = None
    max_memory_clock_mhz: int | None = None
    nvlinks: tuple[NvLink, ...] = ()


@dataclass(frozen=True)
class Link:
    """What connects two GPUs, ``a`` < ``b`` (NVML indices).

    Attributes
    ----------
    nvlinks : int
        NVLinks usable between the two, direct or through switches.
    nvlink_version : str or None
        Lowest version among them.
    read, write, atomics : str or None
        Peer capability in both directions as a word (``ok``, ``chipset not supported``, ...).
    level : str or None
        Closest common ancestor in the PCIe tree (``single switch`` ... ``system``).
    """

    a: int
    b: int
    nvlinks: int = 0
    nvlink_version: str | None = None
    read: str | None = None
    write: str | None = None
    atomics: str | None = None
    level: str | None = None

    @property
    def peer_access(self) -> bool:
        """Whether each of the two may read and write the other's memory."""
        return self.read == PEER_OK and self.write == PEER_OK


@dataclass(frozen=True)
class Inventory:
    """Everything that is known about the machine.

    Attributes
    ----------
    problem : str or None
        Why NVML says nothing about GPUs, with the cure; ``None`` if it does.
    problems : tuple of str
        Single calls that failed, while others succeeded.
    """

    gpus: tuple[Gpu, ...]
    driver_version: str | None
    cuda_driver_version: tuple[int, int] | None
    links: tuple[Link, ...]
    nccl_version: str | None
    host: Host
    stack: CudaStack
    problem: str | None = None
    problems: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, object]:
        """The inventory as JSON values."""
        return {name: _without_tuples(value) for name, value in asdict(self).items()}


@dataclass
class _Findings:
    """Asks NVML and remembers what failed, grouped by subject and reason."""

    nvml: Nvml
    failed: dict[tuple[str, str], list[str]] = field(default_factory=dict)

    def ask(self, subject: str, what: str, question: Callable[[], Value], absent: Value | None = None) -> Value | None:
        """The answer; ``absent`` if device or driver lack the feature; ``None`` if the call failed, which is noted.

        Raises
        ------
        NvmlError
            NVML does not answer any more, so that further calls are useless.
        """
        try:
            return question()
        except NvmlError as error:
            if error.code is NvmlCode.NO_ANSWER:
                raise
            if error.code.means_absent:
                return absent
            self.note(subject, what, error)
            return None

    def note(self, subject: str, what: str, error: NvmlError) -> None:
        """Remember that ``what`` about ``subject`` is unknown."""
        asked = self.failed.setdefault((subject, error.reason), [])
        if what not in asked:
            asked.append(what)

    @property
    def problems(self) -> tuple[str, ...]:
        """One sentence per subject and reason."""
        return tuple(
            f"{subject}: {reason} (asked for {', '.join(asked)})" for (subject, reason), asked in self.failed.items()
        )


def take_inventory(nvml: Nvml | None = None, *, open_door: OpenNvml = open_nvml) -> Inventory:
    """Take the inventory of this machine.

    Parameters
    ----------
    nvml : Nvml, optional
        An open NVML; by default it is opened and closed here.
    open_door : callable, optional
        Opens NVML if ``nvml`` is not given; tests pass that of a fake machine.

    Returns
    -------
    Inventory
        Without NVML it has no GPUs, and a ``problem`` that states the cure.
    """
    try:
        if nvml is not None:
            return _ask_everything(nvml)
        with open_door() as opened:
            return _ask_everything(opened)
    except NvmlError as error:
        return Inventory((), None, None, (), *_without_nvml(), problem=error.sentence)


def _without_nvml() -> tuple[str | None, Host, CudaStack]:
    """What is known without NVML: the version of NCCL, the host, and the CUDA packages."""
    return find_nccl_version(), take_host(), find_cuda_stack()


def _ask_everything(nvml: Nvml) -> Inventory:
    findings = _Findings(nvml)
    driver = findings.ask("driver", "version", nvml.driver_version)
    cuda = findings.ask("driver", "CUDA version", nvml.cuda_driver_version)
    gpus: tuple[Gpu, ...] = ()
    problem = None
    try:
        gpus = tuple(_gpu(findings, index) for index in range(nvml.device_count()))
    except NvmlError as error:
        problem = f"NVML started but could not list the GPUs: {error.sentence}"
    links = tuple(_link(findings, a, b) for a in gpus for b in gpus if a.index < b.index)
    return Inventory(gpus, driver, cuda, links, *_without_nvml(), problem, findings.problems)


def _gpu(findings: _Findings, index: int) -> Gpu:
    nvml, subject = findings.nvml, f"GPU {index}"

    def ask(what: str, question: Callable[[int], Value], absent: Value | None = None) -> Value | None:
        return findings.ask(subject, what, lambda: question(index), absent)

    capability = ask("compute capability", nvml.compute_capability)
    memory = ask("memory", nvml.memory)
    mig = ask("MIG mode", nvml.mig_enabled, absent=False)
    return Gpu(
        index=index,
        uuid=ask("UUID", nvml.uuid),
        name=ask("name", nvml.name),
        bus_id=ask("PCI address", nvml.pci_bus_id),
        compute_capability=capability,
        memory_total_bytes=memory.total if memory else None,
        memory_free_bytes=memory.free if memory else None,
        pcie_generation=ask("PCIe generation", nvml.pcie_generation),
        pcie_max_generation=ask("highest PCIe generation", nvml.pcie_max_generation),
        pcie_width=ask("PCIe width", nvml.pcie_width),
        sm_count=_sm_count(ask("number of cores", nvml.core_count), capability),
        mig_enabled=mig,
        mig_instances=ask("MIG instances", nvml.mig_instances) if mig else None,
        ecc=ask("ECC mode", nvml.ecc_enabled, absent=False),
        persistence=ask("persistence mode", nvml.persistence),
        power_limit_w=ask("power limit", nvml.power_limit_w),
        max_sm_clock_mhz=ask("highest SM clock", lambda i: nvml.max_clock_mhz(i, Clock.SM)),
        max_memory_clock_mhz=ask("highest memory clock", lambda i: nvml.max_clock_mhz(i, Clock.MEMORY)),
        nvlinks=_nvlinks(findings, index),
    )


def _sm_count(cores: int | None, capability: tuple[int, int] | None) -> int | None:
    """Cores per SM: CUDA C++ programming guide, arithmetic instructions table."""
    if cores is None or capability is None:
        return None
    per_sm = 64 if capability[0] == 7 or capability in ((6, 0), (8, 0)) else 128
    return cores // per_sm


def _nvlinks(findings: _Findings, index: int) -> tuple[NvLink, ...]:
    nvml, subject, links = findings.nvml, f"GPU {index}", []
    for number in range(NVLINK_MAX_LINKS):
        try:
            active = nvml.nvlink_active(index, number)
        except NvmlError as error:
            if error.code is NvmlCode.NO_ANSWER:
                raise
            if error.code.means_absent or error.code is NvmlCode.INVALID_ARGUMENT:
                break
            findings.note(subject, "NVLink state", error)
            continue
        if active:
            links.append(_nvlink(findings, subject, index, number))
    return tuple(links)


def _nvlink(findings: _Findings, subject: str, index: int, number: int) -> NvLink:
    nvml = findings.nvml
    remote = findings.ask(subject, "NVLink remote type", lambda: nvml.nvlink_remote(index, number))
    return NvLink(
        index=number,
        version=findings.ask(subject, "NVLink version", lambda: nvml.nvlink_version(index, number)),
        remote=(remote or NvLinkRemote.UNKNOWN).name.lower().replace("_", " "),
        remote_bus_id=findings.ask(subject, "NVLink remote address", lambda: nvml.nvlink_remote_bus_id(index, number)),
    )


def _link(findings: _Findings, a: Gpu, b: Gpu) -> Link:
    nvml, subject = findings.nvml, f"GPUs {a.index} and {b.index}"

    def peer(capability: P2pCapability) -> str | None:
        what = f"peer {capability.name.lower()}"
        there = findings.ask(subject, what, lambda: nvml.p2p_status(a.index, b.index, capability))
        back = findings.ask(subject, what, lambda: nvml.p2p_status(b.index, a.index, capability))
        if there is None or back is None:
            return None
        return back.words if there is P2pStatus.OK else there.words

    level = findings.ask(subject, "topology", lambda: nvml.topology_level(a.index, b.index))
    shared = _shared_nvlinks(a, b, nvlink_granted=peer(P2pCapability.NVLINK) == PEER_OK)
    versions = [link.version for link in shared if link.version]
    return Link(
        a=a.index,
        b=b.index,
        nvlinks=len(shared),
        nvlink_version=min(versions, default=None),
        read=peer(P2pCapability.READ),
        write=peer(P2pCapability.WRITE),
        atomics=peer(P2pCapability.ATOMICS),
        level=level.words if level else None,
    )


def _shared_nvlinks(a: Gpu, b: Gpu, *, nvlink_granted: bool) -> tuple[NvLink, ...]:
    """Links of ``a`` that lead to ``b``: directly, or through switches (as many as both ends have)."""
    direct = tuple(link for link in a.nvlinks if b.bus_id and _same_bus(link.remote_bus_id, b.bus_id))
    if direct or not nvlink_granted:
        return direct
    switched = [tuple(link for link in gpu.nvlinks if link.remote in ("switch", "unknown")) for gpu in (a, b)]
    return min(switched, key=len)


def _same_bus(one: str | None, other: str) -> bool:
    return one is not None and one.lower() == other.lower()


def _without_tuples(value: object) -> object:
    if isinstance(value, dict):
        return {key: _without_tuples(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [_without_tuples(item) for item in value]
    return value
