"""Random cases on every backend against the reference; planted faults are found and shrunk (``burstproof fuzz``)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from burstproof.cli.main import main
from burstproof.engine.features import growing
from burstproof.engine.options import CudaOptions
from burstproof.engine.reference import ReferenceEngine
from burstproof.engine.replay import replay
from burstproof.engine.trace import read_trace, write_trace
from burstproof.errors import ExitCode, InputError
from burstproof.fuzz.compare import compare, reference_run
from burstproof.fuzz.draw import draw_case
from burstproof.fuzz.shrink import shrink
from burstproof.fuzz.switches import Switches, draw_switches
from suites.support.parity import backends, faults
from suites.support.plans import every, only, thinned

pytestmark = pytest.mark.requirement("BE-4", "BE-17", "ST-5")

CASES = 200
CHUNK = 50
"""Cases of one test."""

NIGHTLY = 10_000

WGPU_CASES = 40
"""A software adapter takes a second for what a core does in a few milliseconds."""

CUDA_FAMILIES, CUDA_VARIANTS = 20, 29
"""Kernels compile for each variant, in seconds; so the cases for CUDA have no more than these."""


PLANTED = (
    faults.NoSnooze,
    faults.NoRestart,
    faults.InvalidSynapses,
    faults.ExcitabilityStrict,
    faults.ForcedNotLearnt,
    faults.ForcedTwice,
    faults.DivisionFirst,
    faults.DoubleIntegration,
)
"""Others are found in the first cases."""


def differences(seeds: Iterable[int], backend: backends.Backend, families: int = 0) -> list[str]:
    """What differs, by seed; cases have the features that the backend models."""
    found = ((seed, compare(draw_case(seed, families, backend.models), backend.create)) for seed in seeds)
    return [f"burstproof fuzz --cases 1 --seed {seed} --families {families}: {d}" for seed, d in found if d is not None]


QUICK = (backends.REFERENCE, backends.CPU_BACKENDS[0])
HOST_CASES = [
    pytest.param(
        backend,
        first,
        id=f"{backend.name}, {first}",
        marks=[] if first == 0 and backend in QUICK else [pytest.mark.thorough("more of the random cases")],
    )
    for backend, cases in (
        (backends.REFERENCE, CHUNK),
        (backends.CPU_BACKENDS[0], CASES),
        (backends.CPU_BACKENDS[1], 2 * CHUNK),
        (backends.CPU_SHARDS, 2 * CHUNK),
    )
    for first in range(0, cases, CHUNK)
]


def _clamps(seed: int, backend: backends.Backend) -> bool:
    """Whether potentials of the case of ``seed`` stay in eight bits, for which the CPU engine has other kernels."""
    return draw_case(seed, 0, backend.models).network.features.clamp_potentials


@pytest.mark.parametrize(
    "clamps",
    [False, pytest.param(True, marks=pytest.mark.thorough("kernels of their own for the CPU: ten seconds"))],
    ids=["all bits", "eight bits"],
)
@pytest.mark.parametrize(("backend", "first"), HOST_CASES)
def test_cases(backend: backends.Backend, first: int, clamps: bool) -> None:
    """Fired lists, candidates and the whole state, bit for bit, also from a state handed over."""
    seeds = [seed for seed in range(first, first + CHUNK) if _clamps(seed, backend) is clamps]
    assert seeds
    assert differences(seeds, backend) == []


ROOMS_SEEDS = range(40)
"""Cases of which some add more twins than there is room for at first."""


@pytest.mark.not_proof
@pytest.mark.thorough("compiles kernels for each of many rooms")
def test_room_for_twins_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs in which the network is laid out anew for more twins, after which everything goes on alike."""
    monkeypatch.setattr(growing, "FIRST_ROOM", 1)
    made = []
    make_room = growing.Growth.make_room
    monkeypatch.setattr(growing.Growth, "make_room", lambda *args: (made.append(args), make_room(*args)))
    assert differences(ROOMS_SEEDS, backends.CPU_BACKENDS[0]) == []
    assert len(made) > 1


