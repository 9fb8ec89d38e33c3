"""Which backend runs a network, why, and what to do where the asked-for one cannot start (BE-13, BE-15)."""

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
    synapses: int | None = None,
    allow_fallback: bool | None = False,
    where: str = "--backend",
) -> Choice:
    """The backend for a network of ``neurons`` neurons.

    ``auto`` takes CUDA where the measured costs (:mod:`burstproof.engine.costs`) make a burst at least twice as fast
    there, and WGPU, of which nothing was measured, from the notes' thresholds on. Thresholds that are set in the
    configuration decide instead.

    Parameters
    ----------
    requested : str
        ``auto``, ``cpu``, ``cuda``, ``wgpu`` or ``reference``.
    neurons : int
        Size of the network.
    firing_rate : float or None
        Expected fraction of the neurons that fire in a burst, 0...1; ``None`` if nobody knows: costs assume 1 %.
    config : Configuration
        Its ``compute.auto_selection`` and ``cuda.device_id`` are used.
    machine : Machine
        What is there.
    synapses : int or None
        Of the network; ``None`` assumes 100 for each neuron.
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
    if firing_rate is not None:
        check_firing_rate("firing_rate", firing_rate)
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
    """What is known of the work of a burst: ``None`` where nothing is."""

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
    """Backend and reason for ``auto``."""
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
                break  # what is not worth CUDA is not worth WGPU
        elif found.available and not found.software:
            return found.backend, "; ".join([f"{why}: {found.why}", *passed])
        else:
            missing = f"{found.backend} is {'passed over' if found.available else 'not available'}: {found.why}"
            passed.append(f"{why}, so a GPU is wanted; {missing}")
    return host, "; ".join(dict.fromkeys(passed))


def _wants(backend: str, load: _Load, config: Configuration) -> tuple[bool, str]:
    """Whether the GPU of ``backend`` pays off, and why: by thresholds that are set, else by what was measured."""
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
    return (
        (True, f"a GPU pays off: {costs}") if on_cpu >= WORTH * on_gpu else (False, f"a GPU hardly pays off: {costs}")
    )


def _reaches_thresholds(neurons: int, firing_rate: float | None, config: Configuration) -> tuple[bool, str]:
    """Whether the network reaches the thresholds of the configuration, and why.

    The two together are the break-even point: ``gpu_min_neurons`` neurons of which the fraction
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

    ``auto`` goes on by itself where a backend that ``probes`` refuses, or one does not model the network's features.

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
        except UnmodelledError as error:
            if choice.requested != AUTO:
                raise
            choice = next_choice(choice, str(error))


def _with_placement(choice: Choice, engine: Engine) -> Choice:
    """``choice`` that says so if the engine keeps its synapses in host memory: bursts then wait for the link."""
    if not engine.host_bytes:
        return choice
    return replace(
        choice, reason=f"{choice.reason}; its synapses, {engine.host_bytes} bytes, are read from host memory"
    )
