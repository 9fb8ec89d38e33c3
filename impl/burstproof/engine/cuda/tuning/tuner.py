"""Autotuner: measures launch configurations on the device and the network at hand, and keeps the best (BE-12).

Each candidate runs in an engine of its own, from the network's state. The candidates do the same bursts in turns, so a
drift of the clock affects all of them alike. At the end all states must be equal. The engine's own choice stays unless
another one is faster by more than the noise, twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from burstproof.device.host_memory import available_host_bytes
from burstproof.engine.cuda.plan.block_size import default_block_size
from burstproof.engine.cuda.plan.buffers import default_batch_length
from burstproof.engine.cuda.tuning.cache import Launch, Tuned, load, save, tuning_key
from burstproof.engine.options import EngineOptions
from burstproof.engine.protocol import Engine
from burstproof.engine.state import EngineState, Record, Stimulus
from burstproof.errors import EnvironmentInvalidError, OutOfMemoryError
from burstproof.network.model import Network
from burstproof.user_cache import cache_folder

ROUNDS = 15
MOST_AT_ONCE = 6
"""Most engines that are measured in turns with each other, if memory allows."""

LEAST_GAIN = 0.02
"""Fraction by which a candidate must beat the engine's own choice, whatever the noise."""

_BLOCKS = (128, 256, 512, 1024)
_LONGEST_BATCH = 1024
_FORCED_FRACTION = 0.01
_SAMPLE_S = 0.02
_FEWEST_BURSTS, _MOST_BURSTS = 32, 4000
_HOST_BYTES_PER_SYNAPSE = 8
_DEVIATIONS = 3.0
_MAD_TO_SIGMA = 1.4826
_MEDIAN_ERROR = 1.2533
"""Standard error of a median over that of a mean, for normal samples."""


def notes_launch(neurons: int) -> Launch:
    """The design notes' defaults by size class: 128, 256 or 512 threads, and the most streams that they name."""
    streams = 4 if neurons < 100_000 else 8 if neurons <= 1_000_000 else 16
    return Launch(default_block_size(neurons), 0, streams)


def block_candidates(default: Launch, neurons: int) -> tuple[Launch, ...]:
    """The default first, then the notes' launch, then every other block size."""
    blocks = [replace(default, block_size=block) for block in _BLOCKS]
    return tuple(dict.fromkeys([default, notes_launch(neurons), *blocks]))


