"""An engine whose device fails: errors of the driver planted at the seam, one call after the other.

The seam is what an engine asks of a device: the runtime, its streams, events and graphs (``device/protocol.py``). These
are checks in the simulator; ``device_fault_check`` has real faults of a GPU.
"""

from __future__ import annotations

import contextlib
import functools
import io
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from unittest import mock

import numpy as np

from burstproof.device.open import open_device
from burstproof.engine.machine import CudaDevice, CudaFacts, Machine
from burstproof.engine.options import CudaOptions, EngineOptions
from burstproof.engine.reference import ReferenceEngine
from burstproof.engine.state import StimulusPlan
from burstproof.errors import BurstproofError, DeviceFaultError, ExitCode, InputError, OutOfMemoryError
from burstproof.network.model import Network, NeuronTable, SynapseTable
from suites.support.parity.batch_checks import all_fire, cuda_engine, runs_differ
from suites.support.parity.builder import CreateEngine
from suites.support.parity.recordings import recording
from suites.support.shards.simulated import sharded


class CUDARuntimeError(Exception):
    """Stands for CuPy's error of this name."""


class CUDADriverError(Exception):
    """Stands for CuPy's error of this name."""


class CUDAError(Exception):
    """Stands for cuda.core's error of this name."""


class CudaAPIError(Exception):
    """Stands for numba-cuda's error of this name."""


@dataclass(frozen=True)
class Said:
    """What the driver says, whether it says so of every later call, and what has to become of it.

    ``cure`` is a part of the cure that the message states.
    """

    error: Exception
    lasting: bool
    expected: type[BurstproofError]
    cure: str

    def problems(self, error: BurstproofError) -> list[str]:
        """What is wrong with ``error`` as the answer to this."""
        wrong = [f"{self.error}: {type(error).__name__}"] * (type(error) is not self.expected)
        return wrong + [f"{self.error}: {error}"] * (str(self.error) not in str(error) or self.cure not in str(error))


_NEW = "If it fails again"
SAID = {
    "unavailable": Said(CUDAError("CUDA_ERROR_DEVICE_UNAVAILABLE"), True, DeviceFaultError, "End the program"),
    "busy": Said(
        CUDARuntimeError("cudaErrorDevicesUnavailable: CUDA-capable device(s) is/are busy or unavailable"),
        True,
        DeviceFaultError,
        "End the program",
    ),
    "memory error": Said(
        CUDARuntimeError("cudaErrorECCUncorrectable: uncorrectable ECC error encountered"),
        True,
        DeviceFaultError,
        "have the device reset",
    ),
    "launch": Said(
        CUDADriverError("CUDA_ERROR_LAUNCH_FAILED: unspecified launch failure"), True, DeviceFaultError, _NEW
    ),
    "address": Said(
        CUDAError("CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered"), True, DeviceFaultError, _NEW
    ),
    "context": Said(
        CudaAPIError("[709] Call to cuMemcpyHtoD results in CUDA_ERROR_CONTEXT_IS_DESTROYED"),
        True,
        DeviceFaultError,
        "restart the machine",
    ),
    "lost": Said(
        CUDARuntimeError("cudaErrorNoDevice: no CUDA-capable device is detected"),
        True,
        DeviceFaultError,
        "restart the machine",
    ),
    "memory": Said(
        CUDARuntimeError("cudaErrorMemoryAllocation: out of memory"), False, OutOfMemoryError, "run a smaller network"
    ),
    "numba's memory": Said(
        CudaAPIError("[2] Call to cuMemAlloc results in CUDA_ERROR_OUT_OF_MEMORY"),
        False,
        OutOfMemoryError,
        "run a smaller network",
    ),
}
"""Answers of a driver, as its users pass them on."""

_RUNTIME = ("memory_info", "allocate", "upload", "download", "fill", "pinned", "mapped", "stream", "event", "launch")
_RUNTIME += ("close",)
_STREAM = ("wait", "synchronize", "finished")
_EVENT = ("record", "synchronize")


