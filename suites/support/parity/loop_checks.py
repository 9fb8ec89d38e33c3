"""Checks of closed loops, in the simulator or on a device; those of ``simulator_check`` begin with ``check_``."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from unittest import mock

import numpy as np

from burstproof.engine.closed_loop import ClosedLoop
from burstproof.engine.options import CudaOptions, EngineOptions
from burstproof.engine.protocol import Engine
from burstproof.engine.reference import ReferenceEngine
from burstproof.engine.state import Stimulus
from burstproof.errors import DeviceFaultError, InputError, StimulusError
from burstproof.network.model import Network, NeuronTable, SynapseTable
from suites.support.parity.batch_checks import cuda_engine
from suites.support.parity.builder import CreateEngine
from suites.support.parity.mixed import MIXES, Mix, mixed_network, mixed_options, mixed_plan
from suites.support.parity.recordings import recording

STAYING = ("integers, all excitatory", "fractions, delays to 7", "neither draws nor limits")
"""Mixes whose bursts are one kernel, which then stays on the device."""
_STEPS = 9


def small(name: str, bursts: int = _STEPS) -> Mix:
    """The mix of that name with what the simulator does in a second."""
    return replace(next(mix for mix in MIXES if mix.name == name), neurons=40, synapses=300, bursts=bursts)


def loop_differs(mix: Mix, create: CreateEngine) -> list[str]:
    """What is wrong with a loop over the bursts of ``mix``, beside the reference.

    In the middle the engine is asked for its state, does a step and a run of its own, and takes its state back.
    """
    network, options = mixed_network(mix), mixed_options(mix)
    plan, problems = mixed_plan(mix, network), list[str]()
    reference, engine = ReferenceEngine.create(network, options), create(network, options)
    middle, outputs = mix.bursts // 2, np.arange(0, network.neuron_count, 3, dtype=np.uint32)

    def both(loop: ClosedLoop, bursts: int, chosen: np.ndarray | None = None) -> None:
        for _ in range(bursts):
            given = plan.get(reference.burst_count + 1, Stimulus())
            want, got = reference.step(given).fired_ids, loop.step(given.ids, given.amounts, given.forced)
            want = want if chosen is None else np.intersect1d(want, chosen)
            if got.dtype != np.uint32 or not np.array_equal(want, got):
                problems.append(f"burst {reference.burst_count}: {want.tolist()}, got {got.tolist()}")
            if engine.burst_count != reference.burst_count:
                problems.append(f"burst {reference.burst_count}: the engine says {engine.burst_count}")

    def states(where: str) -> None:
        problems.extend(f"{where}: {name}" for name in reference.state().differences(engine.state()))

    with engine:
        with engine.closed_loop() as loop, engine.closed_loop(outputs) as other:
            both(loop, middle)
            states("in the loop")
            both(other, 2, outputs)
            both(loop, 1)
            alone = reference.step().fired_ids
            problems += [] if np.array_equal(alone, engine.step().fired_ids) else ["a step within the loop"]
            both(loop, 1)
            engine.restore(reference.state())
            both(loop, mix.bursts - middle)
        states("after the loop")
        if not np.array_equal(reference.run(2).fired_ids, engine.run(2).fired_ids):
            problems.append("a run after the loop")
        states("after a run")
    return problems


def check_closed_loop() -> list[str]:
    """Loops of a kernel that stays, with delays and packed sums; and plain ones, of bursts in several kernels."""

    def packed(network: Network, options: EngineOptions) -> Engine:
        return cuda_engine(network, replace(options, cuda=CudaOptions(sum_bits=8)))

    problems = []
    for name in STAYING:
        problems += [f"{name}: {problem}" for problem in loop_differs(small(name), cuda_engine)]
    problems += [f"packed sums: {problem}" for problem in loop_differs(small(STAYING[0]), packed)]
    problems += [f"plastic: {problem}" for problem in loop_differs(small("plastic, window 1", 4), cuda_engine)]
    with mock.patch("burstproof.engine.cuda.kernels.closed_loop._SMALL_BLOCK", 0):
        problems += [f"in parts: {problem}" for problem in loop_differs(small(STAYING[1]), cuda_engine)]
    return problems


def check_closed_loop_with_recalled_lists() -> list[str]:
    """Delays on the sender's side: lists of the last bursts are read again in a phase that all blocks take part in."""
    from burstproof.engine.cuda.plan.packed import pack_network

    mix, tiles = small("fractions, delays to 7"), "burstproof.engine.cuda.plan.sizing"
    with mock.patch(f"{tiles}._RING_BYTES", 0), mock.patch(f"{tiles}._CALENDAR_BYTES", 0):
        recalled = pack_network(mixed_network(mix), mixed_options(mix)).variant.recalled
        return ([] if recalled else ["nothing is recalled"]) + loop_differs(mix, cuda_engine)


