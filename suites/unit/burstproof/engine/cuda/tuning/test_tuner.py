"""The autotuner's judgement on made-up timings, and its cache (BE-12)."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from burstproof.engine.cuda.tuning.cache import Tuned, kept, load, save, tuning_key
from burstproof.engine.cuda.tuning.tuner import (
    Launch,
    block_candidates,
    compare,
    fastest,
    notes_launch,
    tune,
    tuned_launch,
    with_launch,
)
from burstproof.engine.options import CudaOptions, EngineOptions
from burstproof.engine.reference import ReferenceEngine
from burstproof.engine.state import EngineState
from burstproof.errors import EnvironmentInvalidError, OutOfMemoryError
from burstproof.network.model import Network
from burstproof.network.synthetic.build import synthesize
from suites.support.bench.rows import Row

pytestmark = pytest.mark.requirement("BE-12")

DEFAULT = Launch(0, 0, 4)
NEURONS = 300_000
SMALL = Row(2000, 0.1)
Cost = Callable[[Launch], float]


@pytest.fixture(scope="module")
def network() -> Network:
    return synthesize(SMALL.spec)


@pytest.fixture(scope="module")
def states(network: Network) -> tuple[EngineState, EngineState]:
    """A state, and one that differs from it."""
    state = ReferenceEngine.create(network).state()
    return state, replace(state, membrane_potentials=state.membrane_potentials + np.float32(1))


class FakeRunner:
    """Takes ``cost`` with noise; counts how many are open at a time."""

    most_open = now_open = 0

    def __init__(self, cost: float, noise: float, state: EngineState, seed: int) -> None:
        self._cost, self._noise, self._state = cost, noise, state
        self._rng = np.random.default_rng(seed)
        FakeRunner.now_open += 1
        FakeRunner.most_open = max(FakeRunner.most_open, FakeRunner.now_open)

    def sample(self) -> float:
        return self._cost * float(self._rng.normal(1.0, self._noise))

    def state(self) -> EngineState:
        return self._state

    def close(self) -> None:
        FakeRunner.now_open -= 1


def opener(states: tuple[EngineState, EngineState], cost: Cost, noise: float = 0.01) -> Callable[[Launch], FakeRunner]:
    """Fakes whose cost depends on the launch."""
    FakeRunner.most_open = FakeRunner.now_open = 0
    return lambda launch: FakeRunner(cost(launch), noise, states[0], abs(hash(launch)) % 1000)


def test_the_notes_defaults_follow_the_size_class() -> None:
    assert [notes_launch(n) for n in (50_000, 500_000, 5_000_000)] == [
        Launch(128, 0, 4),
        Launch(256, 0, 8),
        Launch(512, 0, 16),
    ]


def test_a_faster_block_and_train_are_found(states: tuple[EngineState, EngineState]) -> None:
    def cost(launch: Launch) -> float:
        return {0: 10.0, 256: 9.0, 512: 8.0}.get(launch.block_size, 12.0) - (launch.batch_length == 256)

    tuned = tune(DEFAULT, NEURONS, opener(states, cost))
    assert tuned.launch == Launch(512, 256, 4)
    assert tuned.default_us == pytest.approx(10.0, rel=0.02)
    assert tuned.notes_us == pytest.approx(9.0, rel=0.03)
    assert tuned.tuned_us == pytest.approx(7.0, rel=0.03)
    assert FakeRunner.now_open == 0


@pytest.mark.parametrize(
    ("gain", "noise", "most_wins", "least_wins"),
    [(0.0, 0.01, 0, 0), (0.0, 0.1, 4, 0), (0.015, 0.001, 0, 0), (0.05, 0.01, 200, 196)],
)
def test_the_default_wins_ties(
    states: tuple[EngineState, EngineState], gain: float, noise: float, most_wins: int, least_wins: int
) -> None:
    """200 comparisons each of equal candidates, of a gain too small to matter, and of a gain of 5 %."""
    other, seeds = Launch(512, 0, 4), iter(range(400))

    def open_runner(launch: Launch) -> FakeRunner:
        return FakeRunner(10.0 * (1.0 - gain * (launch == other)), noise, states[0], next(seeds))

    wins = sum(fastest(compare([DEFAULT, other], open_runner), DEFAULT) == other for _ in range(200))
    assert least_wins <= wins <= most_wins


def test_memory_bounds_how_many_are_compared_at_once(states: tuple[EngineState, EngineState]) -> None:
    candidates = block_candidates(DEFAULT, NEURONS)
    comparison = compare(candidates, opener(states, lambda launch: 10.0), at_once=2)
    assert set(comparison.ratios) == set(candidates)
    assert FakeRunner.most_open == 2


def test_a_candidate_that_does_not_fit_is_left_out(states: tuple[EngineState, EngineState]) -> None:
    fits = opener(states, lambda launch: 10.0)

    def open_some(launch: Launch) -> FakeRunner:
        if launch.block_size in (256, 1024):
            raise OutOfMemoryError("does not fit")
        return fits(launch)

    tuned = tune(DEFAULT, NEURONS, open_some)
    assert tuned.launch == DEFAULT
    assert tuned.notes_us is None

    def open_none(launch: Launch) -> FakeRunner:
        raise OutOfMemoryError("does not fit")

    with pytest.raises(OutOfMemoryError):
        tune(DEFAULT, NEURONS, open_none)


def test_other_results_are_an_error(states: tuple[EngineState, EngineState]) -> None:
    def open_runner(launch: Launch) -> FakeRunner:
        return FakeRunner(1.0, 0.01, states[launch.block_size == 512], 0)

    with pytest.raises(EnvironmentInvalidError, match="different results"):
        compare([DEFAULT, Launch(256, 0, 4), Launch(512, 0, 4)], open_runner)


@pytest.mark.thorough("seconds")
def test_a_choice_is_measured_once_and_then_kept(network: Network, tmp_path: Path) -> None:
    """Real engines of the reference, for which no launch matters: all agree, nothing beats the default twice."""
    made: list[EngineOptions] = []

    def create(what: Network, options: EngineOptions) -> ReferenceEngine:
        made.append(options)
        return ReferenceEngine.create(what, options)

    options = EngineOptions(cuda=CudaOptions(autotune=True))
    first = tuned_launch(network, options, create, "card", "13.0", tmp_path, rounds=2)
    assert len(made) >= 6
    assert not any(one.cuda.autotune for one in made)
    count = len(made)
    again = tuned_launch(network, options, create, "card", "13.0", tmp_path, rounds=2)
    assert again == replace(first, cached=True)
    assert len(made) == count
    assert tuned_launch(network, options, create, "other card", "13.0", tmp_path, rounds=2).cached is False
    assert [item["key"]["device"] for item in kept(tmp_path)].count("other card") == 1
    chosen = with_launch(options, first.launch).cuda
    assert not chosen.autotune
    assert Launch.of(chosen) == first.launch


def test_the_key_tells_networks_and_options_apart(network: Network) -> None:
    options = EngineOptions()
    base = tuning_key(network, options, "card", "13.0")
    others = [
        tuning_key(network, options, "card", "12.8"),
        tuning_key(network, EngineOptions(cuda=CudaOptions(graphs=False)), "card", "13.0"),
        tuning_key(network.replace(neurons=replace(network.neurons)), options, "card", "13.0"),
    ]
    assert [key == base for key in others] == [False, False, True]


def _damaged_key(**values: object) -> Callable[[str], str]:
    def damaged(text: str) -> str:
        document = json.loads(text)
        return json.dumps({**document, "key": {**document["key"], **values}})

    return damaged


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: "",
        lambda text: text[: len(text) // 2],
        lambda text: text.replace('"block_size": 512', '"block_size": "many"'),
        lambda text: text.replace('"tuned_us": 8.0', '"tuned_us": -1.0'),
        lambda text: text.replace('"device": "card"', '"device": "another"'),
        lambda text: text.replace('"tuned_us": 8.0', '"tuned_us": 1e999'),
        lambda text: text.replace('"block_size": 512', '"block_size": 1' + "0" * 5000),
        lambda text: "[]",
        lambda text: "[" * 60_000,
        lambda text: text + " " * 2**16,
        _damaged_key(device=1),
        _damaged_key(neurons="many"),
        _damaged_key(more=[]),
    ],
)
def test_a_damaged_file_is_ignored_with_a_warning(
    network: Network, tmp_path: Path, damage: Callable[[str], str]
) -> None:
    key = tuning_key(network, EngineOptions(), "card", "13.0")
    tuned = Tuned(Launch(512, 0, 4), 10.0, None, 8.0)
    save(tmp_path, key, tuned)
    assert load(tmp_path, key) == replace(tuned, cached=True)
    (path,) = tmp_path.iterdir()
    before = path.read_text(encoding="utf-8")
    path.write_text(damage(before), encoding="utf-8")
    assert path.read_text(encoding="utf-8") != before
    with pytest.warns(UserWarning, match="measured anew"):
        assert load(tmp_path, key) is None
    assert [item["key"]["device"] for item in kept(tmp_path)] in ([], ["another"])


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
@pytest.mark.parametrize("put", [os.mkfifo, Path.mkdir, lambda path: path.symlink_to("/dev/zero")])
def test_what_is_no_file_is_ignored_without_waiting(
    network: Network, tmp_path: Path, put: Callable[[Path], object]
) -> None:
    key = tuning_key(network, EngineOptions(), "card", "13.0")
    save(tmp_path, key, Tuned(DEFAULT, 1.0, 1.0, 1.0))
    (path,) = tmp_path.iterdir()
    path.unlink()
    put(path)
    with pytest.warns(UserWarning, match="measured anew"):
        assert load(tmp_path, key) is None
    assert kept(tmp_path) == []


def test_without_a_home_no_choice_is_kept(network: Network) -> None:
    key = tuning_key(network, EngineOptions(), "card", "13.0")
    with pytest.warns(UserWarning, match="not kept: this user has no home folder. Set XDG_CACHE_HOME"):
        save(None, key, Tuned(DEFAULT, 1.0, 1.0, 1.0))
    assert load(None, key) is None
    assert kept(None) == []


def test_a_folder_that_cannot_be_written_is_no_error(network: Network, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    key = tuning_key(network, EngineOptions(), "card", "13.0")
    with pytest.warns(UserWarning, match="not kept"):
        save(tmp_path / "file" / "folder", key, Tuned(DEFAULT, 1.0, 1.0, 1.0))
    assert json.loads(json.dumps(key)) == key
