"""The choice of a backend for a network, its reasons, and the fallback if the backend cannot start (BE-13, BE-15)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from burstproof.config import Configuration
from burstproof.engine.costs import USUAL_RATE, USUAL_SYNAPSES, WORTH, cpu_threads, cpu_us, cuda_us
from burstproof.engine.machine import Machine, Obstacle
from burstproof.engine.options import EngineOptions, check_firing_rate
from burstproof.engine.protocol import CreateEngine, Engine
from burstproof.engine.registry import AUTO, BACKENDS, backend_names, engine_factory
from burstproof.errors import BackendUnavailableError, EnvironmentInvalidError, InputError, UnmodelledError
from burstproof.network.model import Network


@dataclass(frozen=True)
class Considered:
    """A backend that was considered; ``why``: what it would run on, or why it cannot run.

    ``software`` marks a software adapter, which ``auto`` never takes; ``cure`` is the advice for an obstacle.
    """

    backend: str
    available: bool
    why: str
    software: bool = False
    cure: str = ""


@dataclass(frozen=True)
class Choice:
    """The chosen backend.

    Attributes
    ----------
    requested, backend : str
        The requested backend, or ``auto``, and the one that runs.
    reason : str
        Why, in one sentence.
    considered : tuple of Considered
        All backends with their availability.
    fallback : str
        Why the requested backend did not start; empty without a fallback.
    """

    requested: str
    backend: str
    reason: str
    considered: tuple[Considered, ...]
    fallback: str = ""


def consider(machine: Machine, device_id: int = 0) -> tuple[Considered, ...]:
    """All backends with their availability on ``machine``, in order of preference."""
    considered = []
    for name, row in BACKENDS.items():
        found = row.finds(machine, device_id)
        if isinstance(found, Obstacle):
            considered.append(Considered(name, False, found.why, cure=found.cure))
        else:
            considered.append(Considered(name, True, found.why, found.software))
    return tuple(considered)


def choose_backend(
    requested: str,
    neurons: int,
    firing_rate: float | None,
    config: Configuration,
    machine: Machine,
    *,
    synapses: int | None = None,
    allow_fallback: bool | None = False,
    where: str = "--backend",
) -> Choice:
    """The backend for a network of ``neurons`` neurons.

    ``auto`` takes CUDA if a burst is at least twice as fast there by the cost model (:mod:`burstproof.engine.costs`),
    and WGPU, which was not measured, from default thresholds on. Thresholds set in the configuration take precedence.

    Parameters
    ----------
    requested : str
        ``auto``, ``cpu``, ``cuda``, ``wgpu`` or ``reference``.
    neurons : int
        Size of the network.
    firing_rate : float or None
        Expected fraction of the neurons that fire in a burst, 0...1; ``None`` if unknown: costs assume 1 %.
    config : Configuration
        Its ``compute.auto_selection`` and ``cuda.device_id`` are used.
    machine : Machine
        The hardware and drivers.
    synapses : int or None
        Synapses of the network; ``None`` assumes 100 per neuron.
    allow_fallback : bool or None
        Take the next backend if the requested one is not available; ``None`` if the caller has no such option, so that
        the error does not mention it.
    where : str
        Name of the caller's option, for errors.

    Raises
    ------
    InputError
        Unknown backend, or a firing rate outside 0...1.
    BackendUnavailableError
        The requested backend cannot run here, and fallback is not allowed.
    """
    if requested not in backend_names():
        raise InputError("unknown backend", where=where, got=requested, allowed=", ".join(backend_names()))
    if firing_rate is not None:
        check_firing_rate(firing_rate)
    considered = consider(machine, config.cuda.device_id)
    if requested == AUTO:
        load = _Load(neurons, synapses, firing_rate, machine.cpu_cores)
        backend, reason = _automatic(load, config, considered)
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


@dataclass(frozen=True)
class _Load:
    """The work of a burst; unknown values are ``None``."""

    neurons: int
    synapses: int | None
    firing_rate: float | None
    cores: int

    @property
    def events(self) -> float:
        """Contributions of a burst."""
        synapses = USUAL_SYNAPSES * self.neurons if self.synapses is None else self.synapses
        return synapses * (USUAL_RATE if self.firing_rate is None else self.firing_rate)


def _automatic(load: _Load, config: Configuration, considered: tuple[Considered, ...]) -> tuple[str, str]:
    """The backend that ``auto`` takes, and the reason."""
    host = next(name for name, row in BACKENDS.items() if not row.gpu)
    gpus = [item for item in considered if BACKENDS[item.backend].gpu]
    if not config.compute.auto_selection.prefer_cuda_over_wgpu:
        gpus.sort(key=lambda item: item.backend == "cuda")
    passed: list[str] = []
    for found in gpus:
        wanted, why = _wants(found.backend, load, config)
        if not wanted:
            passed.append(why)
            if found.backend == "cuda" and found.available:
                break  # too little work for CUDA is too little for WGPU
        elif found.available and not found.software:
            return found.backend, "; ".join([f"{why}: {found.why}", *passed])
        else:
            missing = f"{found.backend} is {'passed over' if found.available else 'not available'}: {found.why}"
            passed.append(f"{why}, so a GPU is wanted; {missing}")
    return host, "; ".join(dict.fromkeys(passed))


def _wants(backend: str, load: _Load, config: Configuration) -> tuple[bool, str]:
    """Whether the GPU of ``backend`` pays off, and why: by thresholds if they are set, else by the cost model."""
    if config.has_thresholds:
        return _reaches_thresholds(load.neurons, load.firing_rate, config)
    if backend != "cuda":
        wanted, why = _reaches_thresholds(load.neurons, load.firing_rate, config)
        return wanted, f"for {backend}, {why}"
    threads = cpu_threads(load.neurons, load.events, load.cores)
    on_cpu, on_gpu = cpu_us(load.neurons, load.events, threads), cuda_us(load.events)
    told = "" if load.firing_rate is not None else f" (firing rate unknown, taken as {100 * USUAL_RATE:g} %)"
    cores = "1 core" if threads == 1 else f"{threads} cores"
    burst = f"a burst of {load.neurons} neurons with {load.events:.0f} contributions{told}"
    costs = f"{burst} takes about {on_cpu:.0f} us on {cores}, {on_gpu:.0f} on CUDA"
    if on_cpu >= WORTH * on_gpu:
        return True, f"a GPU pays off: {costs}"
    return False, f"a GPU hardly pays off: {costs}"


def _reaches_thresholds(neurons: int, firing_rate: float | None, config: Configuration) -> tuple[bool, str]:
    """Whether the network reaches the thresholds of the configuration, and why.

    Together they define the break-even point: ``gpu_min_neurons`` neurons that fire at ``gpu_min_firing_rate``. A
    larger network reaches the same work at a lower rate.
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
    if expected >= needed:
        return True, f"a GPU pays off: {compared}"
    return False, f"too quiet for a GPU: {compared}"


def next_choice(choice: Choice, why: str) -> Choice:
    """The fallback after ``choice.backend`` could not start for the reason ``why``.

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
    """Create the chosen engine; if that fails and fallback is allowed, the next one.

    ``auto`` falls back by itself if a backend that ``probes`` refuses, or if one lacks a feature of the network.

    Returns
    -------
    engine, choice
        The engine, and the final choice.

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
        except UnmodelledError as error:
            if choice.requested != AUTO:
                raise
            choice = next_choice(choice, str(error))


def _with_placement(choice: Choice, engine: Engine) -> Choice:
    """``choice``, with a note if the engine keeps its synapses in host memory, where the link limits its speed."""
    if not engine.host_bytes:
        return choice
    return replace(
        choice, reason=f"{choice.reason}; its synapses, {engine.host_bytes} bytes, are read from host memory"
    )