def check_closed_loop_with_a_calendar() -> list[str]:
    """What arrives later than in the next burst waits in a calendar from call to call, also in one in tiles."""
    from burstproof.engine.cuda.plan.packed import pack_network

    mix, tiles, problems = small("fractions, delays to 7"), "burstproof.engine.cuda.plan.sizing", list[str]()
    for untiled in (1 << 20, 64):
        with (
            mock.patch(f"{tiles}._RING_BYTES", 0),
            mock.patch(f"{tiles}._UNTILED_BYTES", untiled),
            mock.patch(f"{tiles}._TILE_BYTES", 400),
        ):
            variant = pack_network(mixed_network(mix), mixed_options(mix)).variant
            if not variant.calendar or (variant.calendar_tiles > 1) is not (untiled == 64):
                problems.append(f"{variant.calendar} buckets of {variant.calendar_tiles} tiles")
            problems += loop_differs(mix, cuda_engine)
    return problems


def _plain_steps(name: str) -> list[str]:
    """What is wrong with a loop over the network of a recording, whose bursts do not stay on the device."""
    trace = recording(f"features/{name}")
    reference, engine = ReferenceEngine.create(trace.network), cuda_engine(trace.network, EngineOptions())
    problems = []
    with engine, engine.closed_loop() as loop:
        for number in trace.bursts.tolist()[:_STEPS]:
            given = trace.plan.get(number, Stimulus())
            given = Stimulus(given.ids, given.amounts, given.forced)
            want = reference.step(given).fired_ids
            if not np.array_equal(want, loop.step(given.ids, given.amounts, given.forced)):
                problems.append(f"{name}, burst {number}: a fired list")
        problems += reference.state().differences(engine.state())
    return problems


def check_closed_loop_with_features() -> list[str]:
    """A genome's features take several kernels a burst, or the host: such loops are ones of plain steps."""
    return _plain_steps("neuro_11") + _plain_steps("mem1_11") + _plain_steps("assoc_11")


def check_closed_loop_with_long_rows() -> list[str]:
    """Rows that go in pieces to a phase of their own, which all blocks take part in."""
    rng = np.random.default_rng(5)
    sources = np.repeat(np.arange(6), [1500, 0, 1025, 1024, 5, 1100])
    synapses = SynapseTable.build(sources, rng.integers(0, 50, len(sources)), weights=rng.integers(1, 4, len(sources)))
    network = Network(NeuronTable.build(50, thresholds=20.0), synapses)
    reference, engine = ReferenceEngine.create(network), cuda_engine(network, EngineOptions())
    forced, problems = np.arange(6, dtype=np.uint32), []
    with engine, engine.closed_loop() as loop:
        for _ in range(3):
            want = reference.step(Stimulus(forced=forced)).fired_ids
            problems += [] if np.array_equal(want, loop.step(forced=forced)) else ["a fired list"]
        problems += reference.state().differences(engine.state())
    return problems


def check_closed_loop_with_many_amounts() -> list[str]:
    """Amounts beside the call and behind it, of both widths, in calls that follow calls with more and with fewer."""
    problems, rng = [], np.random.default_rng(6)
    for share in (1.0, 0.1):
        sources, targets = rng.integers(0, 300, (2, 900))
        synapses = SynapseTable.build(sources, targets, weights=share)
        network = Network(NeuronTable.build(300, thresholds=4.0, leak_coefficients=0.5), synapses)
        options = EngineOptions(fractional_stimulus=share < 1)
        reference, engine = ReferenceEngine.create(network, options), cuda_engine(network, options)
        if (engine.fixed_point.bits == 64) != (share < 1):
            problems.append(f"{share}: sums of {engine.fixed_point.bits} bits")
        with engine, engine.closed_loop() as loop:
            for amounts in (0, 31, 33, 0, 1, 299, 32, 5, 5, 200, 2):
                ids = np.sort(rng.choice(300, amounts, replace=False)).astype(np.uint32)
                given = Stimulus(ids, rng.integers(-2, 7, amounts).astype(np.float32))
                if not np.array_equal(reference.step(given).fired_ids, loop.step(given.ids, given.amounts)):
                    problems.append(f"{share}: {amounts} amounts")
            problems += reference.state().differences(engine.state())
    return problems


