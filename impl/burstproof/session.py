"""An engine in a ``with`` block: backend by name, stimulus by area, potentials watched."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, replace
from functools import wraps
from pathlib import Path
from threading import RLock
from typing import Concatenate, ParamSpec, Self, TypeVar

import numpy as np
import numpy.typing as npt

from burstproof.analysis.recording import RunRecording
from burstproof.config import Configuration, Cuda
from burstproof.engine.ask_machine import this_machine
from burstproof.engine.closed_loop import ClosedLoop
from burstproof.engine.interruption import in_use
from burstproof.engine.options import CpuOptions, CudaOptions, EngineOptions, check_firing_rate
from burstproof.engine.precision import with_precision
from burstproof.engine.profile import profile_named
from burstproof.engine.protocol import Engine, Progress
from burstproof.engine.recorder import joined, recording_of
from burstproof.engine.registry import AUTO, BACKENDS, backend_names, engine_factory
from burstproof.engine.select import Choice, choose_backend, start_engine
from burstproof.engine.sharded.partition import STRATEGIES
from burstproof.engine.state import NO_PLAN, NO_STIMULUS, Burst, EngineState, Record, Recording, Stimulus, StimulusPlan
from burstproof.engine.stimulation import (
    Part,
    checked_amount,
    checked_plan,
    chosen_neurons,
    stimulus_bounds,
    stimulus_of,
)
from burstproof.engine.stimulus import coming_bursts, planned
from burstproof.engine.trace import trace_of_run, write_trace
from burstproof.errors import InputError, NetworkError
from burstproof.network.model import Network
from burstproof.split import split_over

NO_IDS = np.empty(0, np.uint32)
NO_POTENTIALS = np.empty((0, 0), np.float32)
USUAL_STRATEGY = "round_robin"

Given = ParamSpec("Given")
Found = TypeVar("Found")


def _by_one_thread(call: Callable[Concatenate[Session, Given], Found]) -> Callable[Concatenate[Session, Given], Found]:
    """Refuse ``call`` while another thread is in a call of the same session; a callback may call it from within."""

    @wraps(call)
    def alone(session: Session, /, *arguments: Given.args, **named: Given.kwargs) -> Found:
        if not session._use.acquire(blocking=False):
            raise in_use(call.__name__)
        try:
            return call(session, *arguments, **named)
        finally:
            session._use.release()

    return alone


class Session:
    """One network being run on one backend; made by ``open_engine``, closed by the end of its ``with`` block.

    It is for one thread at a time: a call while another thread is in one is an ``InputError``.

    Attributes
    ----------
    engine : Engine
        What runs the network, for what a session does not offer.
    network : Network
    backend, reason : str
        What runs, and why.
    """

    def __init__(self, engine: Engine, reason: str) -> None:
        self.engine = engine
        self.network = engine.network
        self.backend = engine.backend
        self.reason = reason
        self._closed = False
        self._use = RLock()
        self._stimulated: list[int] | None = []
        """First and last burst with a stimulus; ``None``, unknown, after ``restore`` or a closed loop."""

    @property
    def burst_count(self) -> int:
        """Number of the last burst done."""
        return self.engine.burst_count

    @_by_one_thread
    def run(
        self,
        bursts: int,
        stimulus: StimulusPlan = NO_PLAN,
        *,
        record: str = "fired",
        watch: npt.ArrayLike | str | None = None,
        progress: Progress | None = None,
    ) -> RunRecording:
        """Run ``bursts`` bursts.

        Parameters
        ----------
        bursts : int
            0 or more.
        stimulus : Stimulation, or mapping of int to Stimulus
            By absolute burst number.
        record : str
            ``fired`` (counts and fired lists), ``counts`` or ``none``.
        watch : (W,) integers or str, optional
            Neurons, or the name or cortical id of an area, whose potentials are sampled after every burst. The bursts
            then run one by one; engines but ``cpu`` and ``reference`` copy their whole state for it.
        progress : callable, optional
            Called with the number of bursts just done.

        Raises
        ------
        StimulusError
            An id or amount that the network or the declared bounds do not admit.
        InputError
            Fewer than 0 bursts, an unknown ``record``, or a stimulus only for bursts that are done, where nothing was
            put in so far.
        NetworkError
            No such area.
        """
        self._check_open("run")
        kind = _record_named(record)
        checked_plan(stimulus, "stimulus")
        coming = coming_bursts(self.burst_count, bursts)
        if bursts:
            self._refuse_past(stimulus)
        try:
            return self._run(bursts, stimulus, kind, watch, progress)
        finally:
            self._note(stimulus, range(coming.start, self.burst_count + 1))

    def _run(
        self,
        bursts: int,
        stimulus: StimulusPlan,
        kind: Record,
        watch: npt.ArrayLike | str | None,
        progress: Progress | None,
    ) -> RunRecording:
        """``run`` with parameters that were checked."""
        if watch is None:
            made = self.engine.run(bursts, stimulus, kind, progress)
            return self._recording(made)
        area, ids = (watch, None) if isinstance(watch, str) else (None, watch)
        watched = chosen_neurons(self.network, ids, area)
        pieces, sampled = [], []
        for _ in range(bursts):
            pieces.append(self.engine.run(1, stimulus, kind, progress))
            sampled.append(self.engine.potentials(watched))
        pieces = pieces or [self.engine.run(bursts, stimulus, kind)]
        return self._recording(joined(pieces), watched, np.array(sampled, np.float32).reshape(bursts, len(watched)))

    @_by_one_thread
    def step(
        self,
        stimulus: Stimulus = NO_STIMULUS,
        *,
        amount: float | npt.ArrayLike | None = None,
        ids: npt.ArrayLike | None = None,
        area: str | None = None,
    ) -> Burst:
        """Run one burst: for closed loops, where what fired decides what comes next.

        Parameters
        ----------
        stimulus : Stimulus
            Amounts and forced firings at once; or, for one kind alone, the three that follow.
        amount : float or (Q,) array, optional
            Added to ``ids``, (Q,) integers, or to the valid neurons of ``area``; without it they are forced to fire.

        Returns
        -------
        Burst
            ``number``, ``fired_ids`` (F,) uint32 ascending, ``fired_potentials`` (F,) float32, ``candidates``.

        Raises
        ------
        StimulusError, NetworkError
            As for ``run``; also both ``stimulus`` and neurons, or an amount without neurons.
        """
        self._check_open("step")
        if amount is not None or ids is not None or area is not None:
            if stimulus is not NO_STIMULUS:
                raise InputError("a stimulus is given twice", where="step", cure="Pass stimulus, or ids or area")
            neurons = chosen_neurons(self.network, ids, area)
            given = None if amount is None else checked_amount(amount, len(neurons))
            stimulus = stimulus_of([Part(range(0), neurons, given)])
        burst = self.engine.step(stimulus)
        if stimulus is not NO_STIMULUS:
            self._note({burst.number: stimulus}, range(burst.number, burst.number + 1))
        return burst

    @_by_one_thread
    def closed_loop(self, areas: str | Sequence[str] | None = None) -> ClosedLoop:
        """Bursts call by call at the least latency, in a ``with`` block: ``fired = loop.step(ids, amounts)``.

        Parameters
        ----------
        areas : str or sequence of str, optional
            Names or cortical ids of the areas whose firings come back; by default those of all neurons.

        Returns
        -------
        ClosedLoop
            Its ``step(ids, amounts, forced)`` takes uint32 (Q,), float32 (Q,) and uint32 (R,), and returns the neurons
            that fired, uint32 (F,) ascending.

        Raises
        ------
        NetworkError
            No such area.
        """
        self._check_open("closed_loop")
        self._stimulated = None
        loop = self.engine.closed_loop(None if areas is None else self._neurons_of(areas))
        loop.lock = self._use
        return loop

    def _neurons_of(self, areas: str | Sequence[str]) -> npt.NDArray[np.uint32]:
        """The neurons of the areas with these names or cortical ids."""
        if not isinstance(areas, Iterable):
            raise InputError("not names of areas", where="areas", got=areas, allowed="a name, or a list of names")
        names = [areas] if isinstance(areas, str) else list(areas)
        found = [self.network.ids_of(name) for name in names]
        return np.concatenate([NO_IDS, *found])

    def recording_of(self, bursts: Sequence[Burst]) -> RunRecording:
        """What consecutive steps did, as ``run`` would have returned it.

        Raises
        ------
        InputError
            Something else than consecutive bursts.
        """
        steps = list(bursts) if isinstance(bursts, Iterable) else [bursts]
        if not all(isinstance(one, Burst) for one in steps):
            raise InputError("not bursts", where="recording_of", got=bursts, allowed="what step returned, in order")
        numbers = [one.number for one in steps]
        if numbers != list(range(numbers[0], numbers[0] + len(numbers)) if numbers else []):
            raise InputError("bursts out of order", where="recording_of", got=numbers, allowed="each the next one")
        made = recording_of(steps, Record.FIRED)
        return self._recording(made)

    def save_record(
        self, recording: Recording, path: str | os.PathLike[str], stimulus: StimulusPlan = NO_PLAN
    ) -> tuple[Path, Path]:
        """Write the record of all bursts so far, which ``bp.verify`` and ``burstproof verify`` replay.

        Parameters
        ----------
        recording : Recording
            From the first burst of the network to the last one done, with fired lists.
        path : path
            NAME of NAME.npz and NAME.json; each is replaced in one step.
        stimulus : Stimulation, or mapping of int to Stimulus
            What went into the bursts: all that ``run`` and ``step`` got, by absolute burst number.

        Returns
        -------
        tuple of Path
            The two files.

        Raises
        ------
        InputError
            A recording of other bursts, of another network, of no burst, or without fired lists; a stimulus that
            leaves out the first or the last burst that something was put into.
        EnvironmentInvalidError
            The file system refused.
        """
        if not isinstance(recording, Recording):
            raise InputError("not a recording", where="recording", got=recording, cure="Pass what run returned")
        network = getattr(recording, "network", self.network)
        if network is not self.network:
            raise InputError(
                "a recording of another network",
                where="recording",
                got=network,
                allowed=repr(self.network),
                cure="Save it with the session that made it",
            )
        checked_plan(stimulus, "stimulus")
        recording.spikes()
        first, last = self.network.burst_count + 1, self.burst_count
        if last < first:
            raise InputError("a record of no bursts shows nothing", where="recording", cure="Run some bursts")
        if recording.bursts.tolist() != list(range(first, last + 1)):
            raise InputError(
                "a record holds every burst up to the last one done",
                where="recording",
                got=repr(recording),
                allowed=f"bursts {first} to {last}",
                cure="Save it after the run; run all bursts at once, or join steps with recording_of",
            )
        missing = [burst for burst in self._stimulated or () if burst not in stimulus]
        if missing:
            raise InputError(
                f"something was put into burst {missing[0]}, which the stimulus leaves out: a replay could not agree",
                where="stimulus",
                got=f"{len(stimulus)} bursts",
                cure="Pass stimulus=, all that run and step got",
            )
        trace = trace_of_run(self.network, self.engine.options, recording, stimulus, self.state(), Path(path).name)
        settings = {**trace.settings, "backend": self.backend, "backend_reason": self.reason}
        return write_trace(path, replace(trace, settings=settings))

    @_by_one_thread
    def state(self) -> EngineState:
        """A copy of everything that the next burst depends on, equal on every backend."""
        self._check_open("state")
        return self.engine.state()

    @_by_one_thread
    def restore(self, state: EngineState) -> None:
        """Continue from ``state``, taken from any backend over the same network and options.

        Raises
        ------
        NetworkError
            The state of another network, by its sizes, or sums of another scale.
        """
        self._check_open("restore")
        if not isinstance(state, EngineState):
            raise NetworkError("not a state", where="restore", got=state, allowed="what state() returned")
        self.engine.restore(state)
        self._stimulated = None

    @_by_one_thread
    def close(self) -> None:
        """Give back memory and devices. Closing twice is allowed."""
        self._closed = True
        self.engine.close()

    def _check_open(self, where: str) -> None:
        """Refuse a session that is closed, whatever its engine still could do."""
        if self._closed:
            raise InputError("the engine is closed", where=where, cure="Open another one")

    def _refuse_past(self, stimulus: StimulusPlan) -> None:
        """Refuse a stimulus without a burst to come. Runs in a row may share one that an earlier run saw."""
        is_past = stimulus and self._stimulated == [] and max(stimulus) <= self.burst_count
        if is_past and any(map(_is_something, stimulus.values())):
            raise InputError(
                f"burst {min(stimulus)} is done, and so is every burst of the stimulus",
                where="stimulus",
                got=f"bursts {min(stimulus)} to {max(stimulus)}",
                allowed=f"{self.burst_count + 1} or more",
                cure=f"Burst numbers are absolute: the engine stands after burst {self.burst_count}",
            )

    def _note(self, stimulus: StimulusPlan, bursts: range) -> None:
        """Keep the first and the last burst with a stimulus; ``bursts`` are those just done."""
        if self._stimulated is not None:
            got = [burst for burst in planned(stimulus, bursts) if _is_something(stimulus[burst])]
            seen = sorted([*self._stimulated, *got])
            self._stimulated = seen[:1] + seen[1:][-1:]

    def _recording(
        self,
        made: Recording,
        watched: npt.NDArray[np.uint32] = NO_IDS,
        potentials: npt.NDArray[np.float32] = NO_POTENTIALS,
    ) -> RunRecording:
        columns = {item.name: getattr(made, item.name) for item in fields(Recording)}
        return RunRecording(**columns, network=self.network, watched_ids=watched, watched_potentials=potentials)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Session({self.backend}: {self.reason}; after burst {self.burst_count} of {self.network!r})"


def _is_something(stimulus: Stimulus) -> bool:
    """Whether ``stimulus`` puts anything in."""
    return any(len(part) for part in (stimulus.ids, stimulus.forced, stimulus.memories_early))


def _record_named(name: str) -> Record:
    """The kind of record of that name."""
    try:
        return Record(name)
    except ValueError:
        allowed = ", ".join(kind.value for kind in Record)
        raise InputError("unknown kind of record", where="record", got=name, allowed=allowed) from None


def open_engine(
    network: Network,
    backend: str = "auto",
    *,
    stimulus: StimulusPlan = NO_PLAN,
    max_stimulus: float | None = None,
    fractional_stimulus: bool | None = None,
    precision: str = "fp32",
    profile: str = "feagi-2.6",
    emulate_batch_path: bool = False,
    threads: int = 0,
    shards: int | None = None,
    devices: Sequence[int] | None = None,
    strategy: str = USUAL_STRATEGY,
    firing_rate: float | None = None,
) -> Session:
    """Put a network on a backend; use it in a ``with`` block.

    Parameters
    ----------
    network : Network
    backend : str
        ``auto`` (by size, and by what is here), ``cpu``, ``cuda``, ``wgpu`` or ``reference``.
    stimulus : Stimulation, or mapping of int to Stimulus, optional
        What is going to be put in: the two bounds follow from it. It still has to be given to ``run``.
    max_stimulus : float, optional
        Bound of the summed |amounts| of one neuron in one burst; by default what ``stimulus`` needs, at least 255.
    fractional_stimulus : bool, optional
        Whether amounts may be fractional; by default whether those of ``stimulus`` are.
    precision : str
        Format of stored potentials: ``fp32``, ``fp16``, ``bf16``, ``int8``, or ``feagi-int8``: as the released engine
        started with ``--precision int8``. Others than ``fp32`` change results.
    profile : str
        ``feagi-2.6`` or ``feagi-beta``.
    emulate_batch_path : bool
        Reproduce the defect of the real engine at 10 000 or more candidates.
    threads : int
        Of the CPU engine; 0 chooses.
    shards : int, optional
        Split the network into so many parts, on ``cpu`` (the default then) or on the GPUs that are here, in turn.
        Results do not change.
    devices : sequence of int, optional
        CUDA devices; the backend then is ``cuda``. Several hold a shard each, and several shards may share one.
    strategy : str
        How neurons are split: ``round_robin``, ``contiguous``, ``by_cortical_area``, ``dynamic``, ``metis``.
    firing_rate : float, optional
        Expected fraction of neurons that fire in a burst: ``auto`` chooses by it, and CUDA how it delivers
        contributions.

    Returns
    -------
    Session

    Raises
    ------
    InputError
        An unknown name, or options that contradict each other.
    NetworkError
        A network that the profile refuses.
    EnvironmentInvalidError
        The backend cannot start here: no device, no memory.
    """
    if not isinstance(network, Network):
        raise InputError("not a network", where="network", got=network, cure="Read a file with load")
    if not isinstance(backend, str):
        raise InputError("unknown backend", where="backend", got=backend, allowed=", ".join(backend_names()))
    checked_plan(stimulus, "stimulus")
    _check_split(backend, shards, devices, strategy)
    if firing_rate is not None:
        check_firing_rate(firing_rate)
    if threads and backend not in (AUTO, "cpu"):
        raise InputError("this backend has no threads", where="threads", got=threads, cure="Leave it out")
    network, stored = with_precision(network, precision)
    largest, fractional = stimulus_bounds(stimulus, EngineOptions())
    options = EngineOptions(
        profile=profile_named(profile),
        emulate_batch_path=emulate_batch_path,
        max_stimulus=largest if max_stimulus is None else max_stimulus,
        fractional_stimulus=fractional if fractional_stimulus is None else fractional_stimulus,
        precision=stored,
        cpu=CpuOptions(threads=threads),
        cuda=CudaOptions(device_id=devices[0] if devices else 0, firing_rate=firing_rate or 0.0),
    )
    if backend == AUTO and (shards is not None or devices is not None):
        backend = "cpu" if devices is None else "cuda"
    split = None
    if shards is not None or len(devices or ()) > 1:
        split = split_over(shards, None if devices is None else tuple(devices), strategy, threads)
    config = Configuration(cuda=Cuda(device_id=options.cuda.device_id))
    choice = resolved(backend, network.neuron_count, firing_rate, config, synapses=network.synapse_count)
    factory = engine_factory if split is None else split.factory
    engine, choice = start_engine(choice, network, options, factory=factory)
    return Session(engine, choice.reason if split is None else f"{split.shards} shards, {strategy}")


def _check_split(backend: str, shards: int | None, devices: Sequence[int] | None, strategy: str) -> None:
    """Refuse shards and devices that cannot be, and a strategy where nothing is split."""
    if shards is not None and (type(shards) is not int or shards < 1):
        raise InputError("not a number of shards", where="shards", got=shards, allowed="1 or more")
    if devices is not None and not (isinstance(devices, tuple | list) and all(type(one) is int for one in devices)):
        raise InputError("not device numbers", where="devices", got=devices, allowed="a list such as [0, 1]")
    if shards is not None and devices is not None:
        raise InputError("the number of shards is given twice", where="shards", got=shards, cure="Leave out shards")
    if devices is not None and not len(devices):
        raise InputError("no device is named", where="devices", cure="Leave it out, or name one")
    if devices is not None and backend not in ("auto", "cuda"):
        raise InputError("this backend has no devices", where="backend", got=backend, allowed="auto, cuda")
    if strategy not in STRATEGIES:
        raise InputError("unknown strategy", where="strategy", got=strategy, allowed=", ".join(STRATEGIES))
    if strategy != USUAL_STRATEGY and shards is None and devices is None:
        cure = "Leave it out, or split the network by shards or devices"
        raise InputError("nothing is split, so it does nothing", where="strategy", got=strategy, cure=cure)


def resolved(
    backend: str,
    neurons: int,
    firing_rate: float | None = None,
    config: Configuration | None = None,
    where: str = "backend",
    *,
    synapses: int | None = None,
) -> Choice:
    """The backend that runs, without fallback; nobody looks for GPUs where one without is asked for."""
    if backend in BACKENDS and not BACKENDS[backend].gpu:
        return Choice(backend, backend, "asked for", ())
    settings = config or Configuration()
    machine = this_machine()
    return choose_backend(
        backend, neurons, firing_rate, settings, machine, synapses=synapses, allow_fallback=None, where=where
    )
