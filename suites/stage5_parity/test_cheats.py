"""Engines that cheat on a real backend: the comparisons or the witness of the timing find each of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from burstproof.engine.options import EngineOptions
from burstproof.engine.protocol import Engine
from burstproof.engine.reference import ReferenceEngine
from burstproof.engine.state import Record, Stimulus
from burstproof.errors import NetworkError
from burstproof.network.model import Network
from burstproof.network.synthetic.build import driven_spec, initial_stimulus, synthesize
from stages.measuring import Measure
from suites.support.bench.steady import ReplacedClockError, Rule
from suites.support.bench.witness import Work, time_witnessed
from suites.support.parity import backends
from suites.support.parity.builder import CreateEngine
from suites.support.parity.cheats import CHEATS, Honest
from suites.support.parity.mixed import MIXES, compare_mix
from suites.support.plans import thinned

pytestmark = [pytest.mark.requirement("BE-4", "SU-5", "ST-5"), pytest.mark.not_proof("BE-4", "ST-5")]

SPEC = driven_spec(1500, 20, 0.05, 11)
OPTIONS = EngineOptions()
MIX = replace(next(mix for mix in MIXES if mix.name == "integers"), bursts=8)
RULE = Rule(warmup=1, min_samples=24, max_samples=24, max_seconds=1.0)
TRAIN = 5
CHOSEN = ("reference", "cpu, 1 thread", "cpu, 2 threads", "cpu, 2 shards", "cuda, graphs, block 256", "wgpu")


def _steps(engine: Engine) -> Work:
    return Work(lambda: len(engine.step().fired_ids))


def _trains(engine: Engine) -> Work:
    def train() -> None:
        engine.run(TRAIN, record=Record.NONE)

    return Work(train, TRAIN)


def _evidence(create: CreateEngine) -> dict[str, tuple[str, ...]]:
    """What the parity comparison and the witness of both kinds of timing say of an engine."""
    found = {"parity": tuple(compare_mix(MIX, create))}
    network = synthesize(SPEC)
    works: dict[str, Callable[[Engine], Work]] = {"steps": _steps, "trains": _trains}
    for name, work in works.items():
        with create(network, OPTIONS) as engine:
            engine.run(40, {1: Stimulus(forced=initial_stimulus(SPEC))})
            judge = ReferenceEngine.create(network, OPTIONS)
            try:
                found[name] = time_witnessed(engine, judge, work(engine), RULE).problems
            except (NetworkError, ReplacedClockError) as error:
                found[name] = (str(error),)
    return found


def _wrapped(backend: backends.Backend, cheat: type[Honest]) -> CreateEngine:
    def create(network: Network, options: EngineOptions) -> Engine:
        return cheat(backend.create(network, options))

    return create


@pytest.mark.measures("parity.cheats_caught", backend=list(CHOSEN), planted=len(CHEATS))
@pytest.mark.parametrize(
    "backend",
    thinned(
        [case for case in backends.ALL if case.id in CHOSEN],
        "seconds of a software adapter",
        keep=lambda _, case: case.id != "wgpu",
    ),
)
def test_every_cheat_is_found(backend: backends.Backend, measure: Measure) -> None:
    """The engine itself, wrapped like the cheats, gives no reason for doubt; each cheat does."""
    assert set().union(*_evidence(_wrapped(backend, Honest)).values()) == set()
    by = {cheat.__name__: _evidence(_wrapped(backend, cheat)) for cheat in CHEATS}
    missed = [name for name, evidence in by.items() if not any(evidence.values())]
    how = "; ".join(f"{name} by {', '.join(k for k, v in evidence.items() if v)}" for name, evidence in by.items())
    share = 100 * (len(by) - len(missed)) / len(by)
    measure("parity.cheats_caught", share, "%", conditions={"backend": backend.name, "planted": len(by)}, note=how)
    assert not missed, f"not found: {', '.join(missed)}"