def check_closed_loop_refuses() -> list[str]:
    """What is no stimulus is refused as by a step, before the burst; what is one in another form is taken."""
    neurons = NeuronTable.build(30, thresholds=5.0, valid_mask=np.arange(30) != 7)
    network = Network(neurons, SynapseTable.build(np.arange(29), np.arange(1, 30), weights=5.0))
    reference, engine = ReferenceEngine.create(network), cuda_engine(network, EngineOptions())
    wrong: Sequence[tuple[list[int], list[float], list[int]]] = (
        *(([30], [1], []), ([-1], [1], []), ([7], [1], []), ([1, 2], [1], []), ([1], [0.5], []), ([1], [256], [])),
        *(([1], [np.nan], []), ([1], [np.inf], []), ([], [], [30]), ([], [], [7]), ([2, 2], [200, 200], [])),
    )
    right = (([3, 1, 3], [2, 6, 4], [9, 9, 8]), ([], [], []), ([4], [-2], [4]), ([5], [0], []))
    problems = []
    with engine, engine.closed_loop() as loop:
        for ids, amounts, forced in wrong:
            for kinds in ((np.uint32, np.float32), (np.int64, np.float64)):
                given = np.array(ids).astype(kinds[0]), np.array(amounts, kinds[1]), np.array(forced).astype(kinds[0])
                before = engine.burst_count
                try:
                    loop.step(*given)
                    problems.append(f"{given} was taken")
                except StimulusError:
                    problems += [] if engine.burst_count == before else [f"{given} did a burst"]
        for ids, amounts, forced in right:
            for kinds in ((np.uint32, np.float32), (np.int64, np.float64)):
                given = np.array(ids, kinds[0]), np.array(amounts, kinds[1]), np.array(forced, kinds[0])
                if not np.array_equal(reference.step(Stimulus(*given)).fired_ids, loop.step(*given)):
                    problems.append(f"{given}: another list")
        problems += reference.state().differences(engine.state())
        loop.close()
        try:
            loop.step()
            problems.append("a closed loop went on")
        except InputError as error:
            problems += [] if "has ended" in str(error) else [str(error)]
    return problems


def check_closed_loop_of_many() -> list[str]:
    """A call with more than fits into the mail, or a list longer than its replies, is a burst like any other."""
    mix = small(STAYING[0])
    kernel, window = "burstproof.engine.cuda.host.loop_kernel", "burstproof.engine.cuda.host.window"
    with mock.patch(f"{kernel}.MOST_ENTRIES", 3), mock.patch(f"{window}._LARGEST", 4):
        problems = loop_differs(mix, cuda_engine)
    network = Network(NeuronTable.build(40, thresholds=2.0), SynapseTable.build(np.arange(39), np.arange(1, 40)))
    reference, engine = ReferenceEngine.create(network), cuda_engine(network, EngineOptions())
    with mock.patch(f"{kernel}.reply_lines", return_value=1), engine, engine.closed_loop() as loop:
        for forced in (40, 5, 23, 24, 40, 0):
            ids = np.arange(forced, dtype=np.uint32)
            want, got = reference.step(Stimulus(forced=ids)).fired_ids, loop.step(forced=ids)
            problems += [] if np.array_equal(want, got) else [f"{forced} forced: another list"]
    return problems


def check_interrupted_loop() -> list[str]:
    """An exception while a burst is under way: the state is that of ``burst_count``, and the loop goes on."""
    from burstproof.engine.cuda.host.loop_kernel import PersistentKernel

    network, options = mixed_network(small(STAYING[0])), mixed_options(small(STAYING[0]))
    reference, engine = ReferenceEngine.create(network, options), cuda_engine(network, options)
    ids, amounts = np.array([1], np.uint32), np.array([60], np.float32)
    problems, finish = list[str](), PersistentKernel.finish

    def before_the_burst(*_: object) -> None:
        raise KeyboardInterrupt

    def after_the_burst(kernel: PersistentKernel, *arguments: object) -> None:
        finish(kernel, *arguments)
        raise KeyboardInterrupt

    with engine, engine.closed_loop() as loop:
        for moment in (before_the_burst, after_the_burst, before_the_burst):
            engine.state()  # so that the call begins with a launch, which is interrupted
            before = engine.burst_count
            with mock.patch.object(PersistentKernel, "finish", moment):
                try:
                    loop.step(ids, amounts)
                    problems.append("no interruption")
                except KeyboardInterrupt:
                    pass
            done = engine.burst_count - before
            if done != (moment is after_the_burst):
                problems.append(f"{moment.__name__}: {done} bursts")
            for _ in range(done):
                reference.step(Stimulus(ids, amounts))
            problems += [f"{moment.__name__}: {name}" for name in reference.state().differences(engine.state())]
            if not np.array_equal(reference.step(Stimulus(ids, amounts)).fired_ids, loop.step(ids, amounts)):
                problems.append(f"{moment.__name__}: the next burst")
        problems += reference.state().differences(engine.state())
    return problems