class Seam:
    """Counts the calls of a device, and answers the call number ``fails_at`` (from 1; 0: none) as ``said``.

    ``in_use``: the calls before the engine was closed.
    """

    def __init__(self, fails_at: int = 0, said: Said = SAID["launch"]) -> None:
        self.calls, self.in_use, self._fails_at, self._said = 0, 0, fails_at, said

    def __call__(self) -> None:
        """A call is about to be made."""
        self.calls += 1
        if self._fails_at and (self.calls == self._fails_at or (self._said.lasting and self.calls > self._fails_at)):
            raise self._said.error.with_traceback(None)


@contextmanager
def planted(seam: Seam) -> Iterator[None]:
    """Within it every call of a device goes through ``seam``."""
    runtime = open_device(0)
    owners = (type(runtime), _RUNTIME), (type(runtime.stream()), _STREAM), (type(runtime.event()), _EVENT)
    with ExitStack() as patches:
        for owner, names in owners:
            for name in names:
                patches.enter_context(mock.patch.object(owner, name, _through(seam, getattr(owner, name))))
        yield


def _through(seam: Seam, method: Callable[..., object]) -> Callable[..., object]:
    @functools.wraps(method)
    def asked(*arguments: object, **named: object) -> object:
        seam()
        return method(*arguments, **named)

    return asked


@dataclass(frozen=True, eq=False)
class Subject:
    """An engine to be made, its network and its input."""

    create: CreateEngine
    network: Network
    options: EngineOptions
    plan: StimulusPlan


def ring(create: CreateEngine = cuda_engine) -> Subject:
    """A ring of a few neurons, run in batches of two bursts."""
    network, plan = all_fire(5)
    return Subject(create, network, EngineOptions(cuda=CudaOptions(batch_length=2)), plan)


def _use(subject: Subject, seam: Seam, answer: Callable[[BurstproofError], object]) -> None:
    """A life of an engine: batches, steps, a state there and back, other weights, a closed loop, the end.

    Each part is asked for even if one before it failed, as a careless caller would; ``answer`` gets the errors.
    """
    try:
        engine = subject.create(subject.network, subject.options)
    except BurstproofError as error:
        answer(error)
        return
    state = ReferenceEngine.create(subject.network, subject.options).state()
    others = replace(state, weights=np.arange(1, 1 + len(state.weights), dtype=np.float32))

    def loop() -> None:
        with engine.closed_loop() as turns:
            turns.step(forced=np.array([1], np.uint32))
            turns.step()

    parts: tuple[Callable[[], object], ...] = (
        lambda: engine.run(5, subject.plan),
        engine.step,
        engine.state,
        lambda: engine.restore(others),
        lambda: engine.run(3),
        loop,
        engine.state,
    )
    for part in parts:
        try:
            part()
        except InputError as error:
            if "closed" not in str(error):
                raise
        except BurstproofError as error:
            answer(error)
    seam.in_use = seam.calls
    engine.close()


def seam_calls(subject: Subject) -> int:
    """Calls of a device in the life of an engine."""
    seam = Seam()
    with planted(seam):
        _use(subject, seam, lambda error: None)
    return seam.calls


def failing_at(number: int, said: Said, subject: Subject) -> list[str]:
    """What is wrong where the call ``number`` of a device fails: an error is the package's own and states the cure.

    Nothing may be said only where the engine was being closed.
    """
    found: list[BurstproofError] = []
    seam = Seam(number, said)
    where = f"call {number}: "
    try:
        with planted(seam):
            _use(subject, seam, found.append)
    except Exception as error:
        return [f"{where}{type(error).__name__}: {error}"]
    silent = [f"{where}{said.error}: nothing was said"] * (not found and number <= seam.in_use)
    return silent + [where + problem for error in found for problem in said.problems(error)]


