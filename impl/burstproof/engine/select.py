"""Which backend runs a network, why, and what to do where the asked-for one cannot start (BE-13, BE-15)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from burstproof.config import Configuration
from burstproof.engine.machine import Machine, Obstacle
from burstproof.engine.options import EngineOptions
from burstproof.engine.protocol import CreateEngine, Engine
from burstproof.engine.registry import AUTO, BACKENDS, backend_names, engine_factory
from burstproof.errors import BackendUnavailableError, EnvironmentInvalidError, InputError
from burstproof.network.model import Network


@dataclass(frozen=True)
class Considered:
    """One backend that the choice looked at; ``why`` says what makes it available or what keeps it from running.

    ``software`` marks an adapter that is a program on the CPU, which ``auto`` never takes; ``cure`` says what to do
    about an obstacle.
    """

    backend: str
    available: bool
    why: str
    software: bool = False
    cure: str = ""


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


def consider(machine: Machine, device_id: int = 0) -> tuple[Considered, ...]:
    """Every backend with its availability on ``machine``, the strongest first."""
    found = ((name, row.finds(machine, device_id)) for name, row in BACKENDS.items())
    return tuple(
        Considered(name, False, one.why, cure=one.cure)
        if isinstance(one, Obstacle)
        else Considered(name, True, one.why, one.software)
        for name, one in found
    )


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
    if requested not in backend_names():
        raise InputError("unknown backend", where=where, got=requested, allowed=", ".join(backend_names()))
    if firing_rate is not None and not (isinstance(firing_rate, int | float) and 0.0 <= firing_rate <= 1.0):
        raise InputError("not a firing rate", where="firing_rate", got=firing_rate, allowed="0 to 1")
    considered = consider(machine, config.cuda.device_id)
    if requested == AUTO:
        backend, reason = _automatic(neurons, firing_rate, config, considered)
        return Choice(requested, backend, reason, considered)
    choice = Choice(requested, requested, "asked for", considered)
    found = next(item for item in considered if item.backend == requested)
    if found.available:
        return choice
    if allow_fallback:
        return next_choice(choice, found.why)
    offer = "" if allow_fallback is None else "; --allow-fallback goes on with the next backend"
    raise BackendUnavailableError(
        f"the backend {requested} cannot start: {found.why}", where=where, cure=f"{found.cure}{offer}"
    )


def _automatic(
    neurons: int, firing_rate: float | None, config: Configuration, considered: tuple[Considered, ...]
) -> tuple[str, str]:
    """Backend and reason for ``auto``."""
    wanted, size = _wants_gpu(neurons, firing_rate, config)
    host = next(name for name, row in BACKENDS.items() if not row.gpu)
    if not wanted:
        return host, size
    gpus = [item for item in considered if BACKENDS[item.backend].gpu]
    if not config.compute.auto_selection.prefer_cuda_over_wgpu:
        gpus.sort(key=lambda item: item.backend == "cuda")
    passed: list[str] = []
    for found in gpus:
        if found.available and not found.software:
            return found.backend, "; ".join([f"{size}: {found.why}", *passed])
        passed.append(f"{found.backend} is {'passed over' if found.available else 'not available'}: {found.why}")
    return host, "; ".join([f"{size}, so a GPU is wanted", *passed])


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


def next_choice(choice: Choice, why: str) -> Choice:
    """The choice after ``choice.backend`` could not start for the reason ``why``.

    Raises
    ------
    BackendUnavailableError
        No backend is left.
    """
    history = "; ".join(part for part in (choice.fallback, f"{choice.backend} could not start: {why}") if part)
    available = {item.backend for item in choice.considered if item.available and not item.software}
    order = list(BACKENDS)
    for backend in order[order.index(choice.backend) + 1 :]:
        if backend in available:
            return replace(choice, backend=backend, reason=f"fallback from {choice.requested}", fallback=history)
    raise BackendUnavailableError("no backend is left to fall back to", where="--backend", got=history)


def start_engine(
    choice: Choice,
    network: Network,
    options: EngineOptions,
    *,
    allow_fallback: bool = False,
    factory: Callable[[str], CreateEngine] = engine_factory,
) -> tuple[Engine, Choice]:
    """Create the chosen engine; with fallback allowed, the next one if it cannot start.

    ``auto`` goes on by itself where a backend that ``probes`` refuses.

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
            refused = isinstance(error, BackendUnavailableError) and BACKENDS[choice.backend].probes
            if not allow_fallback and not (refused and choice.requested == AUTO):
                raise
            choice = next_choice(choice, str(error))


def _with_placement(choice: Choice, engine: Engine) -> Choice:
    """``choice`` that says so if the engine keeps its synapses in host memory: bursts then wait for the link."""
    if not engine.host_bytes:
        return choice
    return replace(
        choice, reason=f"{choice.reason}; its synapses, {engine.host_bytes} bytes, are read from host memory"
    )