def check_restored_in_clamped_loop() -> list[str]:
    """That an amount was clamped is forgotten with the state in which it was."""
    network = Network(NeuronTable.build(3, thresholds=1e9), SynapseTable.build([0, 1], [1, 2]))
    options, ids = EngineOptions(max_stimulus=1e25, fractional_stimulus=True), np.array([0], np.uint32)
    reference, engine = ReferenceEngine.create(network, options), cuda_engine(network, options)
    first, problems = reference.state(), list[str]()
    with engine, engine.closed_loop() as loop:
        for amount in (9e24, 1.0):
            amounts = np.array([amount], np.float32)
            reference.restore(first)
            engine.restore(first)
            reference.step(Stimulus(ids, amounts))
            loop.step(ids, amounts)
            if reference.state().clamped != (amount > 1):
                problems.append(f"{amount} is clamped otherwise")
            problems += [f"{amount}: {name}" for name in reference.state().differences(engine.state())]
    return problems


def check_stuck_loop() -> list[str]:
    """Blocks that lost each other are an error that says so, not an answer."""
    from burstproof.engine.cuda.host.loop_kernel import PersistentKernel
    from burstproof.engine.cuda.kernels.mailbox import STATUS, STUCK

    network, options = mixed_network(small(STAYING[0])), mixed_options(small(STAYING[0]))
    engine, problems = cuda_engine(network, options), list[str]()
    with engine, engine.closed_loop() as loop:
        kernel = engine.enter_loop(loop)  # type: ignore[attr-defined]
        assert isinstance(kernel, PersistentKernel)
        kernel.answers[STATUS] = STUCK
        try:
            loop.step()
            problems.append("no error")
        except DeviceFaultError as error:
            problems += [] if "in vain" in str(error) else [str(error)]
        kernel.answers[STATUS] = 1
    return problems


def check_loop_called_by_two_threads() -> list[str]:
    """While a thread is inside a call, whatever another one asks is refused at once; the call is not disturbed."""
    from burstproof.engine.cuda.host.loop_kernel import PersistentKernel

    network, options = mixed_network(small(STAYING[0])), mixed_options(small(STAYING[0]))
    reference, engine = ReferenceEngine.create(network, options), cuda_engine(network, options)
    ids, amounts = np.array([1], np.uint32), np.array([60], np.float32)
    problems, finish = list[str](), PersistentKernel.finish
    with engine, engine.closed_loop() as loop, engine.closed_loop() as second:
        asked: dict[str, Callable[[], object]] = {
            "the same loop": loop.step,
            "another loop": second.step,
            "a new loop": engine.closed_loop,
            "end of the loop": loop.close,
            "state": engine.state,
            "step": engine.step,
            "run": lambda: engine.run(2),
            "end of the engine": engine.close,
        }

        def in_a_second_thread(kernel: PersistentKernel, found: int, wait: Callable[[], int]) -> int:
            def ask() -> None:
                for name, call in asked.items():
                    try:
                        call()
                        problems.append(f"{name}: taken")
                        return
                    except InputError as error:
                        problems.extend([f"{name}: {error}"] * ("another thread is using the engine" not in str(error)))
                    except BaseException as error:
                        problems.append(f"{name}: {error!r}")

            with mock.patch.object(PersistentKernel, "finish", finish):
                thread = threading.Thread(target=ask, daemon=True)
                thread.start()
                thread.join(60)
            problems.extend(["the second thread waits"] * thread.is_alive())
            return finish(kernel, found, wait)

        with mock.patch.object(PersistentKernel, "finish", in_a_second_thread):
            fired = loop.step(ids, amounts)
        if problems:
            return problems
        if not np.array_equal(reference.step(Stimulus(ids, amounts)).fired_ids, fired):
            problems.append("the call of the first thread")
        for each in (second, loop):  # the lock is free again, for any thread
            found = list[np.ndarray]()
            thread = threading.Thread(target=lambda each=each, found=found: found.append(each.step(ids, amounts)))
            thread.start()
            thread.join(60)
            if not found or not np.array_equal(reference.step(Stimulus(ids, amounts)).fired_ids, found[0]):
                problems.append("a call of the second thread, after the first")
        problems += reference.state().differences(engine.state())
    return problems