def failing_everywhere(kind: str, subject: Subject, every: int = 1) -> list[str]:
    """Answer ``kind`` at each ``every``-th call of a device; then the next engine, which agrees with the reference."""
    problems, last = [], seam_calls(subject)
    for number in range(1, last + 1, every):
        problems += [f"{kind}, {problem}" for problem in failing_at(number, SAID[kind], subject)]
    return problems + _next_run(subject)


def _next_run(subject: Subject) -> list[str]:
    return runs_differ(subject.network, subject.options, 3, dict(subject.plan))


def failing_device() -> list[str]:
    """What a driver says of a device that fails: in the middle and when it is opened, each kind of answer."""
    subject = ring()
    middle = seam_calls(subject) // 2
    problems = [p for said in SAID.values() for number in (1, middle) for p in failing_at(number, said, subject)]
    return problems + _next_run(subject)


def device_lost_at_any_call() -> list[str]:
    """A device that is lost, at any call of an engine's life and from then on."""
    return failing_everywhere("lost", ring())


def memory_out_at_any_call() -> list[str]:
    """Memory that runs out once, at any call of an engine's life."""
    return failing_everywhere("memory", ring())


def device_lost_under_shards() -> list[str]:
    """A device that is lost while shards exchange what fired."""
    return failing_everywhere("launch", ring(lambda network, options: sharded(network, options, 2, "contiguous")), 5)


def device_lost_while_growing() -> list[str]:
    """A device that is lost under a network in which neurons appear."""
    held = recording("features/mem1_11")
    return failing_everywhere("context", Subject(cuda_engine, held.network, EngineOptions(), held.plan), 29)


def failing_command() -> list[str]:
    """``burstproof run`` on a device that is lost: exit code 3, one message with the cure; then the run works."""
    from burstproof.cli.main import main

    facts = CudaFacts(None, (CudaDevice(0, "a device", (9, 0), 1 << 36),), (12, 9), (12, 9))
    genome = Path(__file__).parents[2] / "data/golden/genomes/barebones_genome.json"
    arguments = ["run", str(genome), "--bursts", "4", "--backend", "cuda"]
    problems = []
    with mock.patch("burstproof.cli.run.this_machine", return_value=Machine(2, facts)):
        for said in (*SAID.values(), None):
            told = io.StringIO()
            quiet = contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(told)
            with quiet[0], quiet[1], planted(Seam(30 if said else 0, said or SAID["lost"])):
                code = main(arguments)
            expected = ExitCode.INVALID_ENVIRONMENT if said else ExitCode.PASS
            problems += [f"{said and said.error}: exit code {code}, {told.getvalue()}"] * (code != expected)
            if said and (said.cure not in told.getvalue() or "Traceback" in told.getvalue()):
                problems.append(f"{said.error}: {told.getvalue()}")
    return problems


def restore_without_memory() -> list[str]:
    """A state that needs the network packed again, for which no memory is left: an error, and a closed engine."""
    network = Network(NeuronTable.build(3), SynapseTable.build([0, 1], [1, 2]))
    engine = cuda_engine(network, EngineOptions())
    state = replace(engine.state(), weights=np.array([1, 2], np.float32))
    problems = []
    with mock.patch.object(type(open_device(0)), "allocate", side_effect=OutOfMemoryError("no arena")):
        try:
            engine.restore(state)
            problems.append("no error")
        except OutOfMemoryError:
            pass
    try:
        engine.run(1)
        problems.append("the engine went on")
    except InputError as error:
        problems += [] if "closed" in str(error) else [str(error)]
    return problems


FAILING = {
    "device lost at any call": device_lost_at_any_call,
    "device lost under shards": device_lost_under_shards,
    "device lost while growing": device_lost_while_growing,
    "failing command": failing_command,
    "failing device": failing_device,
    "memory out at any call": memory_out_at_any_call,
    "restore without memory": restore_without_memory,
}
"""Checks by name."""