def batch_candidates(default: Launch, winner: Launch, neurons: int) -> tuple[Launch, ...]:
    """The default first, then the winning block size with its own batch length, a quarter of it, and four times it."""
    length = winner.batch_length or default_batch_length(neurons)
    lengths = (max(1, length // 4), min(4 * length, _LONGEST_BATCH))
    return tuple(dict.fromkeys([default, winner, *(replace(winner, batch_length=n) for n in lengths)]))


class Runner(Protocol):
    """A candidate that is measured."""

    def sample(self) -> float:
        """Run the next bursts, the same ones for every candidate, and return microseconds per burst."""

    def state(self) -> EngineState:
        """The state after the bursts that were run."""

    def close(self) -> None:
        """Give the device's memory back."""


OpenRunner = Callable[[Launch], Runner]


@dataclass(frozen=True, eq=False)
class Comparison:
    """The default's median in microseconds per burst, and the ratio of each candidate's time to its, by round."""

    default_us: float
    ratios: Mapping[Launch, npt.NDArray[np.float64]]

    def median_us(self, launch: Launch) -> float:
        """Median of a candidate, corrected for drifts of the machine."""
        return self.default_us * float(np.median(self.ratios[launch]))


def compare(
    candidates: Sequence[Launch], open_runner: OpenRunner, rounds: int = ROUNDS, at_once: int = MOST_AT_ONCE
) -> Comparison:
    """Compare ``candidates``, of which the first is the default, with at most ``at_once`` in memory at a time.

    A candidate that does not fit beside the default is left out.

    Raises
    ------
    OutOfMemoryError
        Not even the default fits.
    EnvironmentInvalidError
        A candidate's state differs from the default's after the same bursts.
    """
    default, *others = candidates
    step = max(1, at_once - 1)
    groups = [others[start : start + step] for start in range(0, len(others), step)] or [[]]
    ratios: dict[Launch, npt.NDArray[np.float64]] = {}
    times_us: list[float] = []
    for group in groups:
        samples = _measure([default, *group], open_runner, rounds)
        times_us += samples[default]
        ratios |= {launch: np.array(values) / np.array(samples[default]) for launch, values in samples.items()}
    return Comparison(float(np.median(times_us)), ratios)


def _measure(candidates: Sequence[Launch], open_runner: OpenRunner, rounds: int) -> dict[Launch, list[float]]:
    """Samples of the candidates that fit into memory, taken in turns."""
    with ExitStack() as stack:
        runners: dict[Launch, Runner] = {}
        for launch in candidates:
            try:
                runners[launch] = stack.enter_context(closing(open_runner(launch)))
            except OutOfMemoryError:
                if not runners:
                    raise
        for runner in runners.values():
            runner.sample()
        samples: dict[Launch, list[float]] = {launch: [] for launch in runners}
        order = list(runners)
        for number in range(rounds):
            for launch in order if number % 2 == 0 else reversed(order):
                samples[launch].append(runners[launch].sample())
        _check_states(runners)
    return samples


def _check_states(runners: Mapping[Launch, Runner]) -> None:
    default, *others = runners
    expected = runners[default].state()
    for launch in others:
        different = runners[launch].state().differences(expected)
        if different:
            raise EnvironmentInvalidError(
                "launch configurations give different results",
                where=str(launch),
                got=", ".join(different),
                cure="Run without the autotuner, and report this with the network",
            )


def fastest(comparison: Comparison, default: Launch) -> Launch:
    """The launch with the lowest median, if it beats ``default`` by more than the noise of the rounds."""
    best = min(comparison.ratios, key=comparison.median_us)
    ratios = comparison.ratios[best]
    middle = float(np.median(ratios))
    sigma = _MAD_TO_SIGMA * float(np.median(np.abs(ratios - middle)))
    noise = _DEVIATIONS * _MEDIAN_ERROR * sigma / np.sqrt(len(ratios))
    return best if 1.0 - middle > max(LEAST_GAIN, noise) else default


def tune(
    default: Launch, neurons: int, open_runner: OpenRunner, rounds: int = ROUNDS, at_once: int = MOST_AT_ONCE
) -> Tuned:
    """Compare block sizes, then batch lengths of the best one, both against ``default``, which wins ties."""
    blocks = compare(block_candidates(default, neurons), open_runner, rounds, at_once)
    winner = fastest(blocks, default)
    batches = compare(batch_candidates(default, winner, neurons), open_runner, rounds, at_once)
    chosen = fastest(batches, default)
    notes = notes_launch(neurons)
    notes_us = blocks.median_us(notes) if notes in blocks.ratios else None
    return Tuned(chosen, blocks.default_us, notes_us, blocks.default_us * float(np.median(batches.ratios[chosen])))


@dataclass(frozen=True, eq=False)
class EngineRunner:
    """A candidate's engine. A sample forces 1 % of the neurons in one burst, then times ``bursts`` more."""

    engine: Engine
    forced: Stimulus
    bursts: int

    def sample(self) -> float:
        """See ``Runner.sample``."""
        self.engine.run(1, {self.engine.burst_count + 1: self.forced}, Record.NONE)
        start = time.perf_counter()
        self.engine.run(self.bursts, record=Record.NONE)
        return 1e6 * (time.perf_counter() - start) / self.bursts

    def state(self) -> EngineState:
        """See ``Runner.state``."""
        return self.engine.state()

    def close(self) -> None:
        """See ``Runner.close``."""
        self.engine.close()


def _forced(network: Network) -> Stimulus:
    valid = np.flatnonzero(network.neurons.valid_mask).astype(np.uint32)
    count = max(1, int(_FORCED_FRACTION * len(valid))) if len(valid) else 0
    return Stimulus(forced=np.sort(np.random.default_rng(0).choice(valid, count, replace=False)))


class _Opener:
    """Opens engines over one network; the first one sets the number of bursts in a sample for all of them."""

    def __init__(self, network: Network, options: EngineOptions, create: Callable[[Network, EngineOptions], Engine]):
        self._network, self._options, self._create = network, options, create
        self._forced = _forced(network)
        self._bursts = 0

    def __call__(self, launch: Launch) -> EngineRunner:
        engine = self._create(self._network, with_launch(self._options, launch))
        if not self._bursts:
            start_state = engine.state()
            trial = EngineRunner(engine, self._forced, _FEWEST_BURSTS)
            trial.sample()
            wanted = _SAMPLE_S * 1e6 / trial.sample()
            self._bursts = int(np.clip(wanted, _FEWEST_BURSTS, _MOST_BURSTS))
            engine.restore(start_state)
        return EngineRunner(engine, self._forced, self._bursts)


def _engines_at_once(network: Network) -> int:
    """Engines whose packed networks together take at most half of the host's free memory, at least two."""
    free = available_host_bytes()
    each = _HOST_BYTES_PER_SYNAPSE * max(1, network.synapse_count)
    return MOST_AT_ONCE if free is None else max(2, min(MOST_AT_ONCE, free // 2 // each))


def with_launch(options: EngineOptions, launch: Launch) -> EngineOptions:
    """``options`` with ``launch``, and without the autotuner."""
    return replace(options, cuda=replace(options.cuda, **asdict(launch), autotune=False))


def tuned_launch(
    network: Network,
    options: EngineOptions,
    create: Callable[[Network, EngineOptions], Engine],
    device: str,
    driver: str,
    folder: Path | None = None,
    rounds: int = ROUNDS,
) -> Tuned:
    """The launch for ``network`` on a device: from ``folder`` (the user's cache), or measured and put there.

    Parameters
    ----------
    create
        Makes an engine over the network with the options given to it.
    device, driver
        Name of the device and version of its driver: a kept choice is valid for these alone.

    Raises
    ------
    OutOfMemoryError
        The network does not fit on the device.
    EnvironmentInvalidError
        Launch configurations give different results.
    """
    folder = folder or cache_folder()
    key = tuning_key(network, options, device, driver)
    found = load(folder, key)
    if found is None:
        opener = _Opener(network, options, create)
        found = tune(Launch.of(options.cuda), network.neuron_count, opener, rounds, _engines_at_once(network))
        save(folder, key, found)
    return found