@pytest.mark.thorough("random cases take seconds")
@backends.NEEDS_ADAPTER
@pytest.mark.requirement("BE-16")
def test_cases_on_wgpu() -> None:
    """Likewise on whatever adapter is there."""
    assert differences(range(CASES, CASES + WGPU_CASES), backends.WGPU) == []


@cache
def cuda_seeds(cases: int = CASES) -> tuple[int, ...]:
    """Seeds of so many cases, with the variants that come first."""
    from burstproof.engine.cuda.plan.packed import pack_network

    variants, seeds, seed = set(), [], 0
    while len(seeds) < cases:
        case = draw_case(seed, CUDA_FAMILIES)
        variant = pack_network(case.network, case.options).variant
        if variant in variants or len(variants) < CUDA_VARIANTS:
            variants.add(variant)
            seeds.append(seed)
        seed += 1
    return tuple(seeds)


@pytest.mark.gate("gpu")
@pytest.mark.requirement("BE-6")
@pytest.mark.parametrize("first", thinned(range(0, CASES, CHUNK), "fifty networks take minutes", keep=only()))
def test_cases_on_cuda(first: int) -> None:
    """Likewise on CUDA, every other chunk without graphs."""
    backend = backends.Backend("cuda", cuda=CudaOptions(graphs=first % (2 * CHUNK) == 0))
    assert differences(cuda_seeds()[first : first + CHUNK], backend, CUDA_FAMILIES) == []


