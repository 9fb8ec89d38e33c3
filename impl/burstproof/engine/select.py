"""Which backend runs a network, why, and what to do where the asked-for one cannot start (BE-13, BE-15)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from burstproof.config import BACKENDS, Configuration
from burstproof.engine.machine import Machine, Obstacle
from burstproof.engine.options import EngineOptions
from burstproof.engine.protocol import Engine
from burstproof.errors import BackendUnavailableError, EnvironmentInvalidError, InputError
from burstproof.network.model import Network

CreateEngine = Callable[[Network, EngineOptions], Engine]

FALLBACK_ORDER = ("cuda", "wgpu", "cpu", "reference")
"""The next backend is the next available one in this order, after the asked-for one."""


@dataclass(frozen=True)
class Considered:
    """One backend that the choice looked at; ``why`` says what makes it available or what keeps it from running.

    ``software`` marks a WGPU adapter that is a program on the CPU, which ``auto`` never takes.
    """

    backend: str
    available: bool
    why: str
    software: bool = False


@dataclass(frozen=True)
class Choice:
    """The backend that runs.

    Attributes
    ----------
    requested, backend : str
        What was asked for (may be ``auto``), and what runs.
    reason : str
        Why, in one sentence.
    considered : tuple of Considered
        Every backend with its availability.
    fallback : str
        Empty unless another backend than the asked-for one runs: then what kept that one from starting.
    """

    requested: str
    backend: str
    reason: str
    considered: tuple[Considered, ...]
    fallback: str = ""


def obstacle_of(backend: str, machine: Machine, device_id: int = 0) -> Obstacle | None:
    """Why ``backend`` cannot run on ``machine``; ``None`` if it can."""
    if backend == "wgpu":
        return machine.wgpu.obstacle_of_any()
    return machine.cuda.obstacle_for(device_id) if backend == "cuda" else None


def consider(machine: Machine, device_id: int = 0) -> tuple[Considered, ...]:
    """Every backend with its availability on ``machine``."""
    found = []
    for backend in FALLBACK_ORDER:
        obstacle = obstacle_of(backend, machine, device_id)
        why = obstacle.why if obstacle else _strength(backend, machine, device_id)
        software = backend == "wgpu" and obstacle is None and machine.wgpu.preferred().software
        found.append(Considered(backend, obstacle is None, why, software))
    return tuple(found)


def _strength(backend: str, machine: Machine, device_id: int) -> str:
    """What an available backend runs on."""
    if backend == "cuda":
        device = next(d for d in machine.cuda.devices if d.number == device_id)
        return f"{device.name}, compute capability {device.capability[0]}.{device.capability[1]}"
    if backend == "wgpu":
        adapter = machine.wgpu.preferred()
        return f"{adapter.name} through {adapter.api}{', a software adapter' if adapter.software else ''}"
    cores = f"{machine.cpu_cores} core{'s' if machine.cpu_cores != 1 else ''}"
    return f"numba on {cores}" if backend == "cpu" else "plain NumPy, the executable specification; slow"


def choose_backend(
    requested: str,
    neurons: int,
    firing_rate: float | None,
    config: Configuration,
    machine: Machine,
    *,
    allow_fallback: bool | None = False,
    where: str = "--backend",
) -> Choice:
    """The backend for a network of ``neurons`` neurons.

    Parameters
    ----------
    requested : str
        ``auto``, ``cpu``, ``cuda``, ``wgpu`` or ``reference``.
    neurons : int
        Size of the network.
    firing_rate : float or None
        Expected fraction of the neurons that fire in a burst, 0...1; ``None`` if nobody knows: size decides alone.
    config : Configuration
        Its ``compute.auto_selection`` and ``cuda.device_id`` are used.
    machine : Machine
        What is there.
    allow_fallback : bool or None
        Go on with the next backend if the asked-for one is not available; ``None`` where the caller has no such option,
        so that the error does not name it.
    where : str
        How the caller calls the choice, for errors.

    Raises
    ------
    InputError
        Unknown backend, or a firing rate outside 0...1.
    BackendUnavailableError
        The asked-for backend cannot run here and fallback is not allowed.
    """
    if requested not in BACKENDS:
        raise InputError("unknown backend", where=where, got=requested, allowed=", ".join(BACKENDS))
    if firing_rate is not None and not 0.0 <= firing_rate <= 1.0:
        raise InputError("not a firing rate", where="--firing-rate", got=firing_rate, allowed="0 to 1")
    considered = consider(machine, config.cuda.device_id)
    if requested == "auto":
        backend, reason = _automatic(neurons, firing_rate, config, considered)
        return Choice(requested, backend, reason, considered)
    choice = Choice(requested, requested, "asked for", considered)
    obstacle = obstacle_of(requested, machine, config.cuda.device_id)
    if obstacle is None:
        return choice
    if not allow_fallback:
        raise _unavailable(requested, obstacle, where, offer_fallback=allow_fallback is not None)
    return next_choice(choice, obstacle.why)


def _unavailable(backend: str, obstacle: Obstacle, where: str, *, offer_fallback: bool) -> BackendUnavailableError:
    offer = "; --allow-fallback goes on with the next backend" if offer_fallback else ""
    return BackendUnavailableError(
        f"the backend {backend} cannot start: {obstacle.why}",
        where=where,
        cure=f"{obstacle.cure}{offer}",
    )


def _automatic(
    neurons: int, firing_rate: float | None, config: Configuration, considered: tuple[Considered, ...]
) -> tuple[str, str]:
    """Backend and reason for ``auto``."""
    wanted, size = _wants_gpu(neurons, firing_rate, config)
    if not wanted:
        return "cpu", size
    gpus = ("cuda", "wgpu") if config.compute.auto_selection.prefer_cuda_over_wgpu else ("wgpu", "cuda")
    passed: list[str] = []
    for gpu in gpus:
        found = next(item for item in considered if item.backend == gpu)
        if found.available and not found.software:
            return gpu, "; ".join([f"{size}: {found.why}", *passed])
        passed.append(f"{gpu} is {'passed over' if found.available else 'not available'}: {found.why}")
    return "cpu", "; ".join([f"{size}, so a GPU is wanted", *passed])


def _wants_gpu(neurons: int, firing_rate: float | None, config: Configuration) -> tuple[bool, str]:
    """Whether a GPU pays off, and why.

    The two thresholds together are the break-even point: ``gpu_min_neurons`` neurons of which the fraction
    ``gpu_min_firing_rate`` fires. A larger network reaches the same work at a lower rate.
    """
    limits = config.compute.auto_selection
    if neurons < limits.gpu_min_neurons:
        return False, f"{neurons} neurons are fewer than gpu_min_neurons {limits.gpu_min_neurons}"
    if firing_rate is None:
        return True, f"{neurons} neurons reach gpu_min_neurons {limits.gpu_min_neurons}, firing rate unknown"
    expected, needed = neurons * firing_rate, limits.gpu_min_neurons * limits.gpu_min_firing_rate
    compared = (
        f"{expected:.0f} expected firings per burst ({neurons} neurons at {firing_rate:g}) against {needed:.0f} "
        f"(gpu_min_neurons {limits.gpu_min_neurons} at gpu_min_firing_rate {limits.gpu_min_firing_rate:g})"
    )
    return (True, f"a GPU pays off: {compared}") if expected >= needed else (False, f"too quiet for a GPU: {compared}")


def _candidates_after(backend: str) -> Iterator[str]:
    """The backends to try when ``backend`` cannot start."""
    yield from FALLBACK_ORDER[FALLBACK_ORDER.index(backend) + 1 :]


def next_choice(choice: Choice, why: str) -> Choice:
    """The choice after ``choice.backend`` could not start for the reason ``why``.

    Raises
    ------
    BackendUnavailableError
        No backend is left.
    """
    history = "; ".join(part for part in (choice.fallback, f"{choice.backend} could not start: {why}") if part)
    available = {item.backend for item in choice.considered if item.available and not item.software}
    for backend in _candidates_after(choice.backend):
        if backend in available:
            return replace(choice, backend=backend, reason=f"fallback from {choice.requested}", fallback=history)
    raise BackendUnavailableError("no backend is left to fall back to", where="--backend", got=history)


def engine_factory(backend: str) -> CreateEngine:
    """The ``create`` of a backend's engine; imports that engine only.

    Raises
    ------
    InputError
        A name that is no engine of this build (``auto`` has to be resolved first).
    """
    if backend == "cpu":
        from burstproof.engine.cpu.engine import CpuEngine

        return CpuEngine.create
    if backend == "cuda":
        from burstproof.engine.cuda.engine import CudaEngine

        return CudaEngine.create
    if backend == "wgpu":
        from burstproof.engine.wgpu.engine import WgpuEngine

        return WgpuEngine.create
    if backend == "reference":
        from burstproof.engine.reference import ReferenceEngine

        return ReferenceEngine.create
    raise InputError("no such engine in this build", got=backend, allowed="cpu, cuda, wgpu, reference")


def start_engine(
    choice: Choice,
    network: Network,
    options: EngineOptions,
    *,
    allow_fallback: bool = False,
    factory: Callable[[str], CreateEngine] = engine_factory,
) -> tuple[Engine, Choice]:
    """Create the chosen engine; with fallback allowed, the next one if it cannot start.

    ``auto`` goes on by itself where the WGPU engine refuses the network, which it tells only from the network.

    Returns
    -------
    engine, choice
        The engine, and the choice as it came out in the end.

    Raises
    ------
    EnvironmentInvalidError
        The engine cannot start here (memory, driver, compiler) and fallback is not allowed, or none is left.
    """
    while True:
        try:
            engine = factory(choice.backend)(network, options)
            return engine, _with_placement(choice, engine)
        except EnvironmentInvalidError as error:
            refused = isinstance(error, BackendUnavailableError) and choice.backend == "wgpu"
            if not allow_fallback and not (refused and choice.requested == "auto"):
                raise
            choice = next_choice(choice, str(error))


def _with_placement(choice: Choice, engine: Engine) -> Choice:
    """``choice`` that says so if the engine keeps its synapses in host memory: bursts then wait for the link."""
    if engine.backend != "cuda":
        return choice
    from burstproof.engine.cuda.engine import CudaEngine

    in_host = engine.memory_plan.host_bytes if isinstance(engine, CudaEngine) else 0
    if not in_host:
        return choice
    return replace(choice, reason=f"{choice.reason}; its synapses, {in_host} bytes, are read from host memory")