@pytest.mark.nightly("ten thousand random cases on each backend")
@pytest.mark.time_limit(2400)
@pytest.mark.parametrize("first", range(CASES, NIGHTLY + CASES, NIGHTLY // 50))
@pytest.mark.parametrize(
    "backend",
    [
        pytest.param(backend, id=backend.name, marks=[backends.NEEDS_ADAPTER] if backend is backends.WGPU else [])
        for backend in (*backends.CPU_BACKENDS, backends.CPU_SHARDS, backends.WGPU)
    ],
)
def test_ten_thousand_cases(backend: backends.Backend, first: int) -> None:
    assert differences(range(first, first + NIGHTLY // 50), backend) == []


@pytest.mark.nightly("ten thousand random cases")
@pytest.mark.time_limit(2400)
@pytest.mark.gate("gpu")
@pytest.mark.requirement("BE-6")
@pytest.mark.parametrize("first", range(0, NIGHTLY, NIGHTLY // 50))
def test_ten_thousand_cases_on_cuda(first: int) -> None:
    seeds = cuda_seeds(NIGHTLY)[first : first + NIGHTLY // 50]
    assert differences(seeds, backends.Backend("cuda"), CUDA_FAMILIES) == []


@pytest.mark.not_proof
@pytest.mark.thorough("random cases take seconds")
def test_cases_for_cuda_have_few_variants() -> None:
    """Most of the seeds tried are taken: the variants are those of the families."""
    assert cuda_seeds()[-1] < 2 * CASES


@pytest.mark.not_proof
@pytest.mark.parametrize(
    "fault", thinned(PLANTED, "shrinking takes seconds", keep=every(4)), ids=lambda fault: fault.__name__
)
def test_a_planted_fault_is_found_and_shrunk(fault: type[ReferenceEngine], tmp_path: Path) -> None:
    """Within the suite's cases, to a handful of neurons, in a trace that shows it."""
    seed = next(seed for seed in range(CASES) if compare(draw_case(seed), fault.create) is not None)
    shrunk = shrink(draw_case(seed), fault.create, "shrunk")
    assert shrunk.case.network.neuron_count <= 8 or fault is faults.ExcitabilityStrict  # whose draws depend on ids
    assert shrunk.case.network.synapse_count <= 5
    assert shrunk.case.bursts <= 3
    write_trace(tmp_path / "shrunk", shrunk.trace)
    trace = read_trace(tmp_path / "shrunk")
    assert replay(trace, ReferenceEngine.create).agrees
    assert replay(trace, fault.create).agrees != shrunk.replays


class HandedOver(ReferenceEngine):
    """A state that is taken over lacks who restarts."""

    def restore(self, state: Any) -> None:
        super().restore(state)
        self.was_candidate[:] = False


@pytest.mark.not_proof
def test_a_fault_that_takes_a_handover_is_shrunk() -> None:
    """The runs of the case stay, and the trace does not claim to show it."""
    seed = next(seed for seed in range(CASES) if compare(draw_case(seed), HandedOver.create) is not None)
    shrunk = shrink(draw_case(seed), HandedOver.create, "shrunk")
    assert not shrunk.replays
    assert shrunk.case.handover is not None
    assert shrunk.case.network.neuron_count <= 5


@pytest.mark.not_proof
def test_shrinking_an_agreement_is_refused() -> None:
    """There is nothing to shrink."""
    with pytest.raises(InputError, match="agrees with the reference"):
        shrink(draw_case(0), ReferenceEngine.create, "same")


@pytest.mark.not_proof
def test_crashes_are_found() -> None:
    """An engine that raises is one that differs."""

    class Crashes(ReferenceEngine):
        def _restart(self) -> None:
            raise IndexError("planted")

    found = compare(draw_case(0), Crashes.create)
    assert found is not None
    assert (found.quantity, found.got) == ("error", "IndexError: planted")


def switch_values(switches: Switches) -> Iterator[tuple[str, object]]:
    """Each switch with its value."""
    return ((item.name, getattr(switches, item.name)) for item in fields(switches))


@pytest.mark.not_proof
@pytest.mark.thorough("draws hundreds of networks")
def test_cases_hold_what_they_say() -> None:
    """A seed gives one case; the suite's cases have all switches in all positions, fire, and start without NaN."""
    seen = {value for seed in range(CASES) for value in switch_values(draw_switches(np.random.default_rng([0, seed])))}
    assert len(seen) == len(
        {v for s in range(5000) for v in switch_values(draw_switches(np.random.default_rng([0, s])))}
    )
    fired = sum(
        int(stretch.recording.fired_counts.sum() > 0)
        for seed in range(40)
        for stretch in reference_run(draw_case(seed))
    )
    assert fired > 100
    for seed in range(40):
        case, again = draw_case(seed), draw_case(seed)
        assert str(case) == str(again)
        assert not np.isnan(case.network.neurons.membrane_potentials).any()
        assert case.network.neurons.membrane_potentials.tobytes() == again.network.neurons.membrane_potentials.tobytes()


@pytest.mark.thorough("seconds")
def test_the_command_agrees(capsys: pytest.CaptureFixture[str]) -> None:
    """Cases that agree exit with 0, in words and as JSON."""
    assert main(["fuzz", "--cases", "5", "--seed", "3", "--shards", "2"]) == ExitCode.PASS
    assert "5 cases on 2 shards of cpu (seeds 3 to 7" in capsys.readouterr().out
    assert main(["fuzz", "--cases", "5", "--json", "--backend", "reference"]) == ExitCode.PASS
    document = json.loads(capsys.readouterr().out)
    assert document["agree"]
    assert document["cases"] == 5


@pytest.mark.not_proof
@pytest.mark.thorough("random cases take seconds")
def test_the_command_finds(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Cases that differ exit with 1; their traces are there, and what replays the first is printed."""
    monkeypatch.setattr("burstproof.cli.fuzz.factory_of", lambda backend, shards: faults.NoSnooze.create)
    assert main(["fuzz", "--cases", "30", "--families", "7", "--out", str(tmp_path)]) == ExitCode.FAIL
    out = capsys.readouterr().out
    assert "DIFFERS" in out
    assert "again: burstproof fuzz --seed" in out
    traces = sorted(tmp_path.glob("*.npz"))
    assert traces
    assert replay(read_trace(traces[0]), ReferenceEngine.create).agrees
    assert not replay(read_trace(traces[0]), faults.NoSnooze.create).agrees


@pytest.mark.not_proof
def test_the_command_refuses(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A folder that is not there, and shards of a backend without any."""
    assert main(["fuzz", "--out", str(tmp_path / "nowhere")]) == ExitCode.USAGE
    assert main(["fuzz", "--backend", "reference", "--shards", "2"]) == ExitCode.USAGE
    assert "--shards" in capsys.readouterr().err
